// The columns that wait for a product: those of every request that was let in, from its header on until its product begins.
// From them follows how long one more request would wait.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tools/serve/ranks/fair_shares.h"
#include "tools/serve/words/priority.h"

namespace shardmat::serve {

class Backlog {
 public:
  Backlog() = default;
  Backlog(const Backlog&) = delete;
  Backlog& operator=(const Backlog&) = delete;

  struct Work {
    std::uint64_t matrix = 0;
    std::int64_t columns = 1;
    Client client;
    Priority priority = Priority::normal;
    std::int64_t units = 0;  ///< of work that takes its time beside the columns: of batches (batch_pace.h)
  };
  /// The columns of one request. They count as long as the object lives. REQUIRES: the backlog outlives it.
  class Entry {
   public:
    Entry(Backlog& backlog, Work work);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    Backlog& backlog_;
    Work work_;
  };
  std::unique_ptr<Entry> add(Work work) { return std::make_unique<Entry>(*this, std::move(work)); }

  bool has(std::uint64_t matrix) const { return all_.contains(matrix); }

  /// Seconds that so many columns of a matrix take.
  using Seconds = std::function<double(std::uint64_t matrix, std::int64_t columns)>;
  /// Seconds until the product of one more request would begin, if none is under way: what is more urgent comes before it,
  /// and what its client asked for earlier; other clients have their shares meanwhile. Priorities that rise with time are
  /// left out.
  double wait(const Work& work, const Seconds& seconds, double seconds_of_unit = 0) const;

 private:
  using Owner = std::pair<Priority, std::string>;         ///< name of the client
  using Columns = std::map<std::uint64_t, std::int64_t>;  ///< by matrix; none is 0
  struct Waiting {
    double weight = 1;
    Columns columns;
    std::int64_t units = 0;
  };
  static void add(Columns& columns, std::uint64_t matrix, std::int64_t more);

  std::map<Owner, Waiting> waiting_;
  Columns all_;
};

}  // namespace shardmat::serve
