// A matrix spread over the ranks by rows that stays on their devices: it makes products of any number of right-hand sides.
//
// Ownership: a matrix owns its rows; its context must outlive it, and it must outlive its products, but not its vectors.
// Threads: one thread at a time uses a matrix with its products and vectors, and need not be the thread that made it. What
// is collective is called by one thread of each rank, in the same order on all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "kernels/base/dense.h"
#include "kernels/base/host_vector.h"
#include "runtime/context/context.h"
#include "runtime/maps/row_map.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/matrix/own_rows.h"

namespace shardmat {

class ColumnMap;
struct ColumnSums;
struct CsrView;
struct LoadTimes;
class MatrixRows;
struct MatrixSource;
class MatrixValues;
class NodeFacts;
class Product;
class ProductPlanner;
class TransposedProduct;

/// Dense blocks around the diagonal, in device memory.
struct DiagonalBlocks {
  std::int64_t size = 0, count = 0;
  ValueType type = ValueType::f64;
  Buffer values;  ///< count · size · size
};

class DistributedMatrix {
 public:
  /// Collective; the same error on all ranks. The rows are stored on the device when the first product is made. `context`
  /// must outlive the matrix.
  DistributedMatrix(MatrixPart part, Context& context, const MatrixOptions& options);
  /// Calls load_part(), then the constructor above. Collective.
  DistributedMatrix(const MatrixSource& source, Context& context, const LoadOptions& options);
  DistributedMatrix(const DistributedMatrix&) = delete;
  DistributedMatrix& operator=(const DistributedMatrix&) = delete;
  ~DistributedMatrix();

  std::int64_t rows() const;
  std::int64_t cols() const;
  std::int64_t nnz() const;
  ValueType type() const { return options_.type; }
  const MatrixOptions& options() const { return options_; }
  Context& context() const { return context_; }

  /// The maps of the rows of y and of the entries of x; one object if the matrix is square. They may outlive the matrix.
  /// RowMap::starts() has the row range of every part, in the order of the source. Own rows are counted from rank to rank,
  /// whatever their global numbers. If own rows were spread anew (own_rows.h), they have their global numbers.
  const std::shared_ptr<const RowMap>& y_rows() const { return y_rows_; }
  const std::shared_ptr<const RowMap>& x_rows() const { return x_rows_; }
  /// Where the partition came from: "stored in the file", "computed when loading" or "given".
  const std::string& partition_origin() const;
  LocalSort local_sort() const;
  std::int64_t local_rows() const { return y_rows_->local_rows(); }
  std::int64_t local_nnz() const;
  /// Number of entries of x that this rank's rows read.
  std::int64_t x_entries() const { return x_entries_; }
  const ColumnMap& column_map() const { return *map_; }
  /// Original index of each entry of x that this rank holds during a product: its own, and those of other ranks that its
  /// rows read. -1 in places without an entry. Indices up to 2^53. Collective.
  HostVector<std::int64_t> column_ids() const;
  /// A value for each of these entries. `own`: the values of this rank's entries, in the order of x_rows(). 0 in places
  /// without an entry. Collective.
  HostVector<double> column_values(const HostVector<double>& own) const;
  const ColumnSums& column_sums() const { return *column_sums_; }
  /// Of symmetric storage: the largest relative difference of a_ij and a_ji before both became their mean; else 0.
  double symmetry_difference() const;
  std::span<const double> averaged() const;  ///< sum of these changes in each row of this rank; empty: nothing changed
  const LoadTimes& load_times() const;

  /// A product for `columns` right-hand sides. Any number of products may exist at a time. They share the stored rows: the
  /// matrix is read and renumbered once, and converted once (but see Conversion). The matrix must outlive its products.
  /// Collective; the same error on all ranks. An error leaves the matrix and its products unchanged (but see
  /// HostRows::drop). Throws Error(usage) for an unsupported number of columns: f16 and bf16 need two or more.
  std::unique_ptr<Product> product(std::int64_t columns = 1);
  std::unique_ptr<Product> product(const ProductOptions& options);

  /// A product with Aᵀ, of the rows that are stored once: X lies as y_rows() says, Y as x_rows(). On the host, formats csr,
  /// bcsr and packed are read as they lie. On a GPU, and for other formats, this makes a map of the columns, of 8 bytes a
  /// nonzero and 8 a column, which all such products share; it is made from the host rows. If no product was made before,
  /// this stores the rows as product() does. Collective; the same error on all ranks. Throws Error(usage) for a matrix in
  /// f16 or bf16, and if the map is needed and the host rows were dropped.
  std::unique_ptr<TransposedProduct> transposed_product(std::int64_t columns = 1);

