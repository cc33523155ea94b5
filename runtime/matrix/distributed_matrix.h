// A matrix spread over the ranks by rows that stays on their devices: it makes products of any number of right-hand sides.
//
// Threads: one thread at a time uses a matrix with its products and vectors, and need not be the thread that made it. What
// is collective is called by one thread of each rank, in the same order on all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/exchange/exchange.h"
#include "kernels/base/dense.h"
#include "kernels/base/host_vector.h"
#include "kernels/value_map.h"
#include "runtime/context/context.h"
#include "runtime/maps/row_map.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/load_part.h"
#include "runtime/matrix/matrix_options.h"

namespace shardmat {

/// Dense blocks around the diagonal, in device memory.
struct DiagonalBlocks {
  std::int64_t size = 0, count = 0;
  ValueType type = ValueType::f64;
  Buffer values;  ///< count · size · size
};

class Product;
class RowPlan;
class Schedule;
class StoredRows;
struct RowPlanRequest;

class DistributedMatrix {
 public:
  /// Collective; the same error on all ranks. The rows are stored on the device when the first product is made. `context`
  /// must outlive the matrix.
  DistributedMatrix(LoadedPart part, Context& context, const MatrixOptions& options);
  /// Calls load_part(), then the constructor above. Collective.
  DistributedMatrix(const MatrixSource& source, Context& context, const LoadOptions& options);
  DistributedMatrix(const DistributedMatrix&) = delete;
  DistributedMatrix& operator=(const DistributedMatrix&) = delete;
  ~DistributedMatrix();

  std::int64_t rows() const { return part_.rows; }
  std::int64_t cols() const { return part_.cols; }
  std::int64_t nnz() const { return part_.nnz; }
  ValueType type() const { return options_.type; }
  const MatrixOptions& options() const { return options_; }
  Context& context() const { return context_; }

  /// The rows of y, and the entries of x that the columns name: one object for both if the matrix is square. They may
  /// outlive the matrix. Their starts are the row range of every part, in the order of the source. Of own rows: counted from
  /// rank to rank, whatever the global numbers of the ranges; but in global numbers if the rows were spread anew
  /// (own_rows.h).
  const std::shared_ptr<const RowMap>& y_rows() const { return y_rows_; }
  const std::shared_ptr<const RowMap>& x_rows() const { return x_rows_; }
  const std::vector<std::int64_t>& row_starts() const { return y_rows_->starts(); }
  /// Where the partition came from: "stored in the file", "computed when loading" or "given".
  const std::string& partition_origin() const { return part_.partition_origin; }
  LocalSort local_sort() const { return part_.sort; }
  std::int64_t local_rows() const { return y_rows_->local_rows(); }
  /// Rows that this rank gave, of own rows: local_rows() unless they were spread anew.
  std::int64_t own_rows() const { return y_rows_->own_rows(); }
  /// From the rows that this rank gave to those that it has; null unless they were spread anew.
  const RangeRoute* row_route() const { return y_rows_->route(); }
  std::int64_t local_nnz() const { return local_nnz_; }
  /// Position in the source's order, counted from this rank's first row, of each local row.
  const HostVector<std::int64_t>& local_order() const { return y_rows_->places(); }
  /// Original index of each local row, and of each entry of x that this rank owns.
  const HostVector<std::int64_t>& row_ids() const { return y_rows_->ids(); }
  const HostVector<std::int64_t>& x_ids() const { return x_rows_->ids(); }
  /// Number of entries of x that this rank's rows read.
  std::int64_t x_entries() const { return x_entries_; }
  const ColumnMap& column_map() const { return *map_; }
  const ColumnSums& column_sums() const { return column_sums_; }
  /// See LoadedPart: 0 unless the storage is symmetric, and the matrix was so within rounding only.
  double symmetry_difference() const { return part_.symmetry_difference; }
  std::span<const double> averaged() const { return part_.averaged; }
  const LoadTimes& load_times() const { return part_.times; }

