// Which entries of a vector each rank has, and in which order. Matrices and vectors that are distributed alike share one
// number, by which the front end knows which of them fit together.
//
// Threads: one thread of each rank.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"

namespace shardmat::service {

struct Distribution {
  std::uint64_t number = 0;
  std::int64_t size = 0;         ///< of the whole vector
  HostVector<std::int64_t> ids;  ///< original index of each entry of this rank
  bool is_range = false;         ///< they are those from one to another, in order
};

/// One without a number. Collective; throws the same error on all ranks.
std::shared_ptr<Distribution> make_distribution(std::int64_t size, std::span<const std::int64_t> ids,
                                                Communicator& communicator);

class Distributions {
 public:
  /// The known distribution with these entries on all ranks, or a new one. A distribution is known as long as anybody holds
  /// it. Collective; throws the same error on all ranks.
  std::shared_ptr<const Distribution> find_or_add(std::int64_t size, std::span<const std::int64_t> ids,
                                                  Communicator& communicator);
  /// The same for one that was made before; it gets a number if it is new. Throws nothing.
  std::shared_ptr<const Distribution> find_or_add(std::shared_ptr<Distribution> made, Communicator& communicator);

 private:
  std::shared_ptr<const Distribution> find(std::int64_t size, std::span<const std::int64_t> ids, Communicator& communicator);
  std::shared_ptr<const Distribution> add(std::shared_ptr<Distribution> made);

  std::vector<std::weak_ptr<const Distribution>> known_;
  std::uint64_t last_ = 0;
};

}  // namespace shardmat::service
