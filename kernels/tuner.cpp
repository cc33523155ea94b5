#include "kernels/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "kernels/registry.h"

namespace shardmat {
namespace {

constexpr double kWarmUpSeconds = 0.05;  // an idle GPU needs some milliseconds to reach its clocks
constexpr int kWarmUps = 2;
constexpr int kRepetitions = 9;

struct Candidate {
  const Kernel* kernel;
  Policy policy;
};

/// What the request leaves open; the first is the model's choice.
std::vector<Candidate> candidates_for(const PlanRequest& request, const RowStatistics& rows, Backend backend) {
  std::vector<Candidate> all;
  if (request.kernel != "auto") {
    const Kernel& kernel = find_kernel(request.kernel, backend);
    for (const Policy& policy : kernel.policies(rows)) {
      const Candidate candidate{&kernel, policy.with(request.policy)};
      const auto same = [&](const Candidate& other) { return other.policy == candidate.policy; };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back(candidate);
    }
    return all;
  }
  if (!request.policy.empty())
    throw Error(ErrorKind::usage, "--policy belongs to one kernel: name it with --kernel");
  for (const Kernel& kernel : kernels())
    if (kernel.backend == backend)
      for (const Policy& policy : kernel.policies(rows)) all.push_back({&kernel, policy});
  return all;
}

double median_seconds(const Plan& plan, const Buffer& x, const Buffer& y, Stream& stream) {
  std::vector<double> seconds;
  for (int repetition = -kWarmUps; repetition < kRepetitions; ++repetition) {
    Event start(stream.device()), end(stream.device());
    start.record(stream);
    plan.multiply(1, x.data(), 0, y.data(), stream);
    end.record(stream);
    stream.synchronize();
    if (repetition >= 0) seconds.push_back(end.seconds_since(start));
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRepetitions / 2, seconds.end());
  return seconds[kRepetitions / 2];
}

/// Matrices converted so far, so that kernels of one format share one.
using StorageByFormat = std::map<std::string_view, std::shared_ptr<const Storage>>;

std::shared_ptr<const Storage> store(std::string_view format_name, const CsrView& matrix, ValueType type, Stream& stream,
                                     StorageByFormat& stored) {
  std::shared_ptr<const Storage>& storage = stored[format_name];
  if (!storage) {
    const Format& format = find_format(format_name);
    require_memory(stream.device(), format.bytes(matrix, type), fmt::format("the matrix in format {}", format_name));
    storage = format.convert(matrix, type, stream);
  }
  return storage;
}

}  // namespace

ChosenPlan choose_plan(const CsrView& matrix, ValueType type, const PlanRequest& request, Stream& stream) {
  const RowStatistics rows = row_statistics(matrix.row_ptr);
  const std::vector<Candidate> candidates = candidates_for(request, rows, stream.device().backend);
  StorageByFormat stored;
  ChosenPlan chosen;

  const bool measure = request.tune && candidates.size() > 1 && matrix.nnz() > 0;
  if (!measure) {
    const Candidate& first = candidates.front();
    auto storage = store(first.kernel->format, matrix, type, stream, stored);
    if (!first.kernel->supports(*storage))
      throw Error(ErrorKind::usage, fmt::format("kernel {} cannot take this matrix ({} rows, {} nonzeros); use --kernel auto",
                                                first.kernel->name, matrix.rows, matrix.nnz()));
    chosen.plan = make_plan(*first.kernel, std::move(storage), first.policy, stream);
    const bool asked = request.kernel != "auto";
    chosen.why = asked && !request.policy.empty() ? "kernel and policy as asked"
                 : asked                          ? "kernel as asked, policy from the model"
                 : candidates.size() > 1          ? "from the model; --measure tries the others"
                                                  : "the only kernel of this backend";
    return chosen;
  }

  const Buffer x(stream.device(), static_cast<std::size_t>(matrix.cols) * size_of(type));
  const Buffer y(stream.device(), static_cast<std::size_t>(matrix.rows) * size_of(type));
  fill_bytes(x.data(), 0, x.bytes(), stream);
  Timer timer;  // restarted when the first matrix is converted: the budget is for measuring
  double best = 0;
  for (const Candidate& candidate : candidates) {
    if (chosen.plan && timer.seconds() > request.budget_seconds) break;
    auto storage = store(candidate.kernel->format, matrix, type, stream, stored);
    if (!candidate.kernel->supports(*storage)) continue;
    auto plan = make_plan(*candidate.kernel, std::move(storage), candidate.policy, stream);
    if (!chosen.plan) {
      timer = Timer();
      while (timer.seconds() < kWarmUpSeconds) median_seconds(*plan, x, y, stream);
    }
    const double seconds = median_seconds(*plan, x, y, stream);
    chosen.measurements.push_back({plan->kernel, candidate.policy.text(), seconds});
    if (!chosen.plan || seconds < best) chosen.plan = std::move(plan), best = seconds;
  }
  if (!chosen.plan)
    throw Error(ErrorKind::usage, fmt::format("kernel {} cannot take this matrix; use --kernel auto", request.kernel));
  std::sort(chosen.measurements.begin(), chosen.measurements.end(),
            [](const Measurement& a, const Measurement& b) { return a.seconds < b.seconds; });
  chosen.why = fmt::format("fastest of {} measured{}", chosen.measurements.size(),
                           chosen.measurements.size() < candidates.size()
                               ? fmt::format(" ({} left out)", candidates.size() - chosen.measurements.size())
                               : "");
  return chosen;
}

}  // namespace shardmat
