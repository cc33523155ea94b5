// ‖b − A·x‖₂ while a method iterates, computed anew without a change to what the method computes.
//
// Threads: as DistributedMatrix. Everything is collective.
#pragma once

#include <vector>

#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/step.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/method.h"

namespace shardmat {

class TrueResidual {
 public:
  /// Takes device memory for three vectors and checks it first; the same error on all ranks. What it is given must outlive
  /// it. `sum`: of two values a column.
  TrueResidual(const Product& product, const krylov::Passes& passes, SumOverRanks& sum);

  /// The norm for each column after the first `taken` iterations of the method's cycle. `x`: as the method left it. Takes a
  /// product. Waits; the same on all ranks.
  std::vector<double> operator()(Method& method, std::int64_t taken, const DistributedVector& b, const DistributedVector& x,
                                 Stream& stream);
  /// The x of the last such call.
  DistributedVector& x() { return x_; }
  /// ‖v‖₂ of each column. Waits; the same on all ranks.
  std::vector<double> norms(const DistributedVector& v, Stream& stream);

 private:
  const Product& product_;
  const krylov::Passes& passes_;
  SumOverRanks& sum_;
  DistributedVector x_, r_, slot_;
  Buffer sums_;
};

}  // namespace shardmat
