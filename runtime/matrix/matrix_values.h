// The values of a matrix: new ones on the same pattern, those near the diagonal, and rows of known values.
//
// Threads: as DistributedMatrix. What is collective says so in DistributedMatrix.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "comm/exchange/column_map.h"
#include "kernels/base/dense.h"
#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/choose/value_map.h"
#include "runtime/maps/row_map.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/matrix/matrix_rows.h"

namespace shardmat {

class Product;
class ValueRoute;

class MatrixValues {
 public:
  /// `route`: from the values that this rank gives to those of `rows`; null: they are the same. `first_row`: as LoadedPart.
  /// Keeps the references.
  MatrixValues(MatrixRows& rows, const RowMap& y_rows, const RowMap& x_rows, const ColumnMap& columns,
               std::shared_ptr<const ValueRoute> route, std::int64_t first_row, const MatrixOptions& options);

  /// See the functions of DistributedMatrix with these names.
  void update(const ConstDense& values, Stream& stream);
  std::uint64_t version() const { return version_; }
  void zero_rows_columns(std::span<const std::int64_t> rows, double diagonal, const DistributedVector* x,
                         DistributedVector* b, const std::function<std::unique_ptr<Product>()>& make_product,
                         Stream& stream);
  DistributedVector diagonal(const std::shared_ptr<const RowMap>& map, Stream& stream);
  DiagonalBlocks block_diagonal(std::int64_t size, Stream& stream);

 private:
  /// Entries of the diagonal blocks. The picker reads them again after new values.
  struct Diagonal {
    ValuePicker picker;
    Buffer values;
  };
  static constexpr std::int64_t kPoints = 0;  ///< size of the diagonal: entries as the rows lie, not blocks by their places
  Diagonal& find_diagonal(std::int64_t size, Stream& stream);
  /// Index of each entry in the given values, or -1, and the entry.
  struct DiagonalPlaces {
    HostVector<std::int64_t> positions;
    HostVector<double> values;
  };
  DiagonalPlaces diagonal_places(const CsrView& csr, std::int64_t size) const;
  HostVector<double> bring(const ConstDense& values, Stream& stream) const;
  void update_nonzeros(const ConstDense& values, Stream& stream);
  void require_zeroable(std::span<const std::int64_t> zeroed, double diagonal, const DistributedVector* x,
                        const DistributedVector* b) const;
  HostVector<double> zeroed_values(const HostVector<double>& mine, const HostVector<double>& all, double diagonal) const;
  void move_known_values(const Product& of_one, const HostVector<double>& mine, double diagonal, const DistributedVector& x,
                         DistributedVector& b, Stream& stream) const;

  MatrixRows& rows_;
  const RowMap &y_rows_, &x_rows_;
  const ColumnMap& columns_;
  std::shared_ptr<const ValueRoute> route_;
  std::int64_t first_row_;
  const MatrixOptions& options_;
  Context& context_;
  std::map<std::int64_t, Diagonal> diagonals_;  ///< by block size, or kPoints
  std::uint64_t version_ = 0;
  Buffer staging_;  ///< new values on their way from the host
};

}  // namespace shardmat
