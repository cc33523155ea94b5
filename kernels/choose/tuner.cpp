#include "kernels/choose/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "kernels/base/cuda_facts.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "kernels/choose/ordered_format.h"
#include "kernels/choose/registry.h"
#include "kernels/formats/csr.h"
#include "kernels/measure.h"

namespace shardmat {
namespace {

// Of the automatic choice. Together at most 10 + 8·7 products, of small matrices 10 + 14·7, and 14 for each that is close
// (40 on the host), so that it pays within the first hundred or two; some 30 of long products on a GPU.
constexpr double kWorthMeasuring = 1.4;  // times the cheapest prediction
constexpr double kLaterPolicy = 0.08;    // what each further policy of a kernel is expected to cost more
constexpr std::size_t kMostLayouts = 2;  // of a format; each may cost an analysis
constexpr std::size_t kMostMeasured = 8;
// On a GPU latency decides how fast a small matrix is multiplied. The model does not know latency, but products are short,
// so more candidates are measured.
constexpr double kSmall = 16 << 20;  // bytes as CSR
constexpr double kWorthMeasuringOfSmall = 2.5;
constexpr std::size_t kMostMeasuredOfSmall = 14;
constexpr double kBudgetProducts = 150, kLeastBudget = 0.02;
constexpr double kBudgetOfTuning = 5;

constexpr std::int64_t kKeptOnHost = 128 << 20;  // bytes
constexpr std::int64_t kShareOnHost = 8;         // and as long as the matrix is below this part of the free memory
constexpr double kSureLead = 1.15;               // times the best, where the two cannot be measured in turn

constexpr int kWarmUps = 2;
constexpr int kRepetitions = 5, kRepetitionsOfPairs = 3;
constexpr double kHopeless = 1.5;  // times the best
// Of products that take so long, three repetitions are as good as five, and a candidate that is a little slower is told at
// once.
constexpr double kLongOnGpu = 100e-6, kRepeatedOnGpu = 0.5e-3, kHopelessOfLong = 1.15;

struct Candidate {
  const Kernel* kernel;
  Policy layout, policy;
  double bytes = std::numeric_limits<double>::infinity();  // predicted

  std::string tunables() const { return tunables_text(layout, policy); }
};

/// What the model expects, or infinity if it says nothing or the matrix is beyond the format's limits.
double predict(const Kernel& kernel, ConversionInput& input, const Policy& layout) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  if (kernel.estimate == nullptr) return kUnknown;
  try {
    return kernel.estimate(input, layout);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::resources) throw;
    return kUnknown;
  }
}

/// Every layout of the kernel's format with every policy of the kernel, `overrides` put over both.
void add_named(const Kernel& kernel, const std::string& overrides, ConversionInput& input, std::vector<Candidate>& all) {
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

/// The layouts and policies of a kernel with their predictions; `every` takes those, too, of which the model says nothing.
void add_predicted(const Kernel& kernel, bool every, ConversionInput& input, std::vector<Candidate>& all) {
  std::vector<Policy> layouts = find_format(kernel.format).layouts(input);
  if (!every && layouts.size() > kMostLayouts) layouts.resize(kMostLayouts);
  for (const Policy& layout : layouts) {
    double bytes = predict(kernel, input, layout);
    if (!every && bytes == std::numeric_limits<double>::infinity()) continue;
    const double step = kLaterPolicy * bytes;
    for (const Policy& policy : kernel.policies(input.rows())) {
      all.push_back({&kernel, layout, policy, bytes});
      bytes += step;
    }
  }
}

/// Plans with the same bits as products with several right-hand sides: of the kernel that is named, or of all that suit.
std::vector<Candidate> ordered_candidates(const PlanRequest& request, ConversionInput& input) {
  const bool named = request.kernel != "auto";
  const Backend backend = input.stream().device().backend;
  const Format& format =
      named ? find_format(find_kernel(request.kernel, backend).format) : ordered_format(input, request.storage);
  const Policy layout = ordered_layout(format, input);
  std::vector<Candidate> all;
  for (const Kernel& kernel : kernels()) {
    const bool wanted = named ? kernel.name == request.kernel : kernel.automatic && kernel.format == format.name;
    if (kernel.backend != backend || !wanted) continue;
    const double bytes = predict(kernel, input, layout);
    if (!named && bytes == std::numeric_limits<double>::infinity()) continue;
    for (const Policy& policy : kernel.policies(input.rows())) {
      const auto [of_format, of_kernel] = layout.split(request.policy);
      const Candidate candidate{&kernel, layout.with(of_format), policy.with(of_kernel), bytes};
      const auto same = [&](const Candidate& c) { return c.kernel == &kernel && c.policy == candidate.policy; };
      if (is_ordered(kernel, input.type(), candidate.layout, candidate.policy, named) &&
          std::none_of(all.begin(), all.end(), same))
        all.push_back(candidate);
    }
  }
  if (all.empty()) throw not_ordered(request.kernel, input.type());
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.bytes < b.bytes; });
  return all;
}

