// Sums of a few values over the ranks, inside iterations: norms and dot products.
#pragma once

#include <memory>
#include <string_view>

#include "comm/exchange/exchange.h"
#include "comm/nccl/nccl_communicator.h"

namespace shardmat {

class SumOverRanks {
 public:
  /// Collective. `values`: of each call. GPUs that can reach each other's memory do it in a kernel of one block; others ask
  /// NCCL, hosts MPI. What the context refers to must outlive this, and graphs that recorded it must not.
  SumOverRanks(const ExchangeContext& context, int values);

  /// "kernel", "NCCL", "MPI", or "none" for one rank.
  std::string_view name() const;

  /// values[i] becomes its sum over the ranks, in f64 in memory of the device; the same on every rank, and in rank order but
  /// with NCCL. In stream order, may be captured in a graph once it has run (not on the host, where it blocks). All ranks
  /// call it in the same order; a lost rank shows in Exchange::wait().
  void operator()(double* values, Stream& stream);

 private:
  Communicator& communicator_;
  NcclCommunicator* nccl_;
  int values_;
  std::unique_ptr<NcclCommunicator::Board> board_;  ///< of the kernel
};

}  // namespace shardmat
