// New values of a matrix on their way in: each rank keeps its own part of every piece until all have come.
//
// Threads: one thread of each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/dense.h"
#include "kernels/base/host_vector.h"
#include "runtime/service/engine/other_hosts.h"

namespace shardmat::service {

class NewValues {
 public:
  /// This rank has `own` of the matrix's nonzeros. Parts follow each other in the order of ranks. Collective.
  NewValues(std::int64_t own, ValueType type, Communicator& communicator);

  /// Keeps this rank's part of a piece that begins at value `first`, in the order of the file. A piece that begins at 0
  /// begins anew. Collective. On all ranks alike it throws Error(input) for a value that is NaN or infinite, naming the
  /// first one; Error(resources) without memory; Error(internal) for a piece out of its turn. Then nothing is kept.
  void take(std::int64_t first, std::span<const std::byte> piece, Communicator& communicator);
  /// Which bytes of a piece each rank keeps.
  std::vector<OtherHosts::Range> parts_of(std::int64_t first, std::int64_t count) const;
  bool complete() const { return received_ == nnz_; }
  /// This rank's values. REQUIRES: complete().
  ConstDense own() const;
  /// Frees the memory.
  void clear();

 private:
  std::vector<std::int64_t> parts_;  ///< of the ranks
  std::int64_t begin_ = 0, own_, nnz_ = 0;
  ValueType type_;
  std::int64_t received_ = -1;  ///< values that came; -1: none is expected
  HostVector<std::byte> values_;
};

}  // namespace shardmat::service