/// What the request leaves open; the first is the model's choice.
std::vector<Candidate> candidates_for(const PlanRequest& request, ConversionInput& input) {
  const Backend backend = input.stream().device().backend;
  std::vector<Candidate> all;
  require_storage(backend, request.storage);
  if (request.kernel != "auto") {
    const Kernel& kernel = find_kernel(request.kernel, backend);
    require_stores(kernel.name, kernel.format, request.storage);
    if (request.same_bits) return ordered_candidates(request, input);
    add_named(kernel, request.policy, input, all);
    return all;
  }
  if (!request.policy.empty()) throw Error(ErrorKind::usage, "a policy belongs to one kernel: name the kernel", "kernel");
  if (request.same_bits) return ordered_candidates(request, input);
  for (const Kernel& kernel : kernels()) {
    const bool pays = !kernel.for_many_products || are_many(request.products) || request.tune;
    const bool wanted = (kernel.automatic && pays) || (request.tune && (backend == Backend::host || kernel.with_tune));
    if (kernel.backend == backend && wanted && stores(kernel.format, request.storage))
      add_predicted(kernel, request.tune, input, all);
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.bytes < b.bytes; });
  return all;
}

/// The candidates worth measuring: the cheapest of the model and the yardstick.
std::vector<Candidate> shortlist(const std::vector<Candidate>& all, ConversionInput& input) {
  const bool small =
      input.stream().device().backend == Backend::cuda && static_cast<double>(reference_format().bytes(input, {})) < kSmall;
  const double worth = small ? kWorthMeasuringOfSmall : kWorthMeasuring;
  const auto is_yardstick = [](const Candidate& c) { return c.kernel->yardstick; };
  auto places = (small ? kMostMeasuredOfSmall : kMostMeasured) -
                static_cast<std::size_t>(std::count_if(all.begin(), all.end(), is_yardstick));
  std::vector<Candidate> best;
  for (const Candidate& candidate : all) {
    const bool promising = candidate.bytes <= worth * all.front().bytes && places > 0;
    if (!is_yardstick(candidate) && promising) --places;
    if (is_yardstick(candidate) || promising) best.push_back(candidate);
  }
  return best;
}

class Chooser {
 public:
  Chooser(const CsrView& matrix, ValueType type, const PlanRequest& request, Stream& stream)
      : request_(request), stream_(stream), input_(matrix, type, stream), candidates_(candidates_for(request, input_)) {
    if (candidates_.empty()) throw Error(ErrorKind::internal, "no kernel of this backend takes the matrix");
  }

  ChosenPlan operator()() {
    const bool named = request_.kernel != "auto";
    if (!named && candidates_.size() > 1)
      for (const Candidate& c : candidates_)
        chosen_.predictions.push_back({std::string(c.kernel->name), c.tunables(), c.bytes});
    const bool measures =
        request_.tune || (!named && request_.measure && pays_to_measure(stream_.device().backend, request_.products));
    if (measures && candidates_.size() > 1 && input_.matrix().nnz() > 0) measure();
    else take_first();
    chosen_.choosing_seconds = timer_.seconds() - own_seconds_ - upload_seconds_;
    return std::move(chosen_);
  }

