// b − A·x of a matrix in f32, with every product and sum in f64: by the host, from the rows that are still in its memory.
//
// The products of a matrix in f32 sum in f32. Near the end of a solve their rounding errors are as large as the residual
// itself. The residual of x as it is stored (f32) is known better than that.
//
// Threads: as Solver. Everything is collective.
#pragma once

#include <string>

#include "kernels/base/device.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"

namespace shardmat {

class ExactResidual {
 public:
  /// Both outlive this object.
  ExactResidual(DistributedMatrix& matrix, const Product& product) : matrix_(matrix), product_(product) {}

  /// Looks whether the host can do it, at the start of a solve. Of a GPU's matrix takes page-locked memory for x and b, and
  /// keeps it. Waits.
  void prepare(Stream& stream);
  /// A solve ends: ready() is false then.
  void end() { ready_ = false; }
  bool ready() const { return ready_; }
  /// Why it is not ready, for the report. Empty for a matrix in f64, whose products are in f64, and if it is ready.
  const std::string& why_not() const { return why_not_; }

  /// r = b − A·x, rounded to f32, as MethodInputs::residual(). Overwrites the product's x(). Waits. REQUIRES: ready().
  void operator()(const void* b, const void* x, void* r, Stream& stream) const;

 private:
  DistributedMatrix& matrix_;
  const Product& product_;
  bool ready_ = false;
  std::string why_not_;
  HostBuffer copies_;  ///< of a GPU: of x, then of b
};

}  // namespace shardmat
