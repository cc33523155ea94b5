// Moving x between ranks. An exchange owns the x that this rank's kernels read; the column map says where in it a column
// lies. An entry of x is one value, or with several right-hand sides as many values side by side (X row-major).
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
  std::int64_t width = 1;   ///< values of an entry: right-hand sides
  bool overlapped = false;  ///< a product runs while x moves, and needs room on the device; the same on all ranks

  std::size_t entry_bytes() const { return static_cast<std::size_t>(width) * size_of(type); }
  /// Throws Error(resources) if so many entries of `what` do not fit the device.
  void require_room(std::int64_t entries, const std::string& what) const;
};

/// One way to move x, ready to run. start() and finish() put work on the stream (host backend: do it) and never synchronise
/// the device; a lost rank shows in the wait() that follows. Construction, start() and launches of graphs that
/// recorded it are collective; the accessors are not.
class Exchange {
 public:
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  virtual std::string_view name() const = 0;
  /// Why this one was taken, and how it works, for the report.
  std::string why() const { return reason_ + "; " + how(); }
  void give_reason(std::string reason) { reason_ = std::move(reason); }

  const ColumnMap& map() const { return *map_; }
  std::shared_ptr<const ColumnMap> shared_map() const { return map_; }
  /// What kernels read, length() entries, valid in stream order after finish() and until the next start(). Entries where no
  /// column lies are zero.
  virtual void* x() const = 0;
  std::int64_t length() const { return map_->length(); }
  /// Where this rank writes its own entries of x before start(), on the device.
  void* local_x() const { return static_cast<char*>(x()) + static_cast<std::size_t>(map_->first_own()) * entry_bytes_; }

  /// Between start() and finish(), read only this rank's entries, and write none. REQUIRES: all ranks call start(), and
  /// launch graphs that recorded it, in the same order.
  virtual void start(Stream& stream) = 0;
  virtual void finish(Stream& stream) = 0;

  /// The first entry that other ranks may write while start() works, if start() lets the next kernel begin before it ends
  /// (Stream::next_may_begin()).
  virtual std::optional<std::int64_t> first_late_entry() const { return std::nullopt; }

  /// True if start() and finish() may be recorded into a Graph.
  virtual bool capturable() const { return true; }
  /// Blocks until all work on the stream is done, with the communicator's deadline; a lost rank makes it
  /// throw Error(rank_lost), after which the communicator is broken. Call it at least once every 256 graph
  /// launches: CUDA's queue holds about 1000, and a launch into a full queue behind a lost rank has no
  /// deadline.
  virtual void wait(Stream& stream) = 0;

  /// Bytes this rank receives from other ranks in one exchange, padding included.
  std::int64_t bytes_received() const { return map_->received() * static_cast<std::int64_t>(entry_bytes_); }
  /// Memory of the device, x included.
  virtual std::int64_t device_bytes() const = 0;

 protected:
  Exchange(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map)
      : map_(std::move(map)), entry_bytes_(context.entry_bytes()) {}
  std::size_t entry_bytes() const { return entry_bytes_; }
  std::size_t bytes_of(std::int64_t entries) const { return static_cast<std::size_t>(entries) * entry_bytes_; }
  /// With what library, in what memory.
  virtual std::string how() const = 0;

 private:
  std::shared_ptr<const ColumnMap> map_;
  std::size_t entry_bytes_;
  std::string reason_;
};

/// For how many ranks an exchange is.
enum class ExchangeRanks { one, several };

/// How entries travel.
enum class ExchangeMeans {
  messages,     ///< by a library, between any ranks
  peer_memory,  ///< a kernel writes into other GPUs' memory; the product may start before it ends
};

/// One line in the list of exchange_list.h. "auto" and the performance model choose by these fields; they know no names.
struct ExchangeEntry {
  std::string_view name;
  std::string_view help;
  ColumnLayout layout;
  ExchangeRanks ranks;
  ExchangeMeans means;
  /// Why there cannot be one here, with the remedy; empty if there can. The same on all ranks.
  std::string (*why_not)(const ExchangeContext& context);
  /// Entries of x, and copies of entries, that one holds on this rank's device. Collective.
  std::int64_t (*entries_held)(Communicator& communicator, const ColumnMap& map);
  /// Collective; the same error on all ranks. Memory is checked before it is taken. REQUIRES: a map of this layout.
  std::unique_ptr<Exchange> (*make)(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map);
};
std::span<const ExchangeEntry> exchanges();

/// The entry of that name, or null for "auto". Throws Error(usage) with the nearest right name for any other.
const ExchangeEntry* find_exchange(std::string_view name);

/// A column map and the first exchange over it.
struct MappedExchange {
  std::shared_ptr<ColumnMap> map;
  std::unique_ptr<Exchange> exchange;
};

/// A map for `columns`, the columns of this rank's nonzeros, in any order, each as often as it comes; and an exchange that
/// brings what they need. `name` is "auto" or in the list. One rank gets the exchange for one rank, whatever the name.
/// "auto" moves x in each way that promises something and takes the fastest, or the only one that promises something; the
/// time of an exchange that overlaps with a product counts half. Collective; the same error on all ranks. What the context
/// refers to must outlive the exchange; graphs that recorded it must not.
MappedExchange make_mapped_exchange(std::string_view name, const ExchangeContext& context, const XParts& parts,
                                    std::span<const std::int64_t> columns);

/// Another exchange over a map, for another number of right-hand sides or another type; "auto" chooses among those of the
/// map's layout. Throws Error(usage) for a named exchange of another layout. Otherwise as make_mapped_exchange().
std::unique_ptr<Exchange> make_exchange(std::string_view name, const ExchangeContext& context,
                                        std::shared_ptr<const ColumnMap> map);

/// Throws Error(usage) if there is no exchange of this name or it does not go over such a map. Not collective.
void require_exchange_over(std::string_view name, const ColumnMap& map);

/// Entries that an exchange of this name over the map holds on this rank's device; the most of the choices for "auto", which
/// may hold more while it measures, if there is room. Collective.
std::int64_t entries_held(std::string_view name, Communicator& communicator, const ColumnMap& map);
/// The same over a map that is not made yet, for `columns`.
std::int64_t entries_held(std::string_view name, Communicator& communicator, const XParts& parts,
                          std::span<const std::int64_t> columns);

/// Seconds of one exchange on the slowest rank, the median of some. Collective.
double time_exchange(Exchange& exchange, const ExchangeContext& context);

}  // namespace shardmat
