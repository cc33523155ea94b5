#include "kernels/choose/spmm_tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "kernels/choose/ordered_format.h"
#include "kernels/choose/registry.h"

namespace shardmat {
namespace {

constexpr int kWarmUps = 1, kRepetitions = 5;
constexpr double kHopeless = 1.5;  // times the best; after two repetitions

/// The layout in which kernels for many right-hand sides want a format.
Policy spmm_layout(const std::string& name, ConversionInput& input) {
  const Format& format = find_format(name);
  return format.spmm_layout != nullptr ? format.spmm_layout(input) : format.layouts(input).front();
}

/// Products that a plan's making is set against: a program that asks for few may be run again.
double expected_products(const SpmmRequest& request) { return std::max(2000.0, request.products); }

bool holds(std::string_view format, ValueType type) { return !is_half(type) || find_format(format).takes_halves; }

}  // namespace

const Policy& SpmmTuner::layout_of(const std::string& format, bool same_bits) {
  const std::pair key(format, same_bits);
  const auto known = layouts_.find(key);
  if (known != layouts_.end()) return known->second;
  return layouts_.emplace(key, same_bits ? ordered_layout(find_format(format), input_) : spmm_layout(format, input_))
      .first->second;
}

bool SpmmTuner::grows(const std::string& format) {
  if (format == reference_format().name) return false;
  const auto known = grows_.find(format);
  if (known != grows_.end()) return known->second;
  return grows_[format] = is_larger_than_csr(find_format(format), input_, layout_of(format, false));
}

std::shared_ptr<Storage> SpmmTuner::stored(const SpmmKernel& kernel, bool same_bits) {
  const std::string format(kernel.format);
  std::shared_ptr<Storage>& storage = stored_[{format, same_bits}];
  if (!storage) {
    storage = store(find_format(format), input_, layout_of(format, same_bits));
    if (late_) storage->expect_late(late_->first, input_.stream());
  }
  return storage;
}

std::vector<Policy> SpmmTuner::policies(const SpmmKernel& kernel, const RightHandSides& rhs, bool same_bits) {
  require_count(rhs.count);
  const std::string format(kernel.format);
  if (refused_.count(format) != 0 || !holds(format, input_.type())) return {};
  try {
    const std::shared_ptr<Storage> storage = stored(kernel, same_bits);
    return kernel.supports(*storage, rhs) ? kernel.policies(*storage, rhs) : std::vector<Policy>{};
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::resources) throw;
    refused_.emplace(format, e);
    return {};
  }
}

std::unique_ptr<SpmmPlan> SpmmTuner::make(const SpmmKernel& kernel, const RightHandSides& rhs, const Policy& policy,
                                          bool same_bits) {
  return make_spmm_plan(kernel, stored(kernel, same_bits), rhs, policy, input_.stream());
}

/// What the request leaves open, in the order of the list.
std::vector<SpmmTuner::Candidate> SpmmTuner::candidates(const RightHandSides& rhs, const SpmmRequest& request) {
  const Backend backend = input_.stream().device().backend;
  std::vector<Candidate> found;
  const auto add = [&](const SpmmKernel& kernel) {
    for (const Policy& policy : policies(kernel, rhs, request.same_bits)) {
      const Candidate candidate{&kernel, policy.with(request.policy)};
      const Policy& layout = layout_of(std::string(kernel.format), request.same_bits);
      if (request.same_bits && !is_ordered(kernel, input_.type(), layout, candidate.policy, request.kernel != "auto"))
        continue;
      const auto same = [&](const Candidate& c) { return c.kernel == &kernel && c.policy == candidate.policy; };
      if (std::none_of(found.begin(), found.end(), same)) found.push_back(candidate);
    }
  };
  require_storage(backend, request.storage);
  if (request.kernel != "auto") {
    const SpmmKernel& kernel = find_spmm_kernel(request.kernel, backend);
    require_stores(kernel.name, kernel.format, request.storage);
    add(kernel);
    if (found.empty() && request.same_bits) throw not_ordered(kernel.name, input_.type());
  } else if (request.same_bits) {
    const std::string_view format = ordered_format(input_, request.storage).name;
    for (const SpmmKernel& kernel : spmm_kernels())
      if (kernel.backend == backend && kernel.promising != nullptr && kernel.format == format) add(kernel);
    if (found.empty()) throw not_ordered(request.kernel, input_.type());
  } else {
    for (const SpmmKernel& kernel : spmm_kernels()) {
      const std::string format(kernel.format);
      const bool asked = request.tune && kernel.with_tune;
      if (kernel.backend != backend || (kernel.promising == nullptr && !asked) || !holds(format, input_.type()) ||
          !stores(format, request.storage))
        continue;
      if (!asked && !kernel.promising(input_, layout_of(format, false))) continue;
      if (request.storage == StoredEntries::all && grows(format)) continue;
      add(kernel);
    }
  }
  if (!found.empty()) return found;
  if (!refused_.empty()) throw refused_.begin()->second;
  throw Error(ErrorKind::usage,
              fmt::format("kernel {} cannot take this matrix in {} with {} right-hand sides; use another kernel, or auto",
                          request.kernel, name(input_.type()), rhs.count),
              "kernel");
}

namespace {

/// Measures one candidate after another and keeps the best.
class Contest {
 public:
  /// `late`: as in SpmmTuner.
  Contest(ConversionInput& input, const RightHandSides& rhs, const SpmmRequest& request, std::optional<LateX> late)
      : input_(input), rhs_(rhs), request_(request), late_(late) {}

