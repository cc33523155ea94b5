#include "kernels/choose/spmm_tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "kernels/choose/registry.h"

namespace shardmat {
namespace {

constexpr int kWarmUps = 1, kRepetitions = 5;
constexpr double kHopeless = 1.5;     // times the best; after two repetitions
constexpr double kMostGrowth = 1.01;  // of a format over CSR

struct Candidate {
  const SpmmKernel* kernel;
  Policy policy;
};

/// Formats other than CSR hold f32 and f64 only.
bool holds(std::string_view format, ValueType type) { return format == "csr" || !is_half(type); }

/// The layout in which kernels for many right-hand sides want a format.
Policy spmm_layout(const std::string& format, ConversionInput& input) {
  Policy layout = find_format(format).layouts(input).front();
  // Lanes lie along the rows of X; several of them on a group of rows would take more loads for the same values.
  if (format == "packed" && layout.at("block") <= 3) layout = layout.with("lanes=1");
  return layout;
}

}  // namespace

const Policy& SpmmTuner::layout_of(const std::string& format) {
  const auto known = layouts_.find(format);
  return known != layouts_.end() ? known->second : layouts_.emplace(format, spmm_layout(format, input_)).first->second;
}

bool SpmmTuner::grows(const std::string& format) {
  if (format == "csr") return false;
  const auto known = grows_.find(format);
  if (known != grows_.end()) return known->second;
  const auto bytes = static_cast<double>(find_format(format).bytes(input_, layout_of(format)));
  return grows_[format] = bytes > kMostGrowth * static_cast<double>(find_format("csr").bytes(input_, {}));
}

std::shared_ptr<Storage> SpmmTuner::stored(const SpmmKernel& kernel) {
  const std::string format(kernel.format);
  std::shared_ptr<Storage>& storage = stored_[format];
  if (!storage) {
    storage = store(find_format(format), input_, layout_of(format));
    if (late_) storage->expect_late(late_->first, input_.stream());
  }
  return storage;
}

std::vector<Policy> SpmmTuner::policies(const SpmmKernel& kernel, const RightHandSides& rhs) {
  require_count(rhs.count);
  const std::string format(kernel.format);
  if (refused_.count(format) != 0 || !holds(format, input_.type())) return {};
  try {
    const std::shared_ptr<Storage> storage = stored(kernel);
    return kernel.supports(*storage, rhs) ? kernel.policies(*storage, rhs) : std::vector<Policy>{};
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::resources) throw;
    refused_[format] = e.what();
    return {};
  }
}

std::unique_ptr<SpmmPlan> SpmmTuner::make(const SpmmKernel& kernel, const RightHandSides& rhs, const Policy& policy) {
  return make_spmm_plan(kernel, stored(kernel), rhs, policy, input_.stream());
}

