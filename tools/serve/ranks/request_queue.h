// The requests that wait for products of one matrix. Those of one client with one priority are a lane, in which nobody
// passes. It knows their sizes, and takes the time of day as an argument. schedule.h decides who is next.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/serve/ranks/fair_shares.h"
#include "tools/serve/words/priority.h"

namespace shardmat::serve {

struct WaitingRequest {
  std::uint64_t id = 0;  ///< rises in the order of arrival
  std::int64_t columns = 1;
  double arrived = 0;  ///< seconds of a clock
  double deadline = std::numeric_limits<double>::infinity();
  bool alone = false;  ///< it is not merged with others: a product of its own, with as many columns as it has
  Client client = {};
  Priority priority = Priority::normal;
};

/// Level 0 goes first. A lane goes up one level for each kAgeSeconds in which it waited and got nothing, so that it is
/// served at last.
constexpr double kAgeSeconds = 2;
constexpr int kLevels = static_cast<int>(kPriorityNames.size());
/// Of what waits `since` then.
int level_of(Priority priority, double since, double now);

class RequestQueue {
 public:
  using MayBegin = std::function<bool(std::uint64_t id)>;

  /// REQUIRES: 1 <= columns.
  void add(const WaitingRequest& request);
  /// Takes a request out whose client has left. False if it does not wait here any more.
  bool remove(std::uint64_t id);
  /// Takes out those whose deadline has passed.
  std::vector<std::uint64_t> take_expired(double now);
  /// Takes all requests out.
  std::vector<std::uint64_t> clear();

  struct Head {
    const WaitingRequest* request;
    int level;
  };
  /// The first request of each lane, if it may begin. Valid until the queue changes.
  std::vector<Head> heads(double now, const MayBegin& may_begin) const;
  /// Takes the first request of a lane out for the product that is being put together. REQUIRES: it is one.
  void pop(const WaitingRequest& head);
  /// The product is complete: the lanes that are part of it are served now.
  void close_product(double now);
  /// Columns that can be merged with others and are at this level or above, counted up to `most`.
  std::int64_t columns(int level, double now, std::int64_t most) const;

  /// No deadline is before this.
  double earliest_deadline() const { return earliest_; }
  bool empty() const { return lanes_.empty(); }
  std::size_t size() const;
  /// Adds the number of requests of each client, by its name.
  void count(std::map<std::string, std::size_t>& by_client) const;

 private:
  using Key = std::pair<Priority, std::string>;  ///< priority and name of the client
  struct Lane {
    std::deque<WaitingRequest> requests;
    double served = -std::numeric_limits<double>::infinity();  ///< when it last was part of a product
    bool in_product = false;                                   ///< that is being put together

    int level(const WaitingRequest& request, double now) const;
  };

  std::map<Key, Lane> lanes_;                                  ///< none is empty
  double earliest_ = std::numeric_limits<double>::infinity();  ///< no deadline is before this
};

}  // namespace shardmat::serve
