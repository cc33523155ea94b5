// A plan out of a storage and one function, so that a kernel's file holds the kernel and its launch and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/plan.h"

namespace shardmat {

/// y = alpha·A·x + beta·y in the storage's type.
template <class T>
struct Product {
  T alpha;
  const T* x;
  T beta;
  T* y;

  /// y[row] once the row's sum of products is known; y is not read with beta = 0. For host code.
  void finish(std::int64_t row, T sum) const { y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row]; }
};

template <class S, class Run>
class TypedPlan final : public Plan {
 public:
  TypedPlan(std::shared_ptr<S> a, Run run) : Plan(a), a_(std::move(a)), run_(std::move(run)) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run_(*a_, Product<T>{static_cast<T>(alpha), static_cast<const T*>(x), static_cast<T>(beta), static_cast<T*>(y)},
           stream);
    });
  }

 private:
  std::shared_ptr<S> a_;
  Run run_;
};

/// A plan whose product is run(const S&, Product<T>, Stream&). REQUIRES: `storage` is an S; run gives the same y every time.
template <class S, class Run>
std::unique_ptr<Plan> make_typed_plan(std::shared_ptr<Storage> storage, Run run) {
  return std::make_unique<TypedPlan<S, Run>>(std::static_pointer_cast<S>(std::move(storage)), std::move(run));
}

/// Calls f(TypeTag<std::int64_t>{}) or f(TypeTag<std::int32_t>{}).
template <class F>
decltype(auto) dispatch_offset(bool wide, F&& f) {
  return wide ? f(TypeTag<std::int64_t>{}) : f(TypeTag<std::int32_t>{});
}

}  // namespace shardmat
