// What can be chosen about a matrix and its products.
//
// Ownership: values; row maps are shared. Nothing is collective.
// Threads: values, which a program copies as it likes; any thread. The same on all ranks.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/dense.h"
#include "kernels/base/progress.h"
#include "kernels/base/types.h"
#include "kernels/choose/choice.h"

namespace shardmat {

class RowMap;

/// Order of the rows inside each part. Global orders are a property of the file.
enum class LocalSort {
  none,
  by_length,  ///< each part's rows by descending nonzero count
  as_file,    ///< the order that the file asks for; none without a file
};

/// "auto" (as the file asks), "none" or "local" (by length). Throws Error(usage) for any other word.
LocalSort parse_local_sort(std::string_view word);

/// Whether rows that need no x of other ranks are multiplied during the exchange. They must hold at least half of the
/// nonzeros. If exchange and kernel allow it, one kernel multiplies all rows; otherwise the rows are cut in two blocks.
enum class Overlap {
  automatic,  ///< cuts rows in two only for one right-hand side: kernels for several right-hand sides fill the device
  yes,
  no,
};

/// Whether the rows stay in host memory (12 bytes a nonzero; 8 in f32) after they were stored on the device.
enum class HostRows {
  keep,  ///< until drop_host_rows(): a later product may need them to store another format
  /// Freed when the first product is made. On the host they are freed piece by piece during the conversion, if one format is
  /// enough: the kernel is named, remembered or chosen without measuring, and the values are fixed. If this conversion
  /// fails, the matrix can make no other product.
  drop,
};

/// Whether update_values() may be called.
enum class Values {
  fixed,
  updatable,  ///< keeps a map of 4 bytes a nonzero for each format (8 from 2^32 nonzeros on), and 8 bytes a row
};

struct MatrixOptions {
  ValueType type = ValueType::f64;    ///< type of the matrix and of x; y has sum_type()
  std::int64_t right_hand_sides = 1;  ///< of the first product; the order of x in memory is chosen for this number
  /// Several ranks only: how many columns of X the first product moves and multiplies at a time. A divisor of
  /// right_hand_sides greater than one; 0: all columns, or as many as fit in memory.
  std::int64_t column_block = 0;
  PlanRequest plan;
  std::string cache_directory;  ///< stores measured choices of kernels (plan_cache.h); empty: they are not stored
  std::string exchange = "auto";
  Overlap overlap = Overlap::automatic;
  /// Row maps of another matrix, so that vectors fit both matrices: K and M, or A and its prolongation P. Null: the matrix
  /// makes its own maps. A square matrix has one map for x and y; give either. Sizes and context must be those of this
  /// matrix. Of own rows, each rank must give the rows of y_rows. The product overlaps the exchange only with the rows
  /// before the first one that needs x of other ranks (Product::why_rows_wait).
  std::shared_ptr<const RowMap> y_rows = nullptr, x_rows = nullptr;
  /// Keeps the rows in the order of the source or of own rows. Otherwise rows that need x of other ranks come last.
  bool natural_order = false;
  HostRows host_rows = HostRows::keep;
  Values values = Values::fixed;
  /// A matrix with more nonzeros a rank than this keeps column sums of its rows (16 bytes a column) for the sampled
  /// verification.
  std::int64_t column_sums_above = std::numeric_limits<std::int64_t>::max();
};

/// Options for a matrix from a file or generator.
struct LoadOptions : MatrixOptions {
  std::string method = "nnz";  ///< partitioner
  LocalSort sort = LocalSort::as_file;
  Progress progress;
  std::int64_t node_block_size = 0;  ///< unknowns of a node; 0: as the file says, else found in the pattern
};

/// May a plan convert the rows into a format that is not stored yet?
enum class Conversion {
  if_needed,  ///< only where no kernel runs on the formats that are stored
  if_faster,  ///< tries every promising format, as for the first plan
};

struct ProductOptions {
  std::int64_t columns = 1;       ///< right-hand sides
  std::int64_t column_block = 0;  ///< as MatrixOptions::column_block
  Conversion conversion = Conversion::if_needed;
  std::optional<PlanRequest> plan = {};      ///< none: MatrixOptions::plan
  std::optional<std::string> exchange = {};  ///< none: MatrixOptions::exchange
  /// column_major: multiply() also takes a column-major Y. The product then keeps a row-major copy of Y on the device.
  DenseOrder y_order = DenseOrder::row_major;
};

/// Throws Error(usage) unless the values may change. Not collective.
void require_updatable(Values values);
/// Throws Error(usage) if the ranks ask for different numbers of columns.
void require_same_columns(std::span<const std::int64_t> of_ranks);
/// Throws Error(usage) if `column_block` does not divide `right_hand_sides`.
void require_column_block(std::int64_t right_hand_sides, std::int64_t column_block);

}  // namespace shardmat
