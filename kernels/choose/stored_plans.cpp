#include "kernels/choose/stored_plans.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "kernels/choose/ordered_format.h"
#include "kernels/choose/registry.h"
#include "kernels/measure.h"

namespace shardmat {
namespace {

constexpr int kRepetitions = 2, kWarmUps = 1;
constexpr double kHopeless = 1.5;  // times the best
constexpr double kBudgetProducts = 30;

/// Tries candidates one after another and keeps the best plan. P is Plan or SpmmPlan, Chosen what is told about one.
template <class P, class Chosen>
class Comparison {
 public:
  /// `product` multiplies with a plan; empty: the first candidate is taken.
  Comparison(Stream& stream, std::function<void(const P&)> product, std::function<double(const P&)> waiting)
      : stream_(stream), product_(std::move(product)), waiting_(std::move(waiting)) {}

  bool open() const {
    if (!product_) return !chosen_.plan;
    return !chosen_.plan || timer_.seconds() < kBudgetProducts * chosen_.product_seconds;
  }
  /// Adds what make() makes, unless it has no memory or is not reproducible where that is asked for.
  template <class Make>
  void attempt(bool reproducible, const Make& make) {
    try {
      std::unique_ptr<P> plan = make();
      if (!reproducible || plan->reproducible()) add(std::move(plan));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::resources) throw;
      no_memory_ = error;
    }
  }
  void add(std::unique_ptr<P> plan) {
    ++candidates_;
    if (!product_) {
      chosen_.plan = std::move(plan);
      return;
    }
    TimingOptions timing;
    timing.repetitions = kRepetitions;
    timing.warm_ups = kWarmUps;
    if (chosen_.plan) timing.hopeless_seconds = kHopeless * chosen_.product_seconds;
    const double seconds = time_work([&] { product_(*plan); }, stream_, timing).min, cost = seconds + waiting_(*plan);
    chosen_.measurements.push_back({plan->kernel, plan->tunables(), seconds});
    if (chosen_.plan && cost >= best_cost_) return;
    best_cost_ = cost;
    chosen_.product_seconds = seconds;
    chosen_.plan = std::move(plan);
  }
  /// What was chosen; none if there was no candidate.
  std::optional<Chosen> result(const PlanRequest& request) {
    if (!chosen_.plan && no_memory_) throw *no_memory_;
    if (!chosen_.plan) return std::nullopt;
    Choice choice = describe_choice(chosen_.measurements, chosen_.product_seconds, request.kernel != "auto", candidates_,
                                    "the first that runs on the stored format; nothing was measured");
    chosen_.decision = choice.decision;
    chosen_.why = "on the matrix as stored: " + choice.why;
    chosen_.choosing_seconds = timer_.seconds();
    return std::move(chosen_);
  }

 private:
  Stream& stream_;
  std::function<void(const P&)> product_;
  std::function<double(const P&)> waiting_;
  Timer timer_;
  Chosen chosen_;
  double best_cost_ = 0;
  std::size_t candidates_ = 0;
  std::optional<Error> no_memory_;  ///< why the last candidate that did not fit has no plan
};

/// X and Y to measure with; empty where nothing is measured.
struct Operands {
  Buffer x, y;
};

Operands operands_to_measure(StoredFormats storages, std::int64_t columns, bool measure, Stream& stream) {
  const Storage& a = *storages.front();
  const auto bytes = [&](std::int64_t rows, ValueType type) {
    return static_cast<std::size_t>(rows * columns) * size_of(type);
  };
  const std::size_t x = bytes(a.cols, a.type), y = bytes(a.rows, sum_type(a.type));
  const bool fits = available_memory(stream.device()) / 2 > static_cast<std::int64_t>(x + y);
  if (!measure || a.nnz == 0 || !fits) return {};
  Operands operands{Buffer(stream.device(), x), Buffer(stream.device(), y)};
  fill_bytes(operands.x.data(), 0, x, stream);
  return operands;
}

void require_no_policy_alone(const std::string& kernel, const std::string& policy) {
  if (kernel == "auto" && !policy.empty())
    throw Error(ErrorKind::usage, "a policy belongs to one kernel: name the kernel, too");
}

}  // namespace