 private:
  /// The candidate ready to run; null if it cannot take this matrix, is not wanted, or its format does not suit the matrix
  /// or the memory. Where a kernel is named and nothing measured there is no other to turn to: that throws.
  std::unique_ptr<Plan> make(const Candidate& candidate) {
    const bool must = request_.kernel != "auto" && !request_.tune;
    try {
      std::shared_ptr<Storage>& storage = stored_[std::string(candidate.kernel->format) + candidate.layout.text()];
      if (!storage && request_.kernel == "auto" && !request_.tune && grows(candidate))
        return pass_over("its format would take more memory than CSR");
      if (!storage) storage = store(find_format(candidate.kernel->format), input_, candidate.layout);
      if (!candidate.kernel->supports(*storage)) return pass_over("it does not take this matrix");
      auto plan = make_plan(*candidate.kernel, storage, candidate.policy, stream_);
      if (!request_.reproducible || plan->reproducible()) return plan;
      if (must)
        throw Error(ErrorKind::usage,
                    fmt::format("kernel {} {} is not reproducible; use another kernel, or auto", candidate.kernel->name,
                                candidate.tunables()),
                    "kernel");
      return pass_over("it is not reproducible");
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::resources) throw;
      refused_ = e;
      if (must) require_plan();
    }
    return pass_over("its format does not suit the matrix or the memory");
  }

  std::unique_ptr<Plan> pass_over(const char* why) {
    passed_over_ = why;
    return nullptr;
  }

  /// The format would take more than CSR, counted exactly: then nothing is converted to it. REQUIRES: it is not stored yet;
  /// to count anew what was converted takes as long as the conversion.
  bool grows(const Candidate& candidate) {
    return request_.storage != StoredEntries::half &&
           is_larger_than_csr(find_format(candidate.kernel->format), input_, candidate.layout);
  }

  void take_first() {
    std::vector<std::pair<std::string_view, std::string>> passed_over;  // kernels, and why
    for (const Candidate& candidate : candidates_) {
      const Timer making;
      chosen_.plan = make(candidate);
      own_seconds_ = making.seconds();
      if (chosen_.plan) break;
      const auto same = [&](const auto& other) { return other.first == candidate.kernel->name; };
      if (std::none_of(passed_over.begin(), passed_over.end(), same))
        passed_over.emplace_back(candidate.kernel->name, passed_over_);
    }
    require_plan();
    const bool asked = request_.kernel != "auto";
    chosen_.decision = asked ? Decision::asked : candidates_.size() > 1 ? Decision::model : Decision::only;
    chosen_.why = asked && !request_.policy.empty() ? "kernel and policy as asked"
                  : asked                           ? "kernel as asked, policy from the model"
                  : candidates_.size() > 1          ? "from the model"
                                                    : "the only kernel of this backend";
    if (chosen_.decision != Decision::model) return;
    for (const auto& [kernel, why] : passed_over)
      if (kernel != chosen_.plan->kernel) chosen_.why += fmt::format("; {} was passed over: {}", kernel, why);
    chosen_.why += "; measuring tries the others";
  }

  void measure() {
    input_.keep_rows();  // for several formats
    const bool every = request_.tune;
    if (!every) candidates_ = shortlist(candidates_, input_);
    const ConversionInput& in = input_;
    if (stream_.device().backend == Backend::cuda) {
      const Timer uploading;
      input_.csr();
      upload_seconds_ = uploading.seconds();
    }
    const Buffer x(stream_.device(), static_cast<std::size_t>(in.matrix().cols) * size_of(in.type()));
    const Buffer y(stream_.device(), static_cast<std::size_t>(in.matrix().rows) * size_of(in.type()));
    fill_bytes(x.data(), 0, x.bytes(), stream_);
    Timer measuring;         // restarted when the first candidate is ready
    std::size_t leader = 0;  // among the measurements
    const Candidate* best = nullptr;
    double budget = request_.budget_seconds > 0 ? request_.budget_seconds : kBudgetOfTuning;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      const bool first = best == nullptr;
      if (!first && measuring.seconds() > budget && (every || !candidate.kernel->yardstick)) continue;
      if (!first && !every && is_beyond_memory(candidate)) {
        ++beyond_memory_;
        continue;
      }
      if (!keeps_leader()) chosen_.plan.reset();
      release(i);
      const Timer making;
      auto plan = make(candidate);
      const double making_seconds = making.seconds();
      if (!plan) continue;
      if (first) measuring = Timer();
      TimingOptions timing = timing_of(first, making_seconds);
      const auto time = [&](const Plan& of) {
        return seconds_to_compare(time_product(of, x.data(), y.data(), stream_, timing), stream_.device().backend);
      };
      double seconds = time(*plan);
      if (first && !every && request_.budget_seconds <= 0) budget = std::max(kLeastBudget, kBudgetProducts * seconds);
      const double lead = stream_.device().backend == Backend::host ? kSureLead : 1;
      bool faster = first || lead * seconds < chosen_.product_seconds;
      if (!first && keeps_leader()) {
        timing.repetitions = kRepetitionsOfPairs, timing.warm_ups = 1;
        faster = overtakes(
            seconds, [&] { return time(*plan); }, chosen_.product_seconds, [&] { return time(*chosen_.plan); },
            stream_.device().backend);
        chosen_.measurements[leader].seconds = chosen_.product_seconds;
      }
      chosen_.measurements.push_back({plan->kernel, candidate.tunables(), seconds});
      if (!faster) continue;
      leader = chosen_.measurements.size() - 1;
      best = &candidate;
      chosen_.plan = std::move(plan);
      chosen_.product_seconds = seconds;
      own_seconds_ = making_seconds;
    }
    if (best != nullptr && !chosen_.plan) make_again(*best);
    require_plan();
    explain();
  }

  /// How the first candidate is timed, or one after the best so far. A conversion on a GPU warms it up, too.
  TimingOptions timing_of(bool first, double making_seconds) const {
    const bool on_gpu = stream_.device().backend == Backend::cuda;
    TimingOptions timing;
    timing.repetitions = kRepetitions;
    timing.warm_ups = kWarmUps;
    if (on_gpu) timing.most_seconds = kRepeatedOnGpu;
    if (first) {
      timing.warm_up_seconds = on_gpu ? std::max(0.0, kUsualWarmUp - making_seconds) : kUsualWarmUp;
    } else {
      const bool is_long = on_gpu && chosen_.product_seconds >= kLongOnGpu;
      timing.hopeless_seconds = (is_long ? kHopelessOfLong : kHopeless) * chosen_.product_seconds;
    }
    return timing;
  }

  /// A product reads its matrix from memory but for what the L2 cache holds: no kernel can be faster, and the best one is.
  /// Known of CSR without counting.
  bool is_beyond_memory(const Candidate& candidate) {
    if (stream_.device().backend != Backend::cuda || candidate.kernel->format != reference_format().name) return false;
    const double rate = most_memory_rate(stream_.device().ordinal);
    const std::int64_t read = reference_format().bytes(input_, {}) - properties(stream_.device()).l2_bytes;
    return rate > 0 && static_cast<double>(read) > rate * chosen_.product_seconds;
  }

  /// Makes the best plan after the others, if it did not stay.
  void make_again(const Candidate& best) {
    release(candidates_.size());
    const Timer making;
    chosen_.plan = make(best);
    own_seconds_ = making.seconds();
  }

  /// True if the best plan so far stays while others are measured, and is measured again beside one that comes close. A
  /// large matrix on the host would take three times its memory: for the rows and two formats.
  bool keeps_leader() {
    return stream_.device().backend != Backend::host ||
           csr_bytes(input_, {}) < std::max(kKeptOnHost, available_memory(stream_.device()) / kShareOnHost);
  }

  /// Frees the matrices in formats that neither the best plan nor a candidate from `next` on uses.
  void release(std::size_t next) {
    for (auto kept = stored_.begin(); kept != stored_.end();) {
      const auto uses = [&](const Candidate& c) { return std::string(c.kernel->format) + c.layout.text() == kept->first; };
      const bool later = std::any_of(candidates_.begin() + static_cast<std::ptrdiff_t>(next), candidates_.end(), uses);
      const bool of_best = chosen_.plan && kept->second.get() == &chosen_.plan->storage();
      kept = later || of_best ? std::next(kept) : stored_.erase(kept);
    }
  }

  void explain() {
    Choice choice = describe_choice(chosen_.measurements, chosen_.product_seconds, false, candidates_.size(), "");
    chosen_.decision = choice.decision;
    chosen_.why = std::move(choice.why);
    if (beyond_memory_ > 0) chosen_.why += fmt::format(" ({} cannot be faster: they read all of CSR)", beyond_memory_);
    if (const std::size_t left_out = candidates_.size() - chosen_.measurements.size() - beyond_memory_; left_out > 0)
      chosen_.why += fmt::format(" ({} left out)", left_out);
  }

  void require_plan() const {
    if (chosen_.plan) return;
    const bool named = request_.kernel != "auto";
    if (refused_) {
      const bool others_are_smaller = named && candidates_.front().kernel->format != reference_format().name;
      if (!others_are_smaller) throw *refused_;
      throw Error(ErrorKind::resources, fmt::format("{}. Use another kernel, or auto", refused_->what()), "kernel");
    }
    throw Error(ErrorKind::usage,
                named
                    ? fmt::format("kernel {} cannot take this matrix ({} rows, {} nonzeros){}; use another kernel, or auto",
                                  request_.kernel, input_.matrix().rows, input_.matrix().nnz(),
                                  request_.reproducible ? " reproducibly" : "")
                    : "no kernel that takes this matrix is reproducible; do without reproducible results",
                named ? "kernel" : "reproducible");
  }

  const PlanRequest& request_;
  Stream& stream_;
  Timer timer_;
  ConversionInput input_;
  std::vector<Candidate> candidates_;
  std::map<std::string, std::shared_ptr<Storage>> stored_;  ///< by format and layout, so that kernels of one format share it
  ChosenPlan chosen_;
  std::optional<Error> refused_;   ///< why the last candidate whose format was refused has no plan
  const char* passed_over_ = "";   ///< why the last candidate for which make() gave none has no plan
  std::size_t beyond_memory_ = 0;  ///< candidates that is_beyond_memory() spared
  double upload_seconds_ = 0;      ///< of the CSR to the device, which every conversion there needs
  double own_seconds_ = 0;         ///< converting to the chosen format, which has to be done in any case
};

}  // namespace

Choice describe_choice(std::vector<Measurement>& measurements, double seconds, bool named, std::size_t candidates,
                       const char* unmeasured) {
  std::stable_sort(measurements.begin(), measurements.end(),
                   [](const Measurement& a, const Measurement& b) { return a.seconds < b.seconds; });
  if (!measurements.empty())
    return {Decision::measured,
            fmt::format("{} of {} measured", measurements.front().seconds < seconds ? "as fast as any" : "fastest",
                        measurements.size())};
  if (named) return {Decision::asked, "kernel as asked"};
  if (candidates == 1) return {Decision::only, "the only kernel of this backend"};
  return {Decision::model, unmeasured};
}

std::string name(Decision decision) {
  switch (decision) {
    case Decision::asked:
      return "asked";
    case Decision::only:
      return "only";
    case Decision::model:
      return "model";
    case Decision::measured:
      return "measured";
    case Decision::remembered:
      return "remembered";
  }
  throw Error(ErrorKind::internal, "no such decision");
}

ChosenPlan choose_plan(const CsrView& matrix, ValueType type, const PlanRequest& request, Stream& stream) {
  return Chooser(matrix, type, request, stream)();
}

}  // namespace shardmat