  /// New values on the same pattern. Every format, the diagonals and all products use them from the next product in stream
  /// order on. `values`: one column of f64 or f32 for this rank's nonzeros, in the order in which the rows were given, with
  /// rows in the order of the source. Of triplets: the values of the same triplets in the same order (own_rows.h). They lie
  /// in memory of the host or of the matrix's device, and stay there until the stream has passed. Values of triplets, and of
  /// own rows that were spread anew, go to their owners through host memory. Collective; the same error on all ranks. An
  /// error leaves the old values. Throws Error(usage) for a matrix that is not updatable or another number of values,
  /// Error(input) for values beyond the range of the matrix's type, and for NaN and infinity in host memory.
  void update_values(const ConstDense& values, Stream& stream);
  void update_values(std::span<const double> values, Stream& stream) {
    update_values(ConstDense(values.data(), static_cast<std::int64_t>(values.size())), stream);
  }
  void update_values(std::span<const float> values, Stream& stream) {
    update_values(ConstDense(values.data(), static_cast<std::int64_t>(values.size())), stream);
  }
  /// How often the values changed.
  std::uint64_t values_version() const;

  /// For rows whose x is known: zeros these rows and columns and sets their diagonals to `diagonal`. The matrix is square,
  /// updatable, in f64 or f32; its pattern stays. Each rank names any rows by their original index, also more than once. If
  /// x and b are given (one column in row layout, of sum_type()), A·x of the zeroed columns is subtracted from b, and b
  /// becomes diagonal·x in the zeroed rows. Host memory of each rank: 16 bytes a nonzero, and 8 bytes times the ranks times
  /// the most rows that any rank names. Collective; the same error on all ranks. An error leaves matrix and b as they were.
  /// Throws Error(usage) also after the host rows were dropped, Error(input) if a diagonal entry is not stored and
  /// `diagonal` is not 0.
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

  /// How many unknowns a node has: the given number, else that of the file, else the one found in the pattern
  /// (kernels/matrix/node_blocks.h). 1 if the pattern does not consist of blocks.
  std::int64_t node_block_size() const;
  /// "given", "stored in the file" or "found in the pattern".
  const std::string& node_block_origin() const;
  /// What is known of the nodes, numbered as in the source; null: nothing. A shard file stays open for it.
  const NodeFacts* nodes() const;
  /// Replaces what the source knows of the nodes. The same on all ranks; not collective.
  void know_nodes(std::shared_ptr<const NodeFacts> nodes);
  /// True if no rank has only some rows of a node.
  bool nodes_are_whole() const;

  /// Device memory of the stored rows in all formats, map_bytes() and transpose_bytes() included.
  std::int64_t device_bytes() const;
  /// Device memory of the maps that update_values() needs.
  std::int64_t map_bytes() const;
  /// Device memory of the maps that transposed_product() needs.
  std::int64_t transpose_bytes() const;
  /// Host memory of the rows that are kept to store further formats. On the host, a matrix in format csr that takes no new
  /// values shares their columns and values.
  std::int64_t host_bytes() const;
  /// True until drop_host_rows().
  bool has_host_rows() const;
  /// This rank's rows in host memory, with the values of the last update_values(). Rows lie as in y_rows(); a column is the
  /// place of its entry in Exchange::x(). Valid until the matrix changes. Throws Error(usage) after the rows were dropped,
  /// and Error(resources).
  CsrView host_rows(Stream& stream);
  /// The same with values that may be older. Waits for nothing.
  CsrView host_pattern() const;
  /// True: write_values() may be called, for the rows are stored on the device and may take new values. Not collective.
  bool can_write_values() const;
  /// Writes this rank's present values to memory of the device, in stream order and in the order of the source. Nothing goes
  /// through host memory. Not collective.
  void write_values(double* to, Stream& stream) const;
  /// Writes the columns of these values, numbered as those of host_rows(), in stream order. False: a format on the device
  /// cannot tell them. REQUIRES: can_write_values(). Not collective. Throws Error(resources).
  bool write_columns(std::int32_t* to, Stream& stream) const;
  /// Frees the rows in host memory. Later products must use the formats that are already stored.
  void drop_host_rows();
  /// True if transposed_product() can be made on this rank: its format multiplies as it lies, or the rows are in host
  /// memory. Not collective.
  bool can_transpose() const;

 private:
  Context& context_;
  MatrixOptions options_;
  MatrixPart part_;  ///< its rows, values and maps have moved to the objects below
  std::int64_t x_entries_ = 0;
  std::unique_ptr<ColumnSums> column_sums_;
  std::shared_ptr<const RowMap> y_rows_, x_rows_;
  std::unique_ptr<MatrixRows> rows_;
  std::unique_ptr<ProductPlanner> planner_;
  std::shared_ptr<const ColumnMap> map_;
  std::unique_ptr<MatrixValues> values_;
};

}  // namespace shardmat
