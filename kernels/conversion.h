// The input of every conversion: the matrix on the host, and the same matrix in CSR on the device for conversions that run
// there. Made once for a matrix, so that all formats share the upload and analyses of the matrix.
#pragma once

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"
#include "kernels/matrix/row_release.h"
#include "kernels/matrix/statistics.h"
#include "kernels/policy.h"

namespace shardmat {

struct CsrStorage;

class ConversionInput {
 public:
  /// REQUIRES: a validated matrix with fewer than 2^31 columns; only the columns of a row may come in any order, as after
  /// renumbering. Matrix and stream outlive this object. Throws as require_rows().
  ConversionInput(const CsrView& matrix, ValueType type, Stream& stream);

  /// A matrix that is on the device alone: for conversions that read csr() there, with a layout that is chosen without
  /// looking at the rows.
  ConversionInput(std::shared_ptr<CsrStorage> on_device, Stream& stream);

  const CsrView& matrix() const { return matrix_; }
  std::int64_t nnz() const;
  /// The matrix with ascending columns in each row, for formats that search or merge rows. Returns matrix() if its columns
  /// ascend, else a copy that the first call makes. Parallel.
  const CsrView& ascending();
  /// True if the columns of every row ascend. The first call looks at all of them. Parallel.
  bool ascends();
  ValueType type() const { return type_; }
  Stream& stream() const { return stream_; }
  const RowStatistics& rows() const { return rows_; }
  std::int64_t value_bytes() const { return static_cast<std::int64_t>(size_of(type_)); }

  /// True if a conversion may release the rows that it has read (CsrView::release).
  bool releases() const { return matrix_.release != nullptr; }
  /// Before the matrix is converted more than once: no conversion releases its rows.
  void keep_rows() { matrix_.release = nullptr; }
  /// The nonzeros first … last - 1 of matrix() were read for the last time. Called by formats once all memory of the storage
  /// is allocated, at most once for a nonzero, from any thread. Does nothing unless releases().
  void release(std::int64_t first, std::int64_t last) const {
    if (releases()) matrix_.release->release(matrix_, first, last);
  }
  /// Throws Error(usage) if rows of the matrix were released.
  void require_rows() const;

  /// Replaces the values, on the same pattern and in the same order. `values` must stay valid as long as this object, or
  /// until the next call. Updates csr() too, which may be the storage of format csr: no product may run on it meanwhile.
  /// Results of earlier ascending() calls become invalid; remembered analyses stay valid.
  void replace_values(const ValueView& values);

  /// The matrix as CSR on the stream's device. The first call checks memory and uploads the matrix.
  std::shared_ptr<CsrStorage> csr();

  /// Returns the result of make() for this key; calls make() only the first time. So bytes() and convert() of a format share
  /// an analysis.
  template <class T>
  T& remember(const std::string& key, const std::function<T()>& make) {
    std::any& kept = kept_[key];
    if (!kept.has_value()) kept = std::make_shared<T>(make());
    return *std::any_cast<std::shared_ptr<T>&>(kept);
  }

 private:
  CsrView matrix_;
  ValueType type_;
  Stream& stream_;
  RowStatistics rows_;
  std::optional<bool> ascends_;
  std::optional<CsrView> ascending_;
  HostVector<std::int64_t> ascending_columns_;
  HostVector<double> ascending_values_;
  std::shared_ptr<CsrStorage> csr_;
  std::map<std::string, std::any> kept_;
};

}  // namespace shardmat
