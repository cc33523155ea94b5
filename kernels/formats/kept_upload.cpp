#include "kernels/formats/kept_upload.h"

#include "kernels/formats/csr.h"

namespace shardmat {
namespace {

thread_local KeptUpload* innermost = nullptr;

}  // namespace

KeptUpload::KeptUpload(const CsrView& rows)
    : row_ptr_(rows.row_ptr.data()), rows_(rows.rows), nnz_(rows.nnz()), outer_(innermost) {
  innermost = this;
}

KeptUpload::~KeptUpload() { innermost = outer_; }

bool KeptUpload::is_of(const CsrView& rows) const {
  return rows.row_ptr.data() == row_ptr_ && rows.rows == rows_ && rows.nnz() == nnz_;
}

std::shared_ptr<const CsrStorage> KeptUpload::find(const CsrView& rows) {
  return innermost != nullptr && innermost->is_of(rows) ? innermost->copy_ : nullptr;
}

std::shared_ptr<const CsrStorage> KeptUpload::find_exact(const CsrView& rows) {
  std::shared_ptr<const CsrStorage> found = find(rows);
  if (!found || found->type == ValueType::f64 || (found->type == ValueType::f32 && rows.values.is_narrow())) return found;
  return nullptr;
}

void KeptUpload::keep(const CsrView& rows, const std::shared_ptr<const CsrStorage>& copy) {
  if (copy->device.backend != Backend::host && innermost != nullptr && innermost->is_of(rows)) innermost->copy_ = copy;
}

void KeptUpload::forget() {
  if (innermost != nullptr) innermost->copy_.reset();
}

}  // namespace shardmat