  /// A product for `columns` right-hand sides. Any number of products may exist at a time. All use the same stored rows; the
  /// matrix is not read or renumbered again, and not converted again (but see Conversion). The matrix must outlive its
  /// products. Collective; the same error on all ranks, which leaves the matrix and its products unchanged (but see
  /// HostRows::drop). Throws Error(usage) for an unsupported number of columns: f16 and bf16 need two or more.
  std::unique_ptr<Product> product(std::int64_t columns = 1);
  std::unique_ptr<Product> product(const ProductOptions& options);

  /// New values on the same pattern: every format, the diagonals and all products follow from the next product in stream
  /// order on. `values`: those of this rank's nonzeros in the order in which the rows were given: rows in the order of the
  /// source (of triplets: as many and in the order that were given, see own_rows.h), one column of f64 or f32, in memory of
  /// the host or of the matrix's device, where it must stay until the stream has passed. Values of triplets, and of own rows
  /// that were spread anew, go to their owners through host memory. Collective; the same error on all ranks, which leaves
  /// the old values: Error(usage) for a matrix that is not updatable or another number of values, Error(input) for values
  /// beyond the range of the matrix's type, and for NaN and infinity in host memory.
  void update_values(const ConstDense& values, Stream& stream);
  void update_values(std::span<const double> values, Stream& stream) {
    update_values(ConstDense(values.data(), static_cast<std::int64_t>(values.size())), stream);
  }
  void update_values(std::span<const float> values, Stream& stream) {
    update_values(ConstDense(values.data(), static_cast<std::int64_t>(values.size())), stream);
  }
  /// How often the values changed.
  std::uint64_t values_version() const { return values_version_; }

  /// Zeros these rows and columns of a square, updatable matrix in f64 or f32 and sets their diagonals to `diagonal`, for
  /// known values x of these rows. The pattern stays. Each rank names any rows by their original index, also more than once.
  /// With x and b (one column in row layout, of sum_type()): b loses A·x of the zeroed columns, and becomes diagonal·x in
  /// the zeroed rows. Each rank takes 8 bytes of host memory for the most rows that a rank names times the ranks, and 16
  /// bytes a nonzero. Collective; the same error on all ranks, which leaves matrix and b as they were: Error(usage) also
  /// after the host rows were dropped, Error(input) if a diagonal entry is not stored and `diagonal` is not 0.
  void zero_rows_columns(std::span<const std::int64_t> rows, double diagonal, const DistributedVector* x,
                         DistributedVector* b, Stream& stream);

  /// A copy of the diagonal of a square matrix, in row layout, of sum_type(); 0 where no entry is stored. update_values()
  /// does not change the copy. Collective. Throws Error(usage) for a matrix that is not square, and if the first call comes
  /// after the host rows were dropped.
  DistributedVector diagonal(Stream& stream);
  /// The `size` × `size` blocks around the diagonal of a square matrix, for example for block Jacobi. Block b has the rows
  /// and columns size·b … size·b + size - 1 of this rank's rows in the order of the source. Blocks are row-major; the last
  /// block is padded with zeros. Collective. Throws as diagonal(), and Error(usage) unless the parts begin at multiples of
  /// `size`.
  DiagonalBlocks block_diagonal(std::int64_t size, Stream& stream);

  /// How many unknowns a node has: as given, else as the file says, else as the pattern tells
  /// (kernels/matrix/node_blocks.h). 1 if the pattern does not consist of blocks.
  std::int64_t node_block_size() const { return part_.node_block_size; }
  /// "given", "stored in the file" or "found in the pattern".
  const std::string& node_block_origin() const { return part_.node_block_origin; }
  /// True if no rank has only some rows of a node.
  bool nodes_are_whole() const { return part_.nodes_are_whole; }

