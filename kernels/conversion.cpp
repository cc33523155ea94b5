#include "kernels/conversion.h"

#include "kernels/formats/csr.h"

namespace shardmat {

ConversionInput::ConversionInput(const CsrView& matrix, ValueType type, Stream& stream)
    : matrix_(matrix), type_(type), stream_(stream), rows_(row_statistics(matrix.row_ptr)) {}

std::shared_ptr<CsrStorage> ConversionInput::csr() {
  if (!csr_) {
    require_memory(stream_.device(), csr_bytes(*this, {}), "the matrix in format csr");
    csr_ = std::static_pointer_cast<CsrStorage>(convert_csr(*this, {}));
  }
  return csr_;
}

}  // namespace shardmat