  /// Takes memory for X and Y; false if there is none.
  bool take_operands() {
    Stream& stream = input_.stream();
    const auto bytes = [&](std::int64_t rows, ValueType type) {
      return static_cast<std::size_t>(rows) * static_cast<std::size_t>(rhs_.count) * size_of(type);
    };
    const CsrView& matrix = input_.matrix();
    const std::size_t x_bytes = bytes(matrix.cols, input_.type()), y_bytes = bytes(matrix.rows, sum_type(input_.type()));
    // Twice: kernels may copy X and Y into another order.
    if (available_memory(stream.device()) / 2 <= static_cast<std::int64_t>(x_bytes + y_bytes)) return false;
    x_ = Buffer(stream.device(), x_bytes);
    y_ = Buffer(stream.device(), y_bytes);
    fill_bytes(x_.data(), 0, x_.bytes(), stream);
    return true;
  }

  /// `making_seconds`: what the plan took to make, without the matrix in its format.
  void enter(std::unique_ptr<SpmmPlan> plan, double making_seconds) {
    double its = cost(*plan);
    bool better = true;
    if (chosen.plan) {
      better = overtakes(
                   its, [&] { return cost(*plan); }, best_cost_, [&] { return cost(*chosen.plan); },
                   input_.stream().device().backend) &&
               making_seconds - best_making_seconds_ <= expected_products(request_) * (best_cost_ - its);
      chosen.product_seconds = chosen.measurements[best_place_].seconds = best_cost_ - waiting(*chosen.plan);
    }
    chosen.measurements.push_back({plan->kernel, plan->tunables(), its - waiting(*plan)});
    if (!better) return;
    best_cost_ = its, best_making_seconds_ = making_seconds, best_place_ = chosen.measurements.size() - 1;
    chosen.product_seconds = chosen.measurements.back().seconds;
    chosen.plan = std::move(plan);
  }

  ChosenSpmmPlan chosen;

 private:
  double waiting(const SpmmPlan& plan) const { return late_ && !plan.begins_early() ? late_->seconds : 0; }
  double cost(const SpmmPlan& plan) {
    TimingOptions timing;
    timing.repetitions = kRepetitions;
    timing.warm_ups = kWarmUps;
    timing.warm_up_seconds = chosen.plan ? 0 : kUsualWarmUp;
    timing.flush = request_.flush;
    if (chosen.plan) timing.hopeless_seconds = kHopeless * chosen.product_seconds;
    const CsrView& matrix = input_.matrix();
    const auto leading = [&](DenseOrder order, std::int64_t rows) {
      return order == DenseOrder::row_major ? rhs_.count : rows;
    };
    const auto product = [&] {
      plan.multiply(1, x_.data(), leading(rhs_.x, matrix.cols), 0, y_.data(), leading(rhs_.y, matrix.rows), input_.stream());
    };
    Stream& stream = input_.stream();
    return seconds_to_compare(time_work(product, stream, timing), stream.device().backend) + waiting(plan);
  }

  ConversionInput& input_;
  const RightHandSides& rhs_;
  const SpmmRequest& request_;
  std::optional<LateX> late_;
  Buffer x_, y_;
  double best_cost_ = 0, best_making_seconds_ = 0;
  std::size_t best_place_ = 0;  // among the measurements
};

}  // namespace

ChosenSpmmPlan SpmmTuner::choose(const RightHandSides& rhs, const SpmmRequest& request) {
  require_count(rhs.count);
  const bool named = request.kernel != "auto";
  if (!named && !request.policy.empty())
    throw Error(ErrorKind::usage, "a policy belongs to one kernel: name the kernel", "kernel");
  const Timer timer;
  if (!named) input_.keep_rows();  // for several formats
  const std::vector<Candidate> open = candidates(rhs, request);
  Contest contest(input_, rhs, request, late_);
  const bool pays = request.measure && pays_to_measure(input_.stream().device().backend, request.products);
  const bool measures = (request.tune || pays) && open.size() > 1 && input_.matrix().nnz() > 0 && contest.take_operands();
  ChosenSpmmPlan& chosen = contest.chosen;
  std::optional<Error> no_memory;  // why the last candidate that did not fit has no plan
  for (const Candidate& candidate : open) {
    if (chosen.plan && !measures) break;
    try {
      const Timer making;
      auto plan = make(*candidate.kernel, rhs, candidate.policy, request.same_bits);
      const double making_seconds = making.seconds();
      if (request.reproducible && !plan->reproducible()) continue;
      if (measures) contest.enter(std::move(plan), making_seconds);
      else chosen.plan = std::move(plan);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::resources) throw;
      no_memory = e;
    }
  }
  if (!chosen.plan && no_memory) throw *no_memory;
  if (!chosen.plan)
    throw Error(ErrorKind::usage,
                named ? fmt::format("kernel {} is not reproducible; use another kernel, or auto", request.kernel)
                      : "no kernel that takes this matrix is reproducible; do without reproducible results",
                named ? "kernel" : "reproducible");
  Choice choice = describe_choice(chosen.measurements, chosen.product_seconds, named, open.size(),
                                  "first of the list; nothing was measured");
  chosen.decision = choice.decision;
  chosen.why = std::move(choice.why);
  if (chosen.decision == Decision::measured && chosen.measurements.front().seconds < chosen.product_seconds)
    chosen.why += fmt::format(", counting what a plan takes to make, over {:.0f} products{}", expected_products(request),
                              late_ ? ", and what it waits for X" : "");
  chosen.choosing_seconds = timer.seconds();
  return std::move(chosen);
}

}  // namespace shardmat
