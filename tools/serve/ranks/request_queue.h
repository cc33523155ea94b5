// The requests that wait for products of one matrix, in the order in which they came. It knows their sizes and times, and
// takes the time of day as an argument.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "tools/serve/ranks/batching.h"

namespace shardmat::serve {

struct WaitingRequest {
  std::uint64_t id = 0;
  std::int64_t columns = 1;
  double arrived = 0;  ///< seconds of a clock
  double deadline = std::numeric_limits<double>::infinity();
  bool alone = false;  ///< it is not merged with others: a product of its own, with as many columns as it has
};

class RequestQueue {
 public:
  /// REQUIRES: 1 <= columns.
  void add(const WaitingRequest& request);
  /// Takes a request out whose client has left. False if it does not wait here any more.
  bool remove(std::uint64_t id);

  struct Batch {
    std::int64_t width = 0;  ///< of the product, which may be padded; one request of more columns takes several products
    std::int64_t columns = 0;
    std::vector<std::uint64_t> requests;
    std::vector<std::uint64_t> expired;  ///< requests whose deadline has passed; they get no product
  };
  /// Takes the requests of the next product out. Requests are never overtaken by later ones: they stop at the first one that
  /// may not begin yet.
  Batch take(
      const WidthTable& table, double now,
      const std::function<bool(std::uint64_t id)>& may_begin = [](std::uint64_t) { return true; });
  /// Takes all requests out.
  std::vector<std::uint64_t> clear();

  bool empty() const { return requests_.empty(); }
  std::size_t size() const { return requests_.size(); }
  std::int64_t columns() const { return columns_; }
  /// The first request. REQUIRES: not empty.
  const WaitingRequest& front() const { return requests_.front(); }

 private:
  std::vector<std::uint64_t> take_expired(double now);
  void drop_front();

  std::deque<WaitingRequest> requests_;
  std::int64_t columns_ = 0;
  double earliest_ = std::numeric_limits<double>::infinity();  ///< no deadline is before this
};

}  // namespace shardmat::serve
