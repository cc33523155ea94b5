// A matrix that stays on the ranks, with a product for each number of columns that requests are merged to.
//
// All products share one storage, so a column of a product has the same bits whatever other columns are beside it.
//
// Collective unless said otherwise. Threads: as DistributedMatrix.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/device.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/service/arena.h"
#include "runtime/service/command.h"

namespace shardmat::service {

class ResidentMatrix {
 public:
  /// Loads the matrix and makes its products: of one column, then of twice as many as long as a column then takes less time.
  /// Throws the same error on all ranks.
  ResidentMatrix(const MatrixSource& source, Context& context, const Load& load);
  ResidentMatrix(const ResidentMatrix&) = delete;
  ResidentMatrix& operator=(const ResidentMatrix&) = delete;

  /// Not collective.
  Loaded description() const;

  /// Multiplies this rank's rows. The vectors in the arena are complete once all ranks have returned. Throws
  /// Error(internal) on all ranks for a width that has no product.
  Multiplied multiply(const Multiply& command, const Arena& arena);

 private:
  void add_product(std::int64_t width);
  /// True if the newest product stores and sums every row as the first one does, on all ranks.
  bool keeps_bits() const;
  double seconds_of(std::int64_t width);
  void gather(const Product& product, std::span<const std::byte* const> vectors);
  void scatter(const Product& product, std::span<const double> alphas, std::span<std::byte* const> vectors);

  Context& context_;
  DistributedMatrix matrix_;
  std::map<std::int64_t, std::unique_ptr<Product>> products_;  ///< by width
  std::vector<WidthTime> widths_;
  Buffer y_;            ///< of the widest product
  HostBuffer staging_;  ///< X or Y on their way to or from a GPU
};

}  // namespace shardmat::service
