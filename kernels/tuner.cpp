#include "kernels/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "kernels/measure.h"
#include "kernels/registry.h"

namespace shardmat {
namespace {

constexpr double kWarmUpSeconds = 0.05;  // an idle GPU needs some milliseconds to reach its clocks

struct Candidate {
  const Kernel* kernel;
  Policy layout, policy;
};

/// Every layout of the kernel's format with every policy of the kernel, `overrides` put over both.
void add_candidates(const Kernel& kernel, const std::string& overrides, ConversionInput& input, std::vector<Candidate>& all) {
  for (const Policy& layout : find_format(kernel.format).layouts(input))
    for (const Policy& policy : kernel.policies(input.rows())) {
      const auto [of_format, of_kernel] = layout.split(overrides);
      const Candidate candidate{&kernel, layout.with(of_format), policy.with(of_kernel)};
      const auto same = [&](const Candidate& other) {
        return other.kernel == &kernel && other.layout == candidate.layout && other.policy == candidate.policy;
      };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back(candidate);
    }
}

/// What the request leaves open; the first is the model's choice.
std::vector<Candidate> candidates_for(const PlanRequest& request, ConversionInput& input) {
  const Backend backend = input.stream().device().backend;
  std::vector<Candidate> all;
  if (request.kernel != "auto") {
    add_candidates(find_kernel(request.kernel, backend), request.policy, input, all);
    return all;
  }
  if (!request.policy.empty())
    throw Error(ErrorKind::usage, "--policy belongs to one kernel: name it with --kernel");
  for (const Kernel& kernel : kernels())
    if (kernel.backend == backend && kernel.automatic) add_candidates(kernel, "", input, all);
  return all;
}

/// Matrices converted so far, so that kernels of one format share one.
class Stored {
 public:
  explicit Stored(ConversionInput& input) : input_(input) {}
  std::shared_ptr<Storage> get(const Candidate& candidate) {
    std::shared_ptr<Storage>& storage = kept_[std::string(candidate.kernel->format) + candidate.layout.text()];
    if (!storage) storage = store(find_format(candidate.kernel->format), input_, candidate.layout);
    return storage;
  }

 private:
  ConversionInput& input_;
  std::map<std::string, std::shared_ptr<Storage>> kept_;
};

}  // namespace

ChosenPlan choose_plan(const CsrView& matrix, ValueType type, const PlanRequest& request, Stream& stream) {
  ConversionInput input(matrix, type, stream);
  const std::vector<Candidate> candidates = candidates_for(request, input);
  Stored stored(input);
  ChosenPlan chosen;

  const bool measure = request.tune && candidates.size() > 1 && matrix.nnz() > 0;
  if (!measure) {
    const Candidate& first = candidates.front();
    auto storage = stored.get(first);
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
  std::string refused;
  for (const Candidate& candidate : candidates) {
    if (chosen.plan && timer.seconds() > request.budget_seconds) break;
    std::shared_ptr<Storage> storage;
    try {
      storage = stored.get(candidate);
    } catch (const Error& error) {  // a format that does not suit or does not fit; one that was asked for must
      if (request.kernel != "auto" || error.kind() != ErrorKind::resources) throw;
      refused = error.what();
      continue;
    }
    if (!candidate.kernel->supports(*storage)) continue;
    auto plan = make_plan(*candidate.kernel, std::move(storage), candidate.policy, stream);
    TimingOptions timing;
    if (!chosen.plan) {
      timer = Timer();
      timing.warm_up_seconds = kWarmUpSeconds;
    }
    const double seconds = time_product(*plan, x.data(), y.data(), stream, timing).median;
    chosen.measurements.push_back({plan->kernel, tunables_text(candidate.layout, candidate.policy), seconds});
    if (!chosen.plan || seconds < best) chosen.plan = std::move(plan), best = seconds;
  }
  if (!chosen.plan && !refused.empty()) throw Error(ErrorKind::resources, refused);
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
