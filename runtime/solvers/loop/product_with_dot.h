// q = A·p and p·q, for methods for symmetric matrices: in one pass over the matrix where the product's kernel can.
#pragma once

#include "comm/communicator.h"
#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/curvature_steps.h"
#include "runtime/context/context.h"
#include "runtime/solvers/loop/method.h"

namespace shardmat {

/// p lies in the product's x(); p and q have values of type T. Threads: as Method.
template <class T>
class ProductWithDot {
 public:
  /// Takes memory for the parts of the sum. Collective; the same error on all ranks.
  explicit ProductWithDot(const MethodInputs& in)
      : sum_(in.context().exchange_context(in.type(), 1), in.columns()), count_(in.product.dot_parts()) {
    in.context().communicator().run_agreed([&] {
      const auto bytes = static_cast<std::size_t>(count_) * sizeof(double);
      require_memory(in.context().device(), static_cast<std::int64_t>(bytes), "the parts of a dot product");
      parts_ = Buffer(in.context().device(), bytes);
    });
  }

  /// q = A·p; pq: one f64 a column in device memory, summed over the ranks. In stream order.
  void operator()(const MethodInputs& in, T* q, double* pq, Stream& stream) {
    on_this_rank(in, q, pq, stream);
    sum_(pq, stream);
  }
  /// The same with this rank's share of the sum.
  void on_this_rank(const MethodInputs& in, T* q, double* pq, Stream& stream) {
    if (count_ > 0 && in.product.dot_parts() == count_) {
      in.product.multiply_with_dot(in.view(q), parts_.as<double>(), stream);
      in.passes.run(krylov::SumOfParts{parts_.as<double>(), pq}, count_, stream);
    } else {
      in.product.multiply(1, 0, in.view(q), stream);
      in.run(krylov::Curvature<T>{static_cast<const T*>(in.product.x().data), q, pq}, stream);
    }
  }

  /// q = A·p. Returns the parts of p·q that the product left in device memory, parts_left() of them; null if it leaves none.
  const double* without_sum(const MethodInputs& in, T* q, Stream& stream) {
    if (count_ > 0 && in.product.dot_parts() == count_) {
      in.product.multiply_with_dot(in.view(q), parts_.as<double>(), stream);
      return parts_.as<double>();
    }
    in.product.multiply(1, 0, in.view(q), stream);
    return nullptr;
  }
  std::int64_t parts_left() const { return count_; }

  /// Vectors that are read for the sum.
  double vectors_read() const { return count_ > 0 ? 0 : 2; }
  std::int64_t device_bytes() const { return static_cast<std::int64_t>(parts_.bytes()); }

 private:
  SumOverRanks sum_;
  std::int64_t count_;  ///< of parts
  Buffer parts_;
};

}  // namespace shardmat
