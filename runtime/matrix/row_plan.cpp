#include "runtime/matrix/row_plan.h"

#include <fmt/format.h>

#include "kernels/choose/registry.h"

namespace shardmat {

const std::shared_ptr<Storage>& RowPlan::shared_storage() const {
  return std::visit([](const auto& c) -> const std::shared_ptr<Storage>& { return c.plan->shared_storage(); }, chosen_);
}

void RowPlan::move_to(const std::shared_ptr<Storage>& storage, Stream& stream) {
  const Backend backend = storage->device.backend;
  if (auto* several = std::get_if<ChosenSpmmPlan>(&chosen_)) {
    const bool early = several->plan->can_begin_early;
    several->plan = make_spmm_plan(find_spmm_kernel(several->plan->kernel, backend), storage,
                                   several->plan->right_hand_sides(), several->plan->policy, stream);
    several->plan->can_begin_early = early;
  } else {
    auto& plan = std::get<ChosenPlan>(chosen_).plan;
    plan = make_plan(find_kernel(plan->kernel, backend), storage, plan->policy, stream);
  }
}

bool RowPlan::begins_early() const {
  const auto* several = std::get_if<ChosenSpmmPlan>(&chosen_);
  return several != nullptr ? several->plan->begins_early() : storage().expects_late;
}

void RowPlan::multiply(double alpha, const void* x, double beta, void* y, std::int64_t ldy, Stream& stream) const {
  void* mine = static_cast<char*>(y) + static_cast<std::size_t>(first_row_ * ldy) * size_of(sum_type(storage().type));
  if (const auto* one = std::get_if<ChosenPlan>(&chosen_)) one->plan->multiply(alpha, x, beta, mine, stream);
  else std::get<ChosenSpmmPlan>(chosen_).plan->multiply(alpha, x, width_, beta, mine, ldy, stream);
}

std::int64_t RowPlan::dot_parts() const {
  const auto* one = std::get_if<ChosenPlan>(&chosen_);
  return one != nullptr ? one->plan->dot_parts() : 0;
}

void RowPlan::multiply_with_dot(const void* x, const void* own, void* y, double* parts, Stream& stream) const {
  std::get<ChosenPlan>(chosen_).plan->multiply_with_dot(x, own, y, parts, stream);
}

std::int64_t RowPlan::compulsory_bytes(double beta) const {
  const auto value = static_cast<std::int64_t>(size_of(sum_type(storage().type)));
  return storage().bytes + width_ * storage().rows * value * (beta == 0 ? 1 : 2);
}

std::int64_t RowPlan::extra_bytes() const {
  return std::visit([](const auto& c) { return c.plan->extra_bytes(); }, chosen_);
}
bool RowPlan::reproducible() const {
  return std::visit([](const auto& c) { return c.plan->reproducible(); }, chosen_);
}

const std::string& RowPlan::kernel() const {
  return std::visit([](const auto& c) -> const std::string& { return c.plan->kernel; }, chosen_);
}
std::string RowPlan::tunables() const {
  return std::visit([](const auto& c) { return c.plan->tunables(); }, chosen_);
}
std::string RowPlan::kernel_and_tunables() const {
  const std::string policy = tunables();
  return policy.empty() ? kernel() : fmt::format("{} {}", kernel(), policy);
}
const std::string& RowPlan::why() const {
  return std::visit([](const auto& c) -> const std::string& { return c.why; }, chosen_);
}
Decision RowPlan::decision() const {
  return std::visit([](const auto& c) { return c.decision; }, chosen_);
}
const std::vector<Measurement>& RowPlan::measurements() const {
  return std::visit([](const auto& c) -> const std::vector<Measurement>& { return c.measurements; }, chosen_);
}
std::vector<Prediction> RowPlan::predictions() const {
  const auto* one = std::get_if<ChosenPlan>(&chosen_);
  return one != nullptr ? one->predictions : std::vector<Prediction>();
}
double RowPlan::choosing_seconds() const {
  return std::visit([](const auto& c) { return c.choosing_seconds; }, chosen_);
}
double RowPlan::choosing_products() const {
  return std::visit([](const auto& c) { return c.choosing_products(); }, chosen_);
}

}  // namespace shardmat
