// Plans for several right-hand sides whose kernels need X and Y in the form of dense_rows.h. Operands in this form are used
// in place. Other operands (column-major, rows not aligned to 16 bytes, a number of columns that does not fill 16 bytes) are
// copied into this form.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "kernels/cuda/dense_rows.h"
#include "kernels/spmm_plan.h"

namespace shardmat::cuda {

/// The copies of a plan. They are allocated with the plan if the orders or the number of columns require copies, else by the
/// first product that needs them.
class DenseCopies {
 public:
  /// `width`: number of columns that a lane loads at once.
  DenseCopies(const Storage& storage, const RightHandSides& rhs, int width);

  /// Calls product(operands) with the operands of Y = alpha·A·X + beta·Y in the form of dense_rows.h. X has type A, Y type
  /// T.
  template <class T, class A = T, class Product>
  void with_rows(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy, Stream& stream,
                 const Product& product) {
    dense::Rows<T, A> v{
        static_cast<T>(alpha), static_cast<const A*>(x), static_cast<T>(beta), static_cast<T*>(y), 0, 0, columns_};
    const bool copy_x = !in_place(x, ldx, rhs_.x, sizeof(A)), copy_y = !in_place(y, ldy, rhs_.y, sizeof(T));
    v.x_bytes = static_cast<std::int32_t>((copy_x ? columns_ : ldx) * static_cast<std::int64_t>(sizeof(A)));
    v.y_bytes = static_cast<std::int32_t>((copy_y ? columns_ : ldy) * static_cast<std::int64_t>(sizeof(T)));
    if (copy_x) v.x = static_cast<const A*>(copy_in(x, ldx, stream));
    if (copy_y) v.y = static_cast<T*>(make(of_y_, rows_, sizeof(T))), v.alpha = T(1), v.beta = T(0);
    product(std::as_const(v));
    if (copy_y) copy_out(alpha, beta, y, ldy, stream);
  }

  std::int64_t bytes() const { return static_cast<std::int64_t>(of_x_.bytes() + of_y_.bytes()); }
  /// True if operands with aligned rows are used in place.
  bool in_place() const { return rhs_.x == DenseOrder::row_major && rhs_.count == columns_; }

 private:
  bool in_place(const void* data, std::int64_t leading, DenseOrder order, std::size_t value_bytes) const;
  void* make(Buffer& buffer, std::int64_t rows, std::size_t value_bytes) const;
  const void* copy_in(const void* x, std::int64_t ldx, Stream& stream);
  void copy_out(double alpha, double beta, void* y, std::int64_t ldy, Stream& stream);

  Device device_;
  ValueType type_;  ///< type of X
  std::int64_t rows_, cols_;
  RightHandSides rhs_;
  int width_;    ///< columns of a lane
  int columns_;  ///< columns of the copies: the number of columns, rounded up to whole lanes
  Buffer of_x_, of_y_;
};

/// A plan that calls product(const S& a, const dense::Rows<T, A>& v, Stream& stream), where A is the storage's value type
/// and T the type of sums. A product that takes only dense::Rows<T> does not support f16 and bf16.
template <class S, class Product>
class RowMajorPlan final : public SpmmPlan {
 public:
  RowMajorPlan(std::shared_ptr<S> a, const RightHandSides& rhs, Product product, std::int64_t product_bytes)
      : SpmmPlan(a, rhs),
        a_(std::move(a)),
        product_(std::move(product)),
        product_bytes_(product_bytes),
        copies_(*a_, rhs, dense::width_for(rhs.count, size_of(a_->type))) {}

  std::int64_t extra_bytes() const override { return product_bytes_ + copies_.bytes(); }
  bool in_place() const { return copies_.in_place(); }

 private:
  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
           Stream& stream) const override {
    dispatch_operands(a_->type, [&](auto of_a, auto of_sum) {
      using A = typename decltype(of_a)::type;
      using T = typename decltype(of_sum)::type;
      if constexpr (std::is_invocable_v<const Product&, const S&, const dense::Rows<T, A>&, Stream&>)
        copies_.with_rows<T, A>(alpha, x, ldx, beta, y, ldy, stream,
                                [&](const dense::Rows<T, A>& v) { product_(*a_, v, stream); });
      else refuse_half(a_->type);
    });
  }

  std::shared_ptr<S> a_;
  Product product_;
  std::int64_t product_bytes_;
  mutable DenseCopies copies_;
};

/// REQUIRES: `storage` is an S. `product_bytes`: device memory that the product holds, without the storage. `early`: the
/// product can overlap the previous kernel.
template <class S, class Product>
std::unique_ptr<SpmmPlan> row_major_plan(std::shared_ptr<Storage> storage, const RightHandSides& rhs, Product product,
                                         std::int64_t product_bytes = 0, bool early = false) {
  auto plan = std::make_unique<RowMajorPlan<S, Product>>(std::static_pointer_cast<S>(std::move(storage)), rhs,
                                                         std::move(product), product_bytes);
  plan->can_begin_early = early && plan->in_place();
  return plan;
}

}  // namespace shardmat::cuda
