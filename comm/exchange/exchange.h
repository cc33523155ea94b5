// Moving x between ranks. An exchange owns the x that this rank's kernels read; the column map gives the position of each
// column in x. An entry of x is a row of X: one value for each right-hand side.
//
// Threads: one thread at a time uses an exchange. What moves or measures is collective: all ranks call it in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange/column_map.h"
#include "comm/exchange/x_parts.h"
#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

class NcclCommunicator;

/// What an exchange is built from. `nccl` is null on the host backend or with one rank.
struct ExchangeContext {
  Communicator& communicator;
  NcclCommunicator* nccl = nullptr;
  Device device = {};
  ValueType type = ValueType::f64;
  std::int64_t width = 1;   ///< values of an entry = right-hand sides
  bool overlapped = false;  ///< a product runs while x moves and needs room on the device; the same on all ranks
  /// "auto" measures only exchanges of one layout, which a rule chooses: the order of a row's sum may depend on it.
  bool layout_by_rule = false;

  std::size_t entry_bytes() const { return static_cast<std::size_t>(width) * size_of(type); }
  /// Throws Error(resources) if `entries` entries do not fit in device memory; the message names them `what`.
  void require_room(std::int64_t entries, const std::string& what) const;
};

/// One way to move x, ready to run. start() and finish() enqueue work on the stream (host backend: do the work) and never
/// synchronise the device; if a rank is lost, the next wait() throws. Construction, start() and launches of graphs that
/// recorded start() are collective; the accessors are not.
class Exchange {
 public:
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  virtual std::string_view name() const = 0;
  /// Why this exchange was chosen and how it works, for the report.
  std::string why() const { return reason_ + "; " + how(); }
  void give_reason(std::string reason) { reason_ = std::move(reason); }

  const ColumnMap& map() const { return *map_; }
  std::shared_ptr<const ColumnMap> shared_map() const { return map_; }
  /// The x that kernels read: length() entries, valid in stream order after finish() and until the next start(). Padding is
  /// zero.
  virtual void* x() const = 0;
  std::int64_t length() const { return map_->length(); }
  /// Device memory for this rank's own entries of x. Write them before start().
  void* local_x() const { return static_cast<char*>(x()) + static_cast<std::size_t>(map_->first_own()) * entry_bytes_; }

  /// True if nothing moves, so that a product may read this rank's entries, which are all, from any memory of the device.
  virtual bool x_may_lie_elsewhere() const { return false; }

  /// Between start() and finish(), read only this rank's entries, and write none. REQUIRES: all ranks call start(), and
  /// launch graphs that recorded it, in the same order.
  virtual void start(Stream& stream) = 0;
  virtual void finish(Stream& stream) = 0;

  /// If start() lets the next kernel begin early (Stream::next_may_begin()): this entry of x and all entries after it may
  /// arrive while that kernel runs. Else none.
  virtual std::optional<std::int64_t> first_late_entry() const { return std::nullopt; }

  /// True if start() and finish() may be recorded into a Graph.
  virtual bool capturable() const { return true; }
  /// Blocks until all work on the stream is done, with the communicator's deadline. If a rank is lost, throws
  /// Error(rank_lost); the communicator is then broken. Call it at least once every 256 graph launches: CUDA's queue holds
  /// about 1000 launches, and a launch into a full queue behind a lost rank blocks without a deadline.
  virtual void wait(Stream& stream) = 0;

  /// Bytes that this rank receives from other ranks in one exchange, padding included.
  std::int64_t bytes_received() const { return map_->received() * static_cast<std::int64_t>(entry_bytes_); }
  /// What this rank sends to ranks of other hosts in one exchange. For an all-gather: the least, as the library decides.
  virtual Communicator::Sent sent_to_other_hosts() const = 0;
  /// Device memory, x included.
  virtual std::int64_t device_bytes() const = 0;

