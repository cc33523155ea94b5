// The nodes of a level of multigrid over the ranks, and what a rank has to do with nodes of other ranks.
//
// Threads: one thread of each rank; what is collective says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/at.h"
#include "kernels/base/host_vector.h"

namespace shardmat::multigrid {

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
  int owners() const;                                  ///< ranks that have nodes
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
  /// As fetch() for items of so many bytes; `of_wanted`: those of wanted(). Collective.
  void fetch_wanted(const void* of_wanted, void* ghosts, std::size_t item_bytes) const;
  /// The lists of the ghosts; `of_wanted`: those of wanted(). Collective.
  Lists fetch(const Lists& of_wanted) const;
  /// Sends the lists of the ghosts to their ranks. Returns what came: a list for each of wanted(). Collective.
  Lists send_home(const Lists& of_ghosts) const;
  /// This rank's nodes that are ghosts of other ranks, in the order of these ranks; one comes as often as ranks need it.
  const std::vector<std::int32_t>& wanted() const { return wanted_; }
  /// True if no node of this rank is a ghost of another, and it has no ghosts.
  bool stays_here() const { return neighbours_.empty(); }
  /// Adds the values of the ghosts to those of their nodes, `each` a node, in the order of the ranks. `values`: of all
  /// nodes, then of this rank's. Collective.
  void add_home(HostVector<double>& values, std::int64_t each) const;

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

/// The items of `lists` that are nodes of other ranks, ascending.
HostVector<std::int64_t> ghosts_in(const Lists& lists, const std::vector<std::int64_t>& starts, const Communicator& ranks);

/// The local numbers that the nodes of `before` have in `after`, or 0: not among its ghosts.
HostVector<std::int32_t> numbers_in(const Nodes& before, const Nodes& after);

/// Where the nodes of each rank begin, if this rank has `own`. Collective.
std::vector<std::int64_t> starts_of(std::int64_t own, Communicator& ranks);

/// All nodes are of the only rank.
std::shared_ptr<const Nodes> nodes_of_one_rank(std::int64_t count, Communicator& ranks);

/// `starts` with fewer ranks that have nodes: ranks in a row give theirs to the first of them, until this one has `least`
/// nodes.
std::vector<std::int64_t> on_fewer_ranks(std::vector<std::int64_t> starts, std::int64_t least);

/// Nodes that this rank made, `own` of them, on_fewer_ranks(). It may number them from 0 on as before: those that have moved
/// away are its ghosts. Collective.
std::shared_ptr<const Nodes> moved_nodes(std::int64_t own, std::int64_t least, Communicator& ranks);

}  // namespace shardmat::multigrid
