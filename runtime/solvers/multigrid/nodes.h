// The nodes of a level of multigrid over the ranks, and what a rank has to do with nodes of other ranks.
//
// Threads: one thread of each rank; what is collective says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"

namespace shardmat::multigrid {

/// An index of an array.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

inline constexpr std::int64_t kRowGrain = 64;  ///< rows that a thread takes at least

/// For each of some nodes a list of numbered items with `each` values. List i has the items start[i] … start[i + 1] - 1.
struct Lists {
  std::int64_t each = 0;
  HostVector<std::int64_t> start{0};
  HostVector<std::int64_t> id;
  HostVector<double> value;

  std::int64_t count() const { return std::ssize(start) - 1; }
};

/// Rank p has the nodes starts[p] … starts[p + 1] - 1. A local number is below own() for a node of this rank; then come its
/// ghosts: nodes of other ranks that it needs, in ascending order.
class Nodes {
 public:
  /// `ghosts`: ascending, none of this rank. Collective.
  Nodes(std::vector<std::int64_t> starts, HostVector<std::int64_t> ghosts, Communicator& ranks);

  Communicator& ranks() const { return *ranks_; }
  const std::vector<std::int64_t>& starts() const { return starts_; }
  std::int64_t first() const { return starts_[rank_]; }
  std::int64_t own() const { return starts_[rank_ + 1] - starts_[rank_]; }
  std::int64_t all() const { return starts_.back(); }  ///< of all ranks
  const HostVector<std::int64_t>& ghosts() const { return ghosts_; }
  std::int64_t local_count() const { return own() + std::ssize(ghosts_); }
  std::int64_t global(std::int64_t local) const {
    return local < own() ? first() + local : ghosts_[static_cast<std::size_t>(local - own())];
  }
  /// REQUIRES: of this rank or among the ghosts.
  std::int32_t local(std::int64_t global) const;

  /// The values of the ghosts, `each` a node; `of_own`: those of this rank's nodes. Collective.
  template <class T>
  HostVector<T> fetch(std::span<const T> of_own, std::int64_t each) const {
    HostVector<T> of_ghosts(ghosts_.size() * static_cast<std::size_t>(each));
    fetch_bytes(of_own.data(), of_ghosts.data(), static_cast<std::size_t>(each) * sizeof(T));
    return of_ghosts;
  }
  /// The lists of the ghosts; `of_wanted`: those of wanted(). Collective.
  Lists fetch(const Lists& of_wanted) const;
  /// Sends the lists of the ghosts to their ranks. Returns what came: a list for each of wanted(). Collective.
  Lists send_home(const Lists& of_ghosts) const;
  /// This rank's nodes that are ghosts of other ranks, in the order of these ranks; one comes as often as ranks need it.
  const std::vector<std::int32_t>& wanted() const { return wanted_; }

 private:
  /// Nodes in common with another rank.
  struct Neighbour {
    int rank;
    std::int64_t first_ghost = 0, ghosts = 0;   ///< those of its nodes that this rank needs
    std::int64_t first_wanted = 0, wanted = 0;  ///< of this rank's nodes that it needs, in wanted_
  };
  void fetch_bytes(const void* own, void* ghosts, std::size_t item_bytes) const;

  std::vector<std::int64_t> starts_;
  HostVector<std::int64_t> ghosts_;
  Communicator* ranks_;
  std::size_t rank_;
  std::vector<Neighbour> neighbours_;
  std::vector<std::int32_t> wanted_;  ///< own nodes, by neighbour
};

/// Where the nodes of each rank begin, if this rank has `own`. Collective.
std::vector<std::int64_t> starts_of(std::int64_t own, Communicator& ranks);

}  // namespace shardmat::multigrid