  /// Device memory of the stored rows in all formats, map_bytes() included.
  std::int64_t device_bytes() const;
  /// Device memory of the maps that update_values() needs.
  std::int64_t map_bytes() const;
  /// Host memory of the rows that are kept to store further formats. On the host, a matrix in format csr that takes no new
  /// values shares their columns and values.
  std::int64_t host_bytes() const;
  /// True until drop_host_rows().
  bool has_host_rows() const { return !part_.csr.row_ptr.empty(); }
  /// This rank's rows in host memory, with the values of the last update_values(); a column is the place of an entry in
  /// Exchange::x(). A local row is one of row_ids(). Valid until the matrix changes. Throws Error(usage) after they were
  /// dropped, Error(resources).
  CsrView host_rows(Stream& stream);
  /// Frees the rows in host memory. Later products must use the formats that are already stored.
  void drop_host_rows();

 private:
  struct Widths {
    std::int64_t all, at_a_time;
    std::string why;  ///< why at_a_time is less than all; else empty
  };

  void prepare_symmetric_storage();
  void sum_columns();
  bool may_overlap(std::int64_t columns, std::int64_t column_block) const;
  std::optional<std::int64_t> order_boundary_last();
  void map_rows();
  void map_columns();
  std::int64_t bytes_besides_x(const ProductOptions& wanted) const;
  template <class Entries>
  Widths choose_widths(const ProductOptions& wanted, const Entries& entries_held) const;
  ExchangeContext exchange_context(const ProductOptions& wanted, const Widths& widths) const;
  std::optional<Buffer> memory_for_y(const ProductOptions& wanted) const;
  std::unique_ptr<Schedule> make_schedule(const ProductOptions& wanted, const Widths& widths);
  std::vector<RowPlan> plan_rows(const ProductOptions& wanted, const Schedule& schedule, std::optional<LateX> late);
  std::vector<RowPlan> plan_first_rows(const RowPlanRequest& request, bool may_split);
  RowPlanRequest row_plan_request(const ProductOptions& wanted, std::int64_t width, std::optional<LateX> late) const;
  void require_rows() const;
  void store(std::int64_t first_row, std::int64_t end_row, bool once);
  /// Entries of the diagonal blocks. The picker reads them again after new values.
  struct Diagonal {
    ValuePicker picker;
    Buffer values;
  };
  static constexpr std::int64_t kPoints =
      0;  ///< the size of diagonal(): entries in row layout, not blocks by the source's order
  Diagonal& find_diagonal(std::int64_t size, Stream& stream);
  HostVector<std::int64_t> diagonal_positions(std::int64_t size) const;
  HostVector<double> bring_values(const ConstDense& values, Stream& stream) const;
  void update_nonzeros(const ConstDense& values, Stream& stream);
  void require_zeroable(std::span<const std::int64_t> zeroed, double diagonal, const DistributedVector* x,
                        const DistributedVector* b) const;
  HostVector<double> zeroed_values(const HostVector<double>& mine, const HostVector<double>& all, double diagonal) const;
  void move_known_values(const Product& of_one, const HostVector<double>& mine, double diagonal, const DistributedVector& x,
                         DistributedVector& b, Stream& stream);
  void take_host_values(const void* values, ValueType type, Stream& stream);
  void put_into_host_rows(std::span<const double> values);
  void refresh_host_rows(Stream& stream);

  Context& context_;
  MatrixOptions options_;
  LoadedPart part_;
  std::int64_t local_nnz_ = 0, x_entries_ = 0, boundary_rows_ = 0, interior_nnz_ = 0;
  bool overlaps_ = false;  ///< boundary rows come last on all ranks
  ColumnSums column_sums_;
  std::shared_ptr<const RowMap> y_rows_, x_rows_;  ///< the part's ids, order and starts are there, not in part_
  std::shared_ptr<const ColumnMap> map_;
  std::optional<Widths> first_widths_;
  std::unique_ptr<Exchange> first_exchange_;    ///< the first product takes it
  std::map<std::int64_t, Diagonal> diagonals_;  ///< by block size, or kPoints
  std::uint64_t values_version_ = 0;
  bool host_rows_are_old_ = false;  ///< update_values() was called, and the host rows have the old values
  Buffer staging_;                  ///< new values on their way from the host
  Event updated_;                   ///< the last update_values() is complete
  std::vector<StoredRows> blocks_;  ///< none before the first product; then one, or two if it cut the rows
};

}  // namespace shardmat
