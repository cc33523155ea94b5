// A plan made from one function template over the value type, for kernels that need only their storage and policy.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/plan.h"

namespace shardmat {

/// The operands of y = alpha·A·x + beta·y. With beta = 0, y is not read.
template <class T>
struct Operands {
  T alpha;
  const T* x;
  T beta;
  T* y;
  /// Writes y[row], given the sum of the row. For the host.
  void put(std::int64_t row, T sum) const { y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row]; }
};

/// A plan that calls product(const S& a, const Operands<T>& v, Stream& stream), where T is the storage's value type.
template <class S, class Product>
class TypedPlan final : public Plan {
 public:
  TypedPlan(std::shared_ptr<S> a, Product product, bool reproducible)
      : Plan(a), a_(std::move(a)), product_(std::move(product)), reproducible_(reproducible) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      product_(*a_, Operands<T>{static_cast<T>(alpha), static_cast<const T*>(x), static_cast<T>(beta), static_cast<T*>(y)},
               stream);
    });
  }

  bool reproducible() const override { return reproducible_; }

 private:
  std::shared_ptr<S> a_;
  Product product_;
  bool reproducible_;
};

/// REQUIRES: `storage` is an S.
template <class S, class Product>
std::unique_ptr<Plan> typed_plan(std::shared_ptr<Storage> storage, Product product, bool reproducible = true) {
  return std::make_unique<TypedPlan<S, Product>>(std::static_pointer_cast<S>(std::move(storage)), std::move(product),
                                                 reproducible);
}

/// Calls f(TypeTag<std::int64_t>{}) or f(TypeTag<std::int32_t>{}).
template <class F>
decltype(auto) dispatch_offset(bool wide, F&& f) {
  return wide ? f(TypeTag<std::int64_t>{}) : f(TypeTag<std::int32_t>{});
}

}  // namespace shardmat
