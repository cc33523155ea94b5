// Sums a few values over the ranks inside an iteration, for norms and dot products.
//
// Threads: one thread at a time uses an object; constructor and sums are collective.
#pragma once

#include <memory>
#include <string_view>

#include "comm/exchange/exchange.h"
#include "comm/nccl/nccl_communicator.h"

namespace shardmat {

class SumOverRanks {
 public:
  /// `values`: number of values in each call. GPUs that can reach each other's memory use a kernel with one thread block,
  /// other GPUs NCCL, the host MPI. What the context refers to must outlive this object. Graphs that recorded its calls must
  /// be destroyed before it. Collective.
  SumOverRanks(const ExchangeContext& context, int values);

  /// "kernel", "NCCL", "MPI", or "none" for one rank.
  std::string_view name() const;

  /// Replaces values[i] (f64 in device memory) by its sum over the ranks, in stream order. The sum is the same on every
  /// rank; it is formed in rank order, except with NCCL. On a GPU the call may be captured in a graph after a first call; on
  /// the host it blocks. All ranks call it in the same order. A lost rank makes Exchange::wait() throw.
  void operator()(double* values, Stream& stream);

 private:
  Communicator& communicator_;
  NcclCommunicator* nccl_;
  int values_;
  std::unique_ptr<NcclCommunicator::Board> board_;  ///< only for the kernel
};

}  // namespace shardmat
