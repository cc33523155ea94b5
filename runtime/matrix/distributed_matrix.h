// A matrix spread over the ranks by rows that stays on their devices: it makes products of any number of right-hand sides.
//
// Threads: one thread of a rank calls what is collective; with GPUs, any thread may call the rest, one at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/exchange/exchange.h"
#include "kernels/base/dense.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/progress.h"
#include "kernels/value_map.h"
#include "runtime/context.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/load_part.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/stored_rows.h"

namespace shardmat {

/// Are rows that need no x of other ranks multiplied while x moves? Only if they hold at least half of the nonzeros. One
/// product does it where exchange and kernel allow, else the rows are cut in two.
enum class Overlap {
  automatic,  ///< rows are cut in two only for one right-hand side: kernels for several fill the device and leave no room
  yes,
  no,
};

/// What becomes of the rows in host memory (16 bytes a nonzero) once they are stored on the device.
enum class HostRows {
  keep,  ///< for formats that a later product may need; until drop_host_rows()
  drop,  ///< after the first product was made
};

/// May the matrix get new values?
enum class Values {
  fixed,
  updatable,  ///< keeps a map of 4 bytes a nonzero for each format (8 from 2^32 nonzeros on), and 8 bytes a row
};

struct MatrixOptions {
  ValueType type = ValueType::f64;    ///< of the matrix and x; y has that of sums (sum_type())
  std::int64_t right_hand_sides = 1;  ///< of the first product: the order of x in memory is chosen for it
  /// Right-hand sides of the first product that move and are multiplied at a time, with several ranks: a divisor of all and
  /// more than one; 0: all, or as many as fit.
  std::int64_t column_block = 0;
  PlanRequest plan;
  std::string cache_directory;  ///< where measured choices are remembered (plan_cache.h); empty: nowhere
  std::string exchange = "auto";
  Overlap overlap = Overlap::automatic;
  HostRows host_rows = HostRows::keep;
  Values values = Values::fixed;
  /// Keep 1ᵀA of this rank's rows, 16 bytes a column, for the sampled verification if there are more nonzeros a rank.
  std::int64_t column_sums_above = std::numeric_limits<std::int64_t>::max();
};

/// A matrix from a file or generator: how it is split, and how it is stored.
struct LoadOptions : MatrixOptions {
  std::string method = "nnz";  ///< partitioner
  LocalSort sort = LocalSort::as_file;
  Progress progress;
};

/// Dense blocks around the diagonal, in memory of the device.
struct DiagonalBlocks {
  std::int64_t size = 0, count = 0;
  ValueType type = ValueType::f64;
  Buffer values;  ///< count · size · size
};

/// Throws Error(usage) for blocks of columns that do not divide the right-hand sides.
void require_column_block(std::int64_t right_hand_sides, std::int64_t column_block);

class DistributedMatrix {
 public:
  /// Collective. Nothing is stored on the device before the first product. The same error on all ranks. `context` outlives
  /// this.
  DistributedMatrix(LoadedPart part, Context& context, const MatrixOptions& options);
  /// Collective: load_part(), then the same.
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

  /// Row range of every part, in the order of the source; of own rows, in the order of the ranks.
  const std::vector<std::int64_t>& row_starts() const { return part_.row_starts; }
  /// Where the partition came from: "stored in the file", "computed when loading" or "given".
  const std::string& partition_origin() const { return part_.partition_origin; }
  LocalSort local_sort() const { return part_.sort; }
  std::int64_t local_rows() const { return std::ssize(part_.row_ids); }
  std::int64_t local_nnz() const { return local_nnz_; }
  /// Position in the source's order, counted from this rank's first row, of each local row.
  const HostVector<std::int64_t>& local_order() const { return part_.local_order; }
  /// Original index of each local row, and of each entry of x that this rank owns.
  const HostVector<std::int64_t>& row_ids() const { return part_.row_ids; }
  const HostVector<std::int64_t>& x_ids() const { return part_.x_ids; }
  /// Entries of x that this rank's rows touch: what a product must read of it.
  std::int64_t x_entries() const { return x_entries_; }
  const ColumnMap& column_map() const { return *map_; }
  const ColumnSums& column_sums() const { return column_sums_; }
  const LoadTimes& load_times() const { return part_.times; }

  /// A product of `columns` right-hand sides. Any number may exist at a time; all use the same stored rows, and none reads,
  /// renumbers or converts the matrix again (but see Conversion). The matrix outlives its products. Collective; the same
  /// error on all ranks, which leaves the matrix and its products as they were. Throws Error(usage) for counts that the type
  /// does not have: f16 and bf16 want two or more.
  std::unique_ptr<Product> product(std::int64_t columns = 1);
  std::unique_ptr<Product> product(const ProductOptions& options);