ChosenSpmmPlan SpmmTuner::choose(const RightHandSides& rhs, const SpmmRequest& request) {
  require_count(rhs.count);
  Stream& stream = input_.stream();
  const Backend backend = stream.device().backend;
  const bool named = request.kernel != "auto";
  if (!named && !request.policy.empty())
    throw Error(ErrorKind::usage, "--policy belongs to one kernel: name it with --kernel");
  const Timer timer;
  std::vector<Candidate> candidates;
  const auto add = [&](const SpmmKernel& kernel) {
    for (const Policy& policy : policies(kernel, rhs)) {
      const Candidate candidate{&kernel, policy.with(request.policy)};
      const auto same = [&](const Candidate& c) { return c.kernel == &kernel && c.policy == candidate.policy; };
      if (std::none_of(candidates.begin(), candidates.end(), same)) candidates.push_back(candidate);
    }
  };
  if (named) {
    add(find_spmm_kernel(request.kernel, backend));
  } else {
    for (const SpmmKernel& kernel : spmm_kernels()) {
      const std::string format(kernel.format);
      if (kernel.backend != backend || kernel.promising == nullptr || !holds(format, input_.type())) continue;
      if (!kernel.promising(input_, layout_of(format)) || grows(format)) continue;
      add(kernel);
    }
  }
  if (candidates.empty()) {
    if (!refused_.empty()) throw Error(ErrorKind::resources, refused_.begin()->second);
    throw Error(ErrorKind::usage,
                fmt::format("kernel {} cannot take this matrix in {} with {} right-hand sides; use --kernel auto",
                            request.kernel, name(input_.type()), rhs.count));
  }

  ChosenSpmmPlan chosen;
  const auto bytes = [&](std::int64_t rows, ValueType type) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(rhs.count) * size_of(type);
  };
  const CsrView& matrix = input_.matrix();
  const std::size_t x_bytes = bytes(matrix.cols, input_.type()), y_bytes = bytes(matrix.rows, sum_type(input_.type()));
  // Twice: kernels may copy X and Y into another order.
  const bool fits = available_memory(stream.device()) / 2 > static_cast<std::int64_t>(x_bytes + y_bytes);
  const bool measures = request.measure && backend == Backend::cuda && candidates.size() > 1 && matrix.nnz() > 0 && fits;
  Buffer x, y;
  if (measures) {
    x = Buffer(stream.device(), x_bytes);
    y = Buffer(stream.device(), y_bytes);
    fill_bytes(x.data(), 0, x.bytes(), stream);
  }
  const auto leading = [&](DenseOrder order, std::int64_t rows) {
    return order == DenseOrder::row_major ? rhs.count : rows;
  };
  const auto waiting = [&](const SpmmPlan& plan) { return late_ && !plan.begins_early() ? late_->seconds : 0; };
  const auto cost = [&](const SpmmPlan& plan) {
    TimingOptions timing;
    timing.repetitions = kRepetitions;
    timing.warm_ups = kWarmUps;
    timing.warm_up_seconds = chosen.plan ? 0 : kUsualWarmUp;
    timing.flush = request.flush;
    if (chosen.plan) timing.hopeless_seconds = kHopeless * chosen.product_seconds;
    const auto product = [&] {
      plan.multiply(1, x.data(), leading(rhs.x, matrix.cols), 0, y.data(), leading(rhs.y, matrix.rows), stream);
    };
    return time_work(product, stream, timing).median + waiting(plan);
  };
  struct {
    double cost = 0, making_seconds = 0;  // the latter beyond the matrix in its format
    std::size_t place = 0;                // among the measurements
  } best;
  std::string no_memory;  // why the last candidate that did not fit has no plan
  for (const Candidate& candidate : candidates) {
    try {
      const Timer making;
      auto plan = make(*candidate.kernel, rhs, candidate.policy);
      const double making_seconds = making.seconds();
      if (request.reproducible && !plan->reproducible()) continue;
      if (!measures) {
        chosen.plan = std::move(plan);
        break;
      }
      double its = cost(*plan);
      bool better = true;
      if (chosen.plan) {
        const auto again = [&] { return cost(*plan); };
        better = overtakes(its, again, best.cost, [&] { return cost(*chosen.plan); }) &&
                 making_seconds - best.making_seconds <= request.products * (best.cost - its);
        chosen.product_seconds = chosen.measurements[best.place].seconds = best.cost - waiting(*chosen.plan);
      }
      chosen.measurements.push_back({plan->kernel, plan->tunables(), its - waiting(*plan)});
      if (!better) continue;
      best = {its, making_seconds, chosen.measurements.size() - 1};
      chosen.product_seconds = chosen.measurements.back().seconds;
      chosen.plan = std::move(plan);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::resources) throw;
      no_memory = e.what();
    }
  }
  if (!chosen.plan && !no_memory.empty()) throw Error(ErrorKind::resources, no_memory);
  if (!chosen.plan)
    throw Error(ErrorKind::usage, named ? fmt::format("kernel {} is not reproducible; leave out --reproducible or take "
                                                      "another",
                                                      request.kernel)
                                        : "no reproducible kernel takes this matrix; leave out --reproducible");
  Choice choice = describe_choice(chosen.measurements, chosen.product_seconds, named, candidates.size(),
                                  "first of the list; nothing was measured");
  chosen.decision = choice.decision;
  chosen.why = std::move(choice.why);
  if (chosen.decision == Decision::measured && chosen.measurements.front().seconds < chosen.product_seconds)
    chosen.why += fmt::format(", counting what a plan takes to make, over {:.0f} products{}", request.products,
                              late_ ? ", and what it waits for X" : "");
  chosen.choosing_seconds = timer.seconds();
  return chosen;
}

}  // namespace shardmat
