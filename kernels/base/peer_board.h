// Where GPUs that reach each other's memory exchange a few values inside kernels. comm/ makes it, kernels/cuda/peer_sums.h
// uses it.
#pragma once

#include <cstdint>

namespace shardmat {

/// A view; the memory belongs to a NcclCommunicator::Board or to GridSums. Slots are words [round % 2][rank][value][half].
struct PeerBoard {
  int rank = 0, ranks = 1;
  int values = 0;                         ///< in a round
  std::uint64_t* const* slots = nullptr;  ///< of each rank; device memory
  unsigned* rounds = nullptr;             ///< number of rounds so far; device memory
  const volatile int* ended = nullptr;    ///< 1: nobody is coming. Host memory that the GPU reads
};

}  // namespace shardmat
