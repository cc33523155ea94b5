// Moving x between ranks. An exchange owns the x that this rank's kernels read, and says where in it a column lies. An entry
// of x is one value, or with several right-hand sides as many values side by side (X row-major).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

class NcclCommunicator;

/// The parts of x, one a rank.
struct XParts {
  std::vector<std::int64_t> starts;          ///< part p owns columns [starts[p], starts[p + 1]); P + 1 entries, the first 0
  std::span<const std::int64_t> order = {};  ///< this rank's entry i is column starts[rank] + order[i]; empty: + i
};

/// One way to move x, ready to run. start()/finish() put work on the stream (host backend: do it) and never
/// synchronise the device; a rank that is gone shows in the wait that follows (see wait()).
class Exchange {
 public:
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  virtual std::string_view name() const = 0;
  /// Why this one, and how it works, for the report.
  std::string why() const { return reason_ + "; " + how(); }
  void give_reason(std::string reason) { reason_ = std::move(reason); }

  /// Columns among those that the exchange was made for become positions in x(). Once: it then forgets what that takes.
  virtual void renumber(std::span<std::int64_t> columns) = 0;

  /// Where this rank writes its own entries of x before start(), on the device.
  virtual void* local_x() = 0;
  /// What kernels read, length() entries, valid in stream order after finish() and until the next start(). Where no column
  /// lies there are zeros.
  virtual const void* x() const = 0;
  std::int64_t length() const { return length_; }

  /// Between start() and finish() the own entries may be read and nobody may touch the others. REQUIRES: work that other
  /// ranks' start() waits for was given to the device on all ranks, i.e. all ranks call start() and launch graphs with it in
  /// the same order.
  virtual void start(Stream& stream) = 0;
  virtual void finish(Stream& stream) = 0;

  /// The first entry that may come from others while start() works, if it lets the next kernel begin beside it
  /// (Stream::next_may_begin()).
  virtual std::optional<std::int64_t> first_late_entry() const { return std::nullopt; }

  /// True if start()/finish() may be recorded into a Graph.
  virtual bool capturable() const = 0;
  /// Blocks until all work on the stream is done, with the communicator's deadline; a lost rank makes it
  /// throw Error(rank_lost), after which the communicator is broken. Call it at least once every 256 graph
  /// launches: CUDA's queue holds about 1000, and a launch into a full queue behind a lost rank has no
  /// deadline.
  virtual void wait(Stream& stream) = 0;

  /// Bytes this rank receives from others in one exchange, padding included.
  virtual std::int64_t bytes_received() const = 0;
  /// Memory of the device, x among it.
  virtual std::int64_t device_bytes() const = 0;

 protected:
  explicit Exchange(std::int64_t length) : length_(length) {}
  /// With what library, in what memory.
  virtual std::string how() const = 0;

 private:
  std::int64_t length_;
  std::string reason_;
};

/// What an exchange is built from. `nccl` is null on the host backend or with one rank.
struct ExchangeContext {
  Communicator& communicator;
  NcclCommunicator* nccl = nullptr;
  Device device = {};
  ValueType type = ValueType::f64;
  std::int64_t width = 1;  ///< values of an entry: right-hand sides
  bool beside = false;     ///< x is to move beside a product, which needs room; the same on all ranks

  std::size_t entry_bytes() const { return static_cast<std::size_t>(width) * size_of(type); }
  /// Throws Error(resources) if so many entries of `what` do not fit the device.
  void require_room(std::int64_t entries, const std::string& what) const;
};

/// One line in the list of exchange.cpp. `columns`: as in make_exchange().
struct ExchangeEntry {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Exchange> (*make)(const ExchangeContext& context, const XParts& parts,
                                    std::span<const std::int64_t> columns);
};
std::span<const ExchangeEntry> exchanges();

/// The entry of that name, or null for "auto". Throws Error(usage) with the nearest right name for any other.
const ExchangeEntry* find_exchange(std::string_view name);

/// An exchange that brings what `columns` need: the columns of this rank's nonzeros, in any order, each as often as it
/// comes. `name` is "auto" or in the list; throws Error(usage) with the nearest right name otherwise. "auto" moves x in each
/// way that promises something and takes the fastest, or the only one that promises something; with `beside`, an exchange
/// beside which products begin may take twice as long. Collective. Memory is checked before it is taken. What the context
/// refers to must outlive the exchange, and graphs that recorded it must not.
std::unique_ptr<Exchange> make_exchange(std::string_view name, const ExchangeContext& context, const XParts& parts,
                                        std::span<const std::int64_t> columns);

/// Entries that such an exchange holds on this rank's device: of x, and as they are sent. "auto" may hold more while it
/// chooses, if there is room. Collective.
std::int64_t entries_held(std::string_view name, Communicator& communicator, const XParts& parts,
                          std::span<const std::int64_t> columns);

/// True if the GPUs of all ranks can reach each other's memory inside kernels; the same on all ranks.
bool reaches_peers(const ExchangeContext& context);

/// Seconds of one exchange on the slowest rank, the median of some. Collective.
double time_exchange(Exchange& exchange, const ExchangeContext& context);

}  // namespace shardmat
