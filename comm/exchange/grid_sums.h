// What kernels need that sum over all their thread blocks on all ranks (kernels/cuda/peer_sums.h).
//
// Threads: the constructor is collective; one stream at a time uses an object.
#pragma once

#include <memory>

#include "comm/exchange/exchange.h"
#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/peer_board.h"

namespace shardmat {

class GridSums {
 public:
  /// For grids of at most `blocks` thread blocks (the ranks take the smallest of their numbers) that sum `values` values in
  /// a round. What the context refers to must outlive this object. Graphs that use its board must be destroyed before it.
  GridSums(const ExchangeContext& context, int blocks, int values);

  /// True if kernels of grids with so many blocks can sum over the ranks: no rank has 0, and all GPUs reach each other's
  /// memory. Collective.
  static bool possible(const ExchangeContext& context, int blocks) { return blocks_for_all(context, blocks) > 0; }

  /// Of the grid, the same on all ranks; 0: not possible().
  int blocks() const { return blocks_; }
  const PeerBoard& board() const { return board_; }

 private:
  static int blocks_for_all(const ExchangeContext& context, int blocks);

  int blocks_;
  std::unique_ptr<NcclCommunicator::Board> of_ranks_;  ///< several ranks
  Buffer slots_, rounds_, pointers_;                   ///< one rank
  PeerBoard board_;
};

}  // namespace shardmat
