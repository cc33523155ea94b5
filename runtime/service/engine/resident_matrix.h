// A matrix that stays on the ranks, with a product for each number of columns that requests are merged to.
//
// All products share one storage, so a column of a product has the same bits whatever other columns are beside it.
//
// Collective unless said otherwise. Threads: as DistributedMatrix.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/column_packing.h"
#include "partition/nodes/given_nodes.h"
#include "runtime/maps/row_map.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/service/engine/column_transfer.h"
#include "runtime/service/engine/memories.h"
#include "runtime/service/engine/new_values.h"
#include "runtime/service/engine/resident_solvers.h"
#include "runtime/service/engine/resident_transpose.h"
#include "runtime/service/engine/resident_vectors.h"
#include "runtime/service/wire/arena.h"
#include "runtime/service/wire/command.h"
#include "runtime/source/matrix_source.h"

namespace shardmat::service {

class ResidentMatrix {
 public:
  /// Loads the matrix and makes its products: of one column, then of twice as many as long as a column then takes less time.
  /// Products whose bits differ from those of the fastest one are dropped; then the narrowest may have several columns.
  /// `choices`: where measured choices of kernels are kept (plan_cache.h), so that the same matrix gives the same bits when
  /// it is loaded again. `nodes`: for solvers, in place of what the source knows of its nodes. Throws the same error on all
  /// ranks.
  /// It may be made on a thread of its own, with a context of its own, which it keeps in use.
  ResidentMatrix(const MatrixSource& source, Context& context, const Load& load, const std::string& choices,
                 const NodeFiles& nodes = {});
  ResidentMatrix(const ResidentMatrix&) = delete;
  ResidentMatrix& operator=(const ResidentMatrix&) = delete;

  /// Not collective.
  Loaded description() const;
  /// Of this rank's rows. Not collective.
  const Density& density() const { return density_; }
  /// Of this rank: the matrix, and X and Y of every product. Not collective.
  std::int64_t device_bytes() const;

  /// Not collective.
  const std::shared_ptr<const RowMap>& x_rows() const { return x_rows_; }
  const std::shared_ptr<const RowMap>& y_rows() const { return y_rows_; }

  Context& context() const { return context_; }
  ValueType type() const { return matrix_.type(); }
  /// Throws AgreedError(usage) for a matrix that was not loaded as solvable. Not collective.
  ResidentSolvers& solvers();
  /// Frees the solvers that no solve uses. Not collective.
  void drop_idle_solvers() {
    if (solvers_) solvers_->drop_idle();
  }

  /// Multiplies this rank's rows. The vectors in the arena are complete once all ranks have returned. Throws on all ranks
  /// Error(internal) for a width that has no product, and what add_block_product() and ResidentTranspose throw.
  Multiplied multiply(const Multiply& command, Memories& memories, const ResidentVectors& vectors);

  /// Makes a product for vectors of `width` columns, unless there is one; true if it did. Throws on all ranks Error(usage)
  /// if its columns would not have the bits of single products, Error(resources) without memory for it.
  bool add_block_product(std::int64_t width);

  /// Keeps a piece of new values. The last piece replaces the values of the matrix from the next product on. Throws on all
  /// ranks Error(usage) for a matrix that was not loaded as updatable, what NewValues::take() throws, and Error(resources)
  /// without memory: then the values are the old ones. After Error(internal) they may be neither; the matrix must be
  /// dropped.
  void put_values(const PutValues& command, Memories& memories);
  /// Frees the pieces that were kept. Not collective.
  void drop_values() { new_values_.clear(); }

 private:
  void add_product(std::int64_t width);
  void keep_equal_bits();
  void require_product() const;
  /// True on all ranks if the product reads the same storage as the first one.
  bool shares_storage(const Product& product) const;
  bool agree(bool here) const;
  std::optional<HostVector<std::byte>> bits_of(const Product& product);
  double seconds_of(std::int64_t width);
  /// Of several runs, on the slowest rank.
  double least_seconds(const std::function<void()>& run) const;
  Multiplied multiply(const Product& product, const Multiply& command, std::span<const Column> columns, Memories& memories,
                      const ResidentVectors& vectors);
  /// X of one column where it lies, if the product can read it there; else nothing.
  std::optional<ConstDense> x_in(const Product& product, const Column& column, Memories& memories,
                                 const ResidentVectors& vectors) const;
  /// Where in y this rank's rows are, if the product can write them there; else nothing.
  std::optional<Dense> rows_in(const Product& product, void* y) const;
  Multiplied multiply_transposed(const Multiply& command, Memories& memories, const ResidentVectors& vectors);

  Context& context_;
  DistributedMatrix matrix_;
  std::shared_ptr<const RowMap> x_rows_, y_rows_;
  ColumnTransfer transfer_;
  ResidentTranspose transpose_;
  bool is_transposable_ = true;  ///< on all ranks
  Density density_;
  NewValues new_values_;
  std::map<std::int64_t, std::unique_ptr<Product>> products_;  ///< by width
  std::vector<WidthTime> widths_;                              ///< of products that requests are merged to
  std::int64_t reference_ = 1;                                 ///< width of the product whose bits the others have
  Buffer y_;                                                   ///< of the widest product
  std::unique_ptr<ResidentSolvers> solvers_;                   ///< of a solvable matrix
};

}  // namespace shardmat::service
