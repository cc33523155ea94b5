// Shares the ranks' time among clients by their weights: of those that wait, the one goes first that has had the least time
// for its weight. This is deficit round robin with rounds as short as can be: no turn is longer than a product.
//
// A client that comes back after a pause keeps its debt, and has no credit for the time in which it asked for nothing.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace shardmat::serve {

/// Whose request it is: all requests with one token, or all of the Unix socket, are of one client.
struct Client {
  std::string name;
  double weight = 1;  ///< above 0
};

class FairShares {
 public:
  /// The client that goes first, of all that wait; of equal ones, the first in the list. REQUIRES: there is one.
  std::size_t next(std::span<const Client* const> waiting);
  /// The same for some of those that wait. It decides who joins the product of another client.
  std::size_t least(std::span<const Client* const> some) const;
  /// The client has had so many seconds of the ranks' time. Negative ones take back what was charged too much.
  void charge(const Client& client, double seconds);

 private:
  double had(const Client& client) const;

  std::map<std::string, double> had_;  ///< seconds over weight, by name
  double clock_ = 0;                   ///< what the last client had that went first: nobody counts as having had less
};

}  // namespace shardmat::serve
