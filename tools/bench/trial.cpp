#include "tools/bench/trial.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/timer.h"
#include "kernels/formats/upload.h"
#include "partition/generators/counter_random.h"

namespace shardmat::tools {
namespace {

constexpr std::uint64_t kSeed = 1, kVectorStream = 13;
constexpr double kGpuWarmUpSeconds = 0.01, kHostWarmUpSeconds = 0.005, kMostSeconds = 1;

HostVector<double> random_vector(std::int64_t count, ValueType type) {
  HostVector<double> x(static_cast<std::size_t>(count));
  const CounterRandom random = CounterRandom(kSeed, kVectorStream).of(0);
  parallel_ranges(count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      const double value = random.symmetric(j);
      x[static_cast<std::size_t>(j)] = type == ValueType::f32 ? static_cast<double>(static_cast<float>(value)) : value;
    }
  });
  return x;
}

}  // namespace

std::int64_t count_touched_columns(const CsrView& matrix) {
  std::vector<char> touched(static_cast<std::size_t>(matrix.cols));
  parallel_ranges(matrix.nnz(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k)
      std::atomic_ref(touched[static_cast<std::size_t>(matrix.col_idx[static_cast<std::size_t>(k)])])
          .store(1, std::memory_order_relaxed);
  });
  return std::count(touched.begin(), touched.end(), 1);
}

Trial::Trial(const CsrView& matrix, ValueType type, Stream& stream, const TrialOptions& options)
    : input_(matrix, type, stream),
      options_(options),
      host_x_(random_vector(matrix.cols, type)),
      y_(stream.device(), static_cast<std::size_t>(matrix.rows) * size_of(type)),
      x_entries_(count_touched_columns(matrix)) {
  dispatch(type, [&](auto tag) { x_ = upload<typename decltype(tag)::type>(host_x_, stream); });
  if (options.verify) check_.emplace(matrix, type, host_x_);
  input_.csr();
}

std::vector<Policy> Trial::layouts(const Format& format) {
  const Timer timer;
  std::vector<Policy> all = format.layouts(input_);
  layout_seconds_ = timer.seconds();
  return all;
}

StoredMatrix Trial::convert(const Format& format, const Policy& layout) {
  StoredMatrix stored;
  stored.layout = layout;
  const Timer timer;
  try {
    stored.storage = store(format, input_, layout);
    input_.stream().synchronize();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::resources) throw;
    stored.refused = error.what();
  }
  if (format.name != "csr") stored.seconds = timer.seconds() + std::exchange(layout_seconds_, 0);
  return stored;
}

KernelResult Trial::measure(const Kernel& kernel, const StoredMatrix& stored, const Policy& policy) {
  KernelResult result;
  if (!stored.refused.empty()) {
    result.refused = stored.refused;
  } else if (!kernel.supports(*stored.storage)) {
    result.refused = "the kernel cannot take this matrix in this layout";
  } else {
    try {
      result = measure(*make_plan(kernel, stored.storage, policy, input_.stream()));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::resources) throw;
      result.refused = error.what();
    }
  }
  result.kernel = kernel.name;
  result.format = kernel.format;
  result.policy = tunables_text(stored.layout, policy);
  result.convert_seconds = stored.seconds;
  return result;
}

KernelResult Trial::measure(const Plan& plan) {
  Stream& stream = input_.stream();
  KernelResult result;
  result.kernel = plan.kernel;
  result.format = plan.storage().format;
  result.policy = plan.tunables();
  result.format_bytes = plan.storage().bytes;
  result.moved_bytes = plan.compulsory_bytes(x_entries_);
  if (check_) {
    fill_bytes(y_.data(), 0xff, y_.bytes(), stream);  // NaN
    plan.multiply(1, x_.data(), 0, y_.data(), stream);
    result.check = check_->compare(y_.data(), stream);
  }
  TimingOptions timing;
  timing.repetitions = options_.repetitions;
  timing.warm_up_seconds = stream.device().backend == Backend::cuda ? kGpuWarmUpSeconds : kHostWarmUpSeconds;
  timing.most_seconds = kMostSeconds;
  timing.flush = options_.flush;
  result.timing = time_product(plan, x_.data(), y_.data(), stream, timing);
  return result;
}

}  // namespace shardmat::tools