std::optional<ChosenPlan> choose_stored_plan(StoredFormats storages, const RowStatistics& rows, const PlanRequest& request,
                                             Stream& stream) {
  require_no_policy_alone(request.kernel, request.policy);
  if (storages.empty()) return std::nullopt;
  const Backend backend = stream.device().backend;
  const bool named = request.kernel != "auto";
  require_storage(backend, request.storage);
  if (named) require_stores(request.kernel, find_kernel(request.kernel, backend).format, request.storage);
  const Operands o = operands_to_measure(storages, 1, request.measure && pays_to_measure(backend, request.products), stream);
  std::function<void(const Plan&)> product;
  if (o.y.data() != nullptr) product = [&](const Plan& plan) { plan.multiply(1, o.x.data(), 0, o.y.data(), stream); };
  Comparison<Plan, ChosenPlan> comparison(stream, product, [](const Plan&) { return 0.0; });
  for (const Kernel& kernel : kernels())
    for (const auto& storage : storages) {
      const bool wanted = named ? kernel.name == request.kernel : kernel.automatic && stores(kernel.format, request.storage);
      if (!wanted || kernel.backend != backend || kernel.format != storage->format || !kernel.supports(*storage)) continue;
      for (const Policy& policy : kernel.policies(rows)) {
        if (!comparison.open()) break;
        const Policy wanted_policy = policy.with(storage->layout.split(request.policy).second);
        if (request.same_bits && !is_ordered(kernel, storage->type, storage->layout, wanted_policy, named)) continue;
        comparison.attempt(request.reproducible, [&] { return make_plan(kernel, storage, wanted_policy, stream); });
      }
    }
  return comparison.result(request);
}

std::optional<ChosenSpmmPlan> choose_stored_spmm_plan(StoredFormats storages, std::int64_t right_hand_sides,
                                                      const SpmmRequest& request, std::optional<LateX> late,
                                                      Stream& stream) {
  require_no_policy_alone(request.kernel, request.policy);
  require_count(right_hand_sides);
  if (storages.empty()) return std::nullopt;
  const Backend backend = stream.device().backend;
  const bool named = request.kernel != "auto";
  require_storage(backend, request.storage);
  if (named) require_stores(request.kernel, find_spmm_kernel(request.kernel, backend).format, request.storage);
  const RightHandSides rhs{right_hand_sides};
  const Operands o =
      operands_to_measure(storages, right_hand_sides, request.measure && pays_to_measure(backend, request.products), stream);
  std::function<void(const SpmmPlan&)> product;
  if (o.y.data() != nullptr)
    product = [&](const SpmmPlan& plan) { plan.multiply(1, o.x.data(), rhs.count, 0, o.y.data(), rhs.count, stream); };
  Comparison<SpmmPlan, ChosenSpmmPlan> comparison(
      stream, product, [&](const SpmmPlan& plan) { return late && !plan.begins_early() ? late->seconds : 0; });
  for (const SpmmKernel& kernel : spmm_kernels())
    for (const auto& storage : storages) {
      const bool wanted =
          named ? kernel.name == request.kernel : kernel.promising != nullptr && stores(kernel.format, request.storage);
      if (!wanted || kernel.backend != backend || kernel.format != storage->format || !kernel.supports(*storage, rhs))
        continue;
      for (const Policy& policy : kernel.policies(*storage, rhs)) {
        if (!comparison.open()) break;
        const Policy wanted_policy = policy.with(request.policy);
        if (request.same_bits && !is_ordered(kernel, storage->type, storage->layout, wanted_policy, named)) continue;
        comparison.attempt(request.reproducible,
                           [&] { return make_spmm_plan(kernel, storage, rhs, wanted_policy, stream); });
      }
    }
  PlanRequest described;
  described.kernel = request.kernel;
  return comparison.result(described);
}

}  // namespace shardmat
