// What every format is converted from: the host's matrix, and the same matrix in CSR on the device for conversions that run
// there. Made once per matrix, so that formats tried one after another share the upload and what they learned.
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
#include "kernels/matrix/statistics.h"
#include "kernels/policy.h"

namespace shardmat {

struct CsrStorage;

class ConversionInput {
 public:
  /// REQUIRES: a validated matrix with fewer than 2^31 columns, though the columns of a row may come in any order, as they
  /// do where a part's were renumbered; alive as long as this object, and the stream, too.
  ConversionInput(const CsrView& matrix, ValueType type, Stream& stream);

  const CsrView& matrix() const { return matrix_; }
  /// The matrix with the columns of each row ascending, for formats that search or merge rows: matrix() itself if they are,
  /// or a copy, made by the first call. Parallel.
  const CsrView& ascending();
  ValueType type() const { return type_; }
  Stream& stream() const { return stream_; }
  const RowStatistics& rows() const { return rows_; }
  std::int64_t value_bytes() const { return static_cast<std::int64_t>(size_of(type_)); }

  /// From now on the matrix has these values, one a nonzero as before, on the same pattern; they must stay as long as this
  /// object, or until they are replaced. csr() follows, also where it became the storage of format csr, so no product may
  /// run on that meanwhile. What ascending() returned before must not be used any more; analyses that were remembered stay.
  void replace_values(std::span<const double> values);

  /// The matrix as CSR on the stream's device; uploaded by the first call. Memory is checked before.
  std::shared_ptr<CsrStorage> csr();

  /// What make() returned for this key the first time: lets bytes() and convert() of one format share an analysis.
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
  std::optional<CsrView> ascending_;
  HostVector<std::int64_t> ascending_columns_;
  HostVector<double> ascending_values_;
  std::shared_ptr<CsrStorage> csr_;
  std::map<std::string, std::any> kept_;
};

}  // namespace shardmat
