// Products with the transpose of a matrix that stays on the ranks. They read the one stored matrix, and are made when they
// are first asked for. Requests are not merged to them: each has a product of its own.
//
// Collective unless said otherwise. Threads: as DistributedMatrix.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "kernels/base/device.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/service/engine/column_transfer.h"
#include "runtime/service/engine/memories.h"
#include "runtime/service/engine/resident_vectors.h"
#include "runtime/service/wire/command.h"

namespace shardmat::service {

class ResidentTranspose {
 public:
  /// REQUIRES: both outlive this object.
  ResidentTranspose(DistributedMatrix& matrix, ColumnTransfer& transfer) : matrix_(matrix), transfer_(transfer) {}

  /// Of a command with `transpose`, whose x has the rows of A and whose y has its columns. The vectors in the arena are
  /// complete once all ranks have returned. The same bits each time: those of TransposedProduct with this alpha and beta.
  /// Throws on all ranks Error(internal) for columns with several alphas or betas, and for a block whose width is not that
  /// of the command; Error(resources) without memory for the product.
  Multiplied multiply(const Multiply& command, Memories& memories, const ResidentVectors& vectors);

  /// Of this rank: the products, and X and Y. Not collective.
  std::int64_t device_bytes() const;

 private:
  const TransposedProduct& product(std::int64_t width);
  Multiplied multiply(const TransposedProduct& product, const Multiply& command, std::span<const Column> columns,
                      Memories& memories, const ResidentVectors& vectors);

  DistributedMatrix& matrix_;
  ColumnTransfer& transfer_;
  std::map<std::int64_t, std::unique_ptr<TransposedProduct>> products_;  ///< by width
  Buffer x_, y_;                                                         ///< of the widest
};

}  // namespace shardmat::service