  /// New values on the same pattern: every format, the diagonals and all products follow from the next product in stream
  /// order on. `values`: those of this rank's nonzeros in the order in which the rows were given: rows in the order of the
  /// source (of triplets: as many and in the order that were given, see own_rows.h), one column of f64 or f32, in memory of
  /// the host or of the matrix's device, where it must stay until the stream has passed. Collective; the same error on all
  /// ranks, which leaves the old values: Error(usage) for a matrix that is not updatable or another number of values,
  /// Error(input) for values beyond the range of the matrix's type.
  void update_values(const ConstDense& values, Stream& stream);

  /// The diagonal of a square matrix, in row layout, of sum_type(); 0 where no entry is stored. From the current values: ask
  /// again after update_values(). Collective. Throws Error(usage) for a matrix that is not square, or if it is asked for the
  /// first time after the host rows were dropped.
  DistributedVector diagonal(Stream& stream);
  /// The blocks of `size` × `size` around the diagonal of a square matrix, for block Jacobi and the like. Block b has the
  /// rows and columns size·b … size·b + size - 1 of this rank's rows in the order of the source, row-major; the last one is
  /// filled with zeros. Collective. Throws as diagonal(), and Error(usage) unless the parts begin at multiples of `size`.
  DiagonalBlocks block_diagonal(std::int64_t size, Stream& stream);

  /// Device memory of the stored rows, all formats, and of maps for new values (map_bytes()).
  std::int64_t device_bytes() const;
  std::int64_t map_bytes() const;
  /// Host memory of rows that are kept for formats to come.
  std::int64_t host_bytes() const;
  /// Frees these. Products to come run on the formats that are stored.
  void drop_host_rows();

 private:
  struct Widths {
    std::int64_t all, at_a_time;
    std::string why;  ///< at_a_time is not all
  };

  void sum_columns();
  bool may_overlap(std::int64_t columns, std::int64_t column_block) const;
  std::optional<std::int64_t> order_boundary_last();
  void map_columns();
  std::int64_t bytes_besides_x(std::int64_t columns) const;
  template <class Entries>
  Widths choose_widths(const ProductOptions& wanted, const Entries& entries_held) const;
  ExchangeContext exchange_context(const ProductOptions& wanted, const Widths& widths) const;
  std::unique_ptr<Schedule> make_schedule(const ProductOptions& wanted, const Widths& widths);
  std::vector<RowPlan> plan_rows(const ProductOptions& wanted, const Schedule& schedule, std::optional<LateX> late);
  std::vector<RowPlan> plan_first_rows(const RowPlanRequest& request, bool may_split);
  RowPlanRequest row_plan_request(const ProductOptions& wanted, std::int64_t width, std::optional<LateX> late) const;
  void store(std::int64_t first_row, std::int64_t end_row);
  /// Entries of the matrix near the diagonal, by block size; kept so that they follow new values.
  struct Diagonal {
    ValuePicker picker;
    Buffer values;
  };
  Diagonal& find_diagonal(std::int64_t size, Stream& stream);
  HostVector<std::int64_t> diagonal_positions(std::int64_t size) const;
  HostVector<double> bring_values(const ConstDense& values, Stream& stream) const;
  void update_nonzeros(const ConstDense& values, Stream& stream);
  void take_host_values(const void* values, ValueType type, Stream& stream);
  void put_into_host_rows(std::span<const double> values);
  void refresh_host_rows(Stream& stream);

  Context& context_;
  MatrixOptions options_;
  LoadedPart part_;
  std::int64_t local_nnz_ = 0, x_entries_ = 0, boundary_rows_ = 0, interior_nnz_ = 0;
  bool overlaps_ = false;  ///< rows that wait for x come last on all ranks
  ColumnSums column_sums_;
  std::shared_ptr<const ColumnMap> map_;
  std::optional<Widths> first_widths_;
  std::unique_ptr<Exchange> first_exchange_;  ///< of the first product, until that is made
  std::map<std::int64_t, Diagonal> diagonals_;
  bool host_rows_are_old_ = false;  ///< new values came since
  Buffer staging_;                  ///< new values on their way from the host
  Event updated_;                   ///< where the stream of the last new values has stored them
  std::vector<StoredRows> blocks_;  ///< one, or two if the first product cut the rows; none before that
};

}  // namespace shardmat
