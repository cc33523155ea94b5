#include "runtime/row_block.h"

#include <fmt/format.h>

#include "kernels/conversion.h"
#include "runtime/plan_cache.h"

namespace shardmat {
namespace {

ChosenSpmmPlan choose_for_several(const CsrView& rows, ValueType type, std::int64_t right_hand_sides,
                                  const PlanRequest& request, std::optional<LateX> late, Stream& stream) {
  ConversionInput input(rows, type, stream);
  SpmmRequest wanted;
  wanted.kernel = request.kernel;
  wanted.policy = request.policy;
  wanted.measure = request.measure;
  wanted.reproducible = request.reproducible;
  wanted.products = request.products;
  return SpmmTuner(input, late).choose({right_hand_sides}, wanted);
}

}  // namespace

RowBlock::RowBlock(std::int64_t first_row, const CsrView& rows, ValueType type, std::int64_t right_hand_sides,
                   const PlanRequest& request, const PlanCache& cache, std::optional<LateX> late, Stream& stream)
    : first_row_(first_row), width_(right_hand_sides) {
  if (width_ > 1) {
    chosen_ = choose_for_several(rows, type, width_, request, late, stream);
  } else {
    ChosenPlan chosen = choose_remembered_plan(rows, type, request, cache, stream);
    if (late) chosen.plan->storage().expect_late(late->first, stream);
    chosen_ = std::move(chosen);
  }
}

const Storage& RowBlock::storage() const {
  return std::visit([](const auto& c) -> const Storage& { return c.plan->storage(); }, chosen_);
}

bool RowBlock::begins_early() const {
  const auto* several = std::get_if<ChosenSpmmPlan>(&chosen_);
  return several != nullptr ? several->plan->begins_early() : storage().expects_late;
}

void RowBlock::multiply(double alpha, const void* x, double beta, void* y, std::int64_t ldy, Stream& stream) const {
  void* mine = static_cast<char*>(y) + static_cast<std::size_t>(first_row_ * ldy) * size_of(sum_type(storage().type));
  if (const auto* one = std::get_if<ChosenPlan>(&chosen_)) one->plan->multiply(alpha, x, beta, mine, stream);
  else std::get<ChosenSpmmPlan>(chosen_).plan->multiply(alpha, x, width_, beta, mine, ldy, stream);
}

std::int64_t RowBlock::compulsory_bytes(double beta) const {
  const auto value = static_cast<std::int64_t>(size_of(sum_type(storage().type)));
  return storage().bytes + width_ * storage().rows * value * (beta == 0 ? 1 : 2);
}

std::int64_t RowBlock::device_bytes() const {
  return std::visit([](const auto& c) { return c.plan->storage().bytes + c.plan->extra_bytes(); }, chosen_);
}
bool RowBlock::reproducible() const {
  return std::visit([](const auto& c) { return c.plan->reproducible(); }, chosen_);
}

const std::string& RowBlock::kernel() const {
  return std::visit([](const auto& c) -> const std::string& { return c.plan->kernel; }, chosen_);
}
std::string RowBlock::tunables() const {
  return std::visit([](const auto& c) { return c.plan->tunables(); }, chosen_);
}
std::string RowBlock::kernel_and_tunables() const {
  const std::string policy = tunables();
  return policy.empty() ? kernel() : fmt::format("{} {}", kernel(), policy);
}
const std::string& RowBlock::why() const {
  return std::visit([](const auto& c) -> const std::string& { return c.why; }, chosen_);
}
Decision RowBlock::decision() const {
  return std::visit([](const auto& c) { return c.decision; }, chosen_);
}
const std::vector<Measurement>& RowBlock::measurements() const {
  return std::visit([](const auto& c) -> const std::vector<Measurement>& { return c.measurements; }, chosen_);
}
std::vector<Prediction> RowBlock::predictions() const {
  const auto* one = std::get_if<ChosenPlan>(&chosen_);
  return one != nullptr ? one->predictions : std::vector<Prediction>();
}
double RowBlock::choosing_seconds() const {
  return std::visit([](const auto& c) { return c.choosing_seconds; }, chosen_);
}
double RowBlock::choosing_products() const {
  return std::visit([](const auto& c) { return c.choosing_products(); }, chosen_);
}

}  // namespace shardmat
