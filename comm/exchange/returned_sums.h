// The exchange of a transposed product, which runs the other way round: what a rank has summed for entries that others own
// goes to their owners, who add it. It goes over the column map of the matrix, by MPI on the host and by NCCL between GPUs.
//
// Threads: one thread at a time. Construction, start() and finish() are collective: all ranks call them in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/exchange/exchange.h"

namespace shardmat {

class ReturnedSums {
 public:
  /// Collective; the same error on all ranks. `context.type`: f64 or f32. What the context refers to must outlive this
  /// object.
  ReturnedSums(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map);

  /// Device memory for the sums: map().length() rows of `context.width` values, padding included.
  void* sums() const { return sums_.data(); }
  /// Those of this rank's own entries.
  void* own() const { return static_cast<char*>(sums()) + bytes_of(map_->first_own()); }
  const ColumnMap& map() const { return *map_; }

  /// Sends what others own, in stream order; until finish() nobody writes sums().
  void start(Stream& stream);
  /// Adds what came to own(), rank by rank in ascending order, so that sums have the same bits each time.
  void finish(Stream& stream);
  /// As Exchange::wait().
  void wait(Stream& stream) const;

  /// Bytes that this rank receives in one exchange.
  std::int64_t bytes_received() const { return static_cast<std::int64_t>(received_.bytes()); }
  /// sums() included.
  std::int64_t device_bytes() const;

 private:
  /// Sums of one rank for entries of this rank.
  struct Part {
    int rank;
    std::int64_t first, count;  ///< among the received
  };
  std::size_t bytes_of(std::int64_t entries) const { return static_cast<std::size_t>(entries) * entry_bytes_; }
  void plan_compact();
  void plan_gathered();

  Communicator& communicator_;
  NcclCommunicator* nccl_;
  std::shared_ptr<const ColumnMap> map_;
  ValueType type_;
  std::int64_t width_;
  std::size_t entry_bytes_;
  Buffer sums_, received_, places_;  ///< no places: each rank sends sums of all entries of this rank
  std::vector<Part> parts_;          ///< by ascending rank
  std::vector<Communicator::Transfer::Outgoing> sends_;
  std::vector<Communicator::Transfer::Incoming> receives_;
  Communicator::Transfer transfer_;
  int number_ = 0;
};

}  // namespace shardmat
