// Moving x between ranks. An exchange owns the gathered x of this rank and the layout of columns in it.
#pragma once

#include <cstdint>
#include <memory>
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

/// Which entries of x each rank owns, and where they lie in the gathered vector: part p owns columns
/// [starts[p], starts[p+1]) and lies at p·stride, so unequal parts fit an equal-count all-gather without
/// unpacking.
struct GatheredLayout {
  std::vector<std::int64_t> starts;  ///< P + 1 entries, the first 0, not decreasing
  std::int64_t stride = 0;           ///< entries; the largest part rounded up to 32

  int parts() const { return static_cast<int>(starts.size()) - 1; }
  std::int64_t length() const { return stride * parts(); }  ///< entries of the gathered vector, padding included
  std::int64_t part_size(int part) const;
  /// Position of a global column in the gathered vector. O(log P). Throws Error(internal) if there is no such
  /// column.
  std::int64_t position(std::int64_t column) const;
};

/// Throws Error(resources) naming the reason if the gathered vector would have 2^31 entries or more.
GatheredLayout make_gathered_layout(std::vector<std::int64_t> starts);

/// One way to move x, ready to run. start()/finish() put work on the stream (host backend: do it) and never
/// synchronise the device; a rank that is gone shows in the wait that follows (see wait()).
class Exchange {
 public:
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  virtual std::string_view name() const = 0;
  /// Why this one, and in what memory, for the report.
  virtual std::string why() const = 0;

  /// Where this rank writes its own entries of x before start(): part_size(rank) entries on the device.
  virtual void* local_x() = 0;
  /// The whole x in the gathered layout, valid in stream order after finish(). Padding is zero.
  virtual const void* gathered_x() const = 0;
  const GatheredLayout& layout() const { return layout_; }

  /// Between start() and finish() nobody may touch x. REQUIRES: work that other ranks' start() waits for was
  /// given to the device on all ranks, i.e. all ranks call start() and launch graphs with it in the same
  /// order.
  virtual void start(Stream& stream) = 0;
  virtual void finish(Stream& stream) = 0;

  /// True if start()/finish() may be recorded into a Graph.
  virtual bool capturable() const = 0;
  /// Blocks until all work on the stream is done, with the communicator's deadline; a lost rank makes it
  /// throw Error(rank_lost), after which the communicator is broken. Call it at least once every 256 graph
  /// launches: CUDA's queue holds about 1000, and a launch into a full queue behind a lost rank has no
  /// deadline.
  virtual void wait(Stream& stream) = 0;

  /// Bytes this rank receives from others in one exchange, padding included.
  virtual std::int64_t bytes_received() const = 0;

 protected:
  explicit Exchange(GatheredLayout layout) : layout_(std::move(layout)) {}
  GatheredLayout layout_;
};

/// What an exchange is built from. `nccl` is null on the host backend or with one rank. The layout has one
/// part a rank.
struct ExchangeContext {
  Communicator& communicator;
  NcclCommunicator* nccl = nullptr;
  Device device = {};
  ValueType type = ValueType::f64;
};

/// One line in the list of exchange.cpp.
struct ExchangeEntry {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Exchange> (*make)(const ExchangeContext& context, GatheredLayout layout, const std::string& why);
};
std::span<const ExchangeEntry> exchanges();

/// The entry of that name, or null for "auto". Throws Error(usage) with the nearest right name for any other.
const ExchangeEntry* find_exchange(std::string_view name);

/// `name` is "auto" or in the list; throws Error(usage) with the nearest right name otherwise. Collective.
/// What the context refers to must outlive the exchange,
/// and graphs that recorded it must not.
std::unique_ptr<Exchange> make_exchange(std::string_view name, const ExchangeContext& context, GatheredLayout layout);

}  // namespace shardmat
