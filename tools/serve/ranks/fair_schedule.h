// Decides which product is next and whose requests it takes: higher priorities first, inside a priority by fair shares
// (fair_shares.h), and of equal ones the oldest. Everyone in a product is charged for its share of the columns.
//
// Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tools/serve/ranks/batching.h"
#include "tools/serve/ranks/fair_shares.h"
#include "tools/serve/ranks/request_queue.h"

namespace shardmat::serve {

class FairSchedule {
 public:
  using MayBegin = RequestQueue::MayBegin;

  struct Next {
    std::size_t queue = 0;      ///< position in the list of queues
    std::uint64_t request = 0;  ///< for which the product is
  };
  /// Nothing if no request may begin.
  std::optional<Next> next(std::span<const RequestQueue* const> queues, double now, const MayBegin& may_begin);

  /// What one request of a product was charged so far.
  struct Charge {
    Client client;
    int level = 0;
    double columns = 0, seconds = 0;
  };
  struct Batch {
    std::int64_t width = 0;  ///< of the product, which may be padded; one request of more columns takes several products
    std::int64_t columns = 0;
    std::vector<std::uint64_t> requests;
    std::vector<Charge> charges;         ///< of the requests, by the time that the product should take
    std::vector<std::uint64_t> expired;  ///< requests whose deadline has passed; they get no product
  };
  /// Takes the requests of the queue's next product out. As many as pay join the first one, of its priority or above;
  /// lower ones only take the place of padding columns. A first one that went up with time widens its product by younger
  /// ones all the same: those of higher levels join first, then those of its priority.
  Batch take(RequestQueue& queue, const WidthTable& table, double now, const MayBegin& may_begin);

  /// The product of these requests took so many seconds.
  void settle(std::span<const Charge> charges, double seconds);

 private:
  using Heads = std::vector<RequestQueue::Head>;

  RequestQueue::Head first_of(const Heads& heads) const;
  void take(RequestQueue& queue, const RequestQueue::Head& head, double seconds, Batch& batch);
  void fill(RequestQueue& queue, int level, std::int64_t columns, double seconds_of_column, double now,
            const MayBegin& may_begin, Batch& batch);

  std::array<FairShares, kLevels> shares_;  ///< by level
};

}  // namespace shardmat::serve
