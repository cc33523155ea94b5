// A matrix spread over the ranks by rows, ready to multiply.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/base/progress.h"
#include "runtime/context.h"
#include "runtime/matrix_source.h"
#include "runtime/row_block.h"

namespace shardmat {

class MovingX;

/// Order of the rows inside each part. Global orders are a property of the file.
enum class LocalSort {
  none,
  by_length,  ///< each part's rows by descending nonzero count
  as_file,    ///< what the file asks for; none without a file
};

/// Whether rows that need no x of others are multiplied while x moves, if they hold half of the nonzeros: by one product
/// whose other rows wait, where exchange and kernel can do that, else by two.
enum class Overlap {
  automatic,  ///< two products only with one right-hand side; kernels for several fill the device and leave no room
  yes,
  no,
};

struct LoadOptions {
  ValueType type = ValueType::f64;    ///< of the matrix and x; y has that of sums (sum_type())
  std::int64_t right_hand_sides = 1;  ///< f16 and bf16 want 2 or more
  /// Right-hand sides that move and are multiplied at a time where there are several ranks, a divisor of all and more than
  /// one; 0: all, or as many as fit.
  std::int64_t column_block = 0;
  std::string method = "nnz";  ///< partitioner
  LocalSort sort = LocalSort::as_file;
  PlanRequest plan;
  std::string cache_directory;  ///< where measured choices are remembered (plan_cache.h); empty: nowhere
  std::string exchange = "auto";
  Overlap overlap = Overlap::automatic;
  /// Keep 1ᵀA of this rank's rows, 16 bytes a column, for the sampled verification if there are more nonzeros a rank.
  std::int64_t column_sums_above = std::numeric_limits<std::int64_t>::max();
  Progress progress;
};

/// Throws Error(usage) for blocks of columns that are none.
void require_column_block(const LoadOptions& load);

/// Column sums of this rank's rows, of the values as stored (rounded to the type).
struct ColumnSums {
  HostVector<double> sum;     ///< Σ_i a_ij; empty if not kept
  HostVector<double> weight;  ///< Σ_i (nnz_i + 2)·|a_ij|, which bounds the rounding of the rows' sums
};

/// Seconds of the phases of loading, on this rank.
struct LoadTimes {
  double partition = 0, read = 0, exchange = 0, plan = 0;
};

class DistributedMatrix {
 public:
  /// Collective. Each rank reads only its own rows; memory is checked before it is taken. The same error on all ranks.
  DistributedMatrix(const MatrixSource& source, Context& context, const LoadOptions& options);
  ~DistributedMatrix();

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::int64_t nnz() const { return nnz_; }
  ValueType type() const { return options_.type; }
  /// Columns of X and Y, which are row-major.
  std::int64_t right_hand_sides() const { return options_.right_hand_sides; }
  /// Of an entry of y: its values in the type of sums.
  std::size_t y_entry_bytes() const {
    return static_cast<std::size_t>(options_.right_hand_sides) * size_of(sum_type(options_.type));
  }
  const LoadOptions& options() const { return options_; }
  Context& context() const { return context_; }

  /// Row range of every part, in the order of the source.
  const std::vector<std::int64_t>& row_starts() const { return row_starts_; }
  /// Where the partition came from: "stored in the file" or "computed".
  const std::string& partition_origin() const { return partition_origin_; }
  std::int64_t local_rows() const { return static_cast<std::int64_t>(row_ids_.size()); }
  std::int64_t local_nnz() const { return local_nnz_; }
  /// Position in the source's order, counted from this rank's first row, of each local row.
  const HostVector<std::int64_t>& local_order() const { return local_order_; }
  /// Original index of each local row, and of each entry of x that this rank owns.
  const HostVector<std::int64_t>& row_ids() const { return row_ids_; }
  const HostVector<std::int64_t>& x_ids() const { return x_ids_; }

  /// Entries of x that this rank's rows touch: what a product must read of it.
  std::int64_t x_entries() const { return x_entries_; }

  /// This rank's own entries of x on its device: what multiply() takes.
  void* local_x() const;
  /// How x moves, of all right-hand sides or of column_block() of them.
  const Exchange& exchange() const;
  std::int64_t column_block() const;
  const std::string& why_column_block() const { return why_column_block_; }
  /// As Exchange::wait().
  void wait(Stream& stream) const;
  /// Of other ranks, for one product.
  std::int64_t bytes_received() const;
  /// Memory of the device that x takes, and what moves it.
  std::int64_t x_device_bytes() const;
  /// One block, or where x moves beside one product and before another, two: rows that need no x of others, then the rest.
  const std::vector<RowBlock>& blocks() const { return blocks_; }
  /// Of the rows that are multiplied while x moves.
  std::int64_t overlapped_nnz() const { return overlapped_nnz_; }
  const ColumnSums& column_sums() const { return column_sums_; }
  const LoadTimes& load_times() const { return times_; }

  /// y = alpha·A·x + beta·y in stream order, x being what lies in local_x() on all ranks; y has local_rows()
  /// entries on this rank's device. Collective; does not wait.
  void multiply(double alpha, double beta, void* y, Stream& stream) const;
  /// The same without the exchange, for timing.
  void multiply_local(double alpha, double beta, void* y, Stream& stream) const;
  /// The exchange alone, for timing. Collective; does not wait.
  void move_x(Stream& stream) const;

 private:
  void find_partition(const MatrixSource& source);
  HostCsr load_part(const MatrixSource& source);
  std::optional<std::int64_t> order_boundary_last(HostCsr& part);
  bool may_overlap() const;
  std::unique_ptr<MovingX> make_x(const XParts& parts, const ExchangeContext& moving, std::span<const std::int64_t> columns);
  std::int64_t bytes_beside_x() const;
  std::int64_t columns_that_fit(const XParts& parts, std::span<const std::int64_t> columns) const;
  void plan_rows(const HostCsr& part, std::int64_t boundary_rows, std::optional<LateX> late);
  void add_block(const CsrView& rows, std::optional<LateX> late = {});
  void sum_columns(const HostCsr& part);

  Context& context_;
  LoadOptions options_;
  std::int64_t rows_ = 0, cols_ = 0, nnz_ = 0, local_nnz_ = 0, x_entries_ = 0, overlapped_nnz_ = 0;
  std::vector<std::int64_t> row_starts_, x_starts_;
  std::string partition_origin_;
  HostVector<std::int64_t> local_order_, row_ids_, x_ids_;
  ColumnSums column_sums_;
  std::unique_ptr<MovingX> x_;
  std::string why_column_block_;
  std::vector<RowBlock> blocks_;
  LoadTimes times_;
};

}  // namespace shardmat