 protected:
  Exchange(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map)
      : map_(std::move(map)), entry_bytes_(context.entry_bytes()) {}
  std::size_t entry_bytes() const { return entry_bytes_; }
  std::size_t bytes_of(std::int64_t entries) const { return static_cast<std::size_t>(entries) * entry_bytes_; }
  /// The library and the memory that it uses, for the report.
  virtual std::string how() const = 0;

 private:
  std::shared_ptr<const ColumnMap> map_;
  std::size_t entry_bytes_;
  std::string reason_;
};

/// Whether an exchange is for one rank or for several.
enum class ExchangeRanks { one, several };

/// How entries travel.
enum class ExchangeMeans {
  messages,     ///< messages of a library, between any ranks
  two_levels,   ///< messages between hosts, and another way within a host
  peer_memory,  ///< a kernel writes into the memory of other GPUs; the product may start before this kernel ends
};

/// One line in the list of exchange_list.h. "auto" and the performance model choose by these fields, not by names.
struct ExchangeEntry {
  std::string_view name;
  std::string_view help;
  ColumnLayout layout;
  ExchangeRanks ranks;
  ExchangeMeans means;
  /// Why this exchange is not possible here, with the remedy; empty if it is possible. The same on all ranks.
  std::string (*why_not)(const ExchangeContext& context);
  /// Entries of x, and copies of entries, that the exchange holds on this rank's device. Collective.
  std::int64_t (*entries_held)(Communicator& communicator, const ColumnMap& map);
  /// Makes the exchange. Checks memory before it allocates. REQUIRES: a map of this layout. Collective; the same error on
  /// all ranks.
  std::unique_ptr<Exchange> (*make)(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map);
};
std::span<const ExchangeEntry> exchanges();

/// The entry with this name, or null for "auto". For an unknown name throws Error(usage), which suggests the nearest name.
const ExchangeEntry* find_exchange(std::string_view name);

/// A column map and the first exchange over it.
struct MappedExchange {
  std::shared_ptr<ColumnMap> map;
  std::unique_ptr<Exchange> exchange;
};

/// Why the exchange of this name cannot be had; empty if it can, or if there is one rank. Not collective.
std::string why_no_exchange(std::string_view name, const ExchangeContext& context);

/// Makes a map for `columns` (as in make_column_map()) and an exchange that moves their entries. `name` is "auto" or in the
/// list. With one rank, the result is the exchange for one rank, whatever the name. "auto" measures the promising exchanges
/// and takes the fastest; if only one is promising, takes it. The time of an exchange that overlaps with a product counts
/// half. Collective; the same error on all ranks. What the context refers to must outlive the exchange. Graphs that recorded
/// the exchange must be destroyed before it.
MappedExchange make_mapped_exchange(std::string_view name, const ExchangeContext& context, const XParts& parts,
                                    const ColumnView& columns);

/// Makes another exchange over a map, for another number of right-hand sides or another type. "auto" chooses among the
/// exchanges with the map's layout. Throws Error(usage) for a named exchange with another layout. Otherwise as
/// make_mapped_exchange().
std::unique_ptr<Exchange> make_exchange(std::string_view name, const ExchangeContext& context,
                                        std::shared_ptr<const ColumnMap> map);

/// Throws Error(usage) if no exchange has this name, or if it has another layout than the map. Not collective.
void require_exchange_over(std::string_view name, const ColumnMap& map);

/// Entries that an exchange of this name over the map holds on this rank's device. For "auto": the maximum over its choices;
/// while "auto" measures, it may hold more if there is room. Collective.
std::int64_t entries_held(std::string_view name, Communicator& communicator, const ColumnMap& map);
/// The same for a map of `columns` that is not made yet.
std::int64_t entries_held(std::string_view name, Communicator& communicator, const XParts& parts, const ColumnView& columns);

/// Seconds of one exchange on the slowest rank: the median of several exchanges. Collective.
double time_exchange(Exchange& exchange, const ExchangeContext& context);

}  // namespace shardmat
