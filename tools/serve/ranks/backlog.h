// The columns that wait for a product: those of every request that was let in, from its header on until its product begins.
// From them follows how long one more request would wait.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace shardmat::serve {

class Backlog {
 public:
  Backlog() = default;
  Backlog(const Backlog&) = delete;
  Backlog& operator=(const Backlog&) = delete;

  /// Columns of one request. They count as long as the object lives. REQUIRES: the backlog outlives it.
  class Entry {
   public:
    Entry(Backlog& backlog, std::uint64_t matrix, std::int64_t columns);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    Backlog& backlog_;
    std::uint64_t matrix_;
    std::int64_t columns_;
  };
  std::unique_ptr<Entry> add(std::uint64_t matrix, std::int64_t columns);

  /// Seconds that so many columns of a matrix take.
  using Seconds = std::function<double(std::uint64_t matrix, std::int64_t columns)>;
  /// Seconds until the product of a further request would begin, if no product is under way.
  double wait(const Seconds& seconds) const;

 private:
  std::map<std::uint64_t, std::int64_t> columns_;  ///< by matrix
};

}  // namespace shardmat::serve
