#include "kernels/plan.h"

#include "kernels/base/error.h"

#include "kernels/base/narrow.h"
#include "kernels/conversion.h"

namespace shardmat {

void Storage::describe(const ConversionInput& input, std::int64_t exact_bytes) {
  const CsrView& matrix = input.matrix();
  narrow<std::int32_t>(matrix.cols, "columns of a matrix on a device");
  device = input.stream().device();
  type = input.type();
  rows = matrix.rows;
  cols = matrix.cols;
  nnz = input.nnz();
  bytes = exact_bytes;
}

void Plan::multiply_with_dot(const void*, const void*, void*, double*, Stream&) const {
  throw Error(ErrorKind::internal, kernel + " does not form dot products");
}

std::string Plan::tunables() const { return tunables_text(storage_->layout, policy); }

}  // namespace shardmat
