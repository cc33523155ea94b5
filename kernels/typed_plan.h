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

/// Tag: no dot product is computed.
struct NoDot {};
/// Parts of own·y (Plan::multiply_with_dot()).
template <class T>
struct DotInto {
  const T* own;
  double* parts;
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

/// A plan that calls product(const S& a, const Operands<T>& v, D dot, Stream& stream), where D is NoDot or DotInto<T>.
/// dot_parts(const S& a): how many parts that leaves, or 0 if it has no dot products.
template <class S, class DotParts, class Product>
class TypedDotPlan final : public Plan {
 public:
  TypedDotPlan(std::shared_ptr<S> a, DotParts dot_parts, Product product)
      : Plan(a), a_(std::move(a)), dot_parts_(std::move(dot_parts)), product_(std::move(product)) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    dispatch(a_->type, [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      product_(*a_, Operands<T>{static_cast<T>(alpha), static_cast<const T*>(x), static_cast<T>(beta), static_cast<T*>(y)},
               NoDot{}, stream);
    });
  }

  std::int64_t dot_parts() const override { return dot_parts_(*a_); }
  void multiply_with_dot(const void* x, const void* own, void* y, double* parts, Stream& stream) const override {
    dispatch(a_->type, [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      product_(*a_, Operands<T>{T(1), static_cast<const T*>(x), T(0), static_cast<T*>(y)},
               DotInto<T>{static_cast<const T*>(own), parts}, stream);
    });
  }

 private:
  std::shared_ptr<S> a_;
  DotParts dot_parts_;
  Product product_;
};

/// REQUIRES: `storage` is an S.
template <class S, class DotParts, class Product>
std::unique_ptr<Plan> typed_dot_plan(std::shared_ptr<Storage> storage, DotParts dot_parts, Product product) {
  return std::make_unique<TypedDotPlan<S, DotParts, Product>>(std::static_pointer_cast<S>(std::move(storage)),
                                                              std::move(dot_parts), std::move(product));
}

/// Calls f(TypeTag<std::int64_t>{}) or f(TypeTag<std::int32_t>{}).
template <class F>
decltype(auto) dispatch_offset(bool wide, F&& f) {
  return wide ? f(TypeTag<std::int64_t>{}) : f(TypeTag<std::int32_t>{});
}

}  // namespace shardmat
