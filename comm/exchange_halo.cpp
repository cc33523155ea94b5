// Halo: what others own follows the own entries in one vector, received in place; what others need is packed before. Through
// MPI on the host, grouped ncclSend and ncclRecv on GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "comm/exchange_list.h"
#include "comm/halo.h"
#include "comm/nccl_communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "kernels/vector.h"

namespace shardmat {
namespace {

constexpr int kTag = 22;

class HaloExchange final : public Exchange {
 public:
  /// `begin`: first own column. `places`: where the own columns lie; empty: in their order.
  HaloExchange(const ExchangeContext& context, std::int64_t begin, std::int64_t own, std::vector<std::int32_t> places,
               Halo halo)
      : Exchange(own + std::ssize(halo.entries)),
        communicator_(context.communicator),
        nccl_(context.nccl),
        entry_bytes_(context.entry_bytes()),
        begin_(begin),
        own_(own),
        own_places_(std::move(places)),
        entries_(std::move(halo.entries)),
        how_(fmt::format("{}, from {} and to {} ranks", nccl_ != nullptr ? "NCCL " + nccl_version() : "MPI", halo.from.size(),
                         halo.to.size())),
        sent_(std::ssize(halo.sent)),
        x_(context.device, bytes_of(length())),
        packed_(context.device, bytes_of(sent_)),
        places_(context.device, static_cast<std::size_t>(sent_) * sizeof(std::int32_t)) {
    for (const Halo::Peer& peer : halo.to)
      sends_.push_back({peer.rank, packed_.as<char>() + bytes_of(peer.first), bytes_of(peer.count)});
    for (const Halo::Peer& peer : halo.from)
      receives_.push_back({peer.rank, x_.as<char>() + bytes_of(own + peer.first), bytes_of(peer.count)});
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, x_.bytes(), stream);
    copy_to_device(places_.data(), halo.sent.data(), places_.bytes(), stream);
    stream.synchronize();
  }

  /// Collective: NCCL connects the ranks now, where a deadline holds, instead of while a graph is recorded.
  void connect() {
    if (nccl_ == nullptr) return;
    number_ = nccl_->next_transfer();
    Stream stream(x_.device());
    start(stream);
    wait(stream);
  }

  std::string_view name() const override { return "halo"; }
  std::string how() const override { return how_; }
  void renumber(std::span<std::int64_t> columns) override {
    parallel_ranges(static_cast<std::int64_t>(columns.size()), 1 << 16, [&](std::int64_t first, std::int64_t last) {
      for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) columns[k] = position(columns[k]);
    });
    entries_ = {};
    own_places_ = {};
  }
  void* local_x() override { return x_.data(); }
  const void* x() const override { return x_.data(); }
  void start(Stream& stream) override {
    gather_entries(entry_bytes_, sent_, places_.as<std::int32_t>(), x_.data(), packed_.data(), stream);
    if (nccl_ != nullptr) nccl_->transfer(number_, sends_, receives_, stream);
    else transfer_ = communicator_.start(sends_, receives_, kTag);
  }
  void finish(Stream&) override {
    if (nccl_ == nullptr) communicator_.finish(transfer_);
  }
  bool capturable() const override { return true; }  // a host graph replays the function
  void wait(Stream& stream) override { nccl_ != nullptr ? nccl_->wait(stream, "exchange of x") : stream.synchronize(); }
  std::int64_t bytes_received() const override { return static_cast<std::int64_t>(bytes_of(length() - own_)); }

 private:
  std::size_t bytes_of(std::int64_t entries) const { return static_cast<std::size_t>(entries) * entry_bytes_; }
  std::int64_t position(std::int64_t column) const {
    if (column >= begin_ && column < begin_ + own_)
      return own_places_.empty() ? column - begin_ : own_places_[static_cast<std::size_t>(column - begin_)];
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), column);
    if (found == entries_.end() || *found != column)
      throw Error(ErrorKind::internal, fmt::format("column {} is not among those that the halo was made for", column));
    return own_ + (found - entries_.begin());
  }

  Communicator& communicator_;
  NcclCommunicator* nccl_;
  std::size_t entry_bytes_;
  std::int64_t begin_, own_;
  std::vector<std::int32_t> own_places_;  ///< until renumber(), as the next
  std::vector<std::int64_t> entries_;     ///< columns that come, ascending
  std::string how_;
  std::int64_t sent_;
  Buffer x_, packed_, places_;
  std::vector<Communicator::Transfer::Outgoing> sends_;
  std::vector<Communicator::Transfer::Incoming> receives_;
  Communicator::Transfer transfer_;
  int number_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_halo_exchange(const ExchangeContext& context, const XParts& parts,
                                         std::span<const std::int64_t> columns) {
  Communicator& communicator = context.communicator;
  if (context.device.backend == Backend::cuda && context.nccl == nullptr)
    throw Error(ErrorKind::internal, "an exchange between GPUs was made without NCCL");
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const std::int64_t begin = parts.starts[rank], end = parts.starts[rank + 1], own = end - begin;
  std::vector<std::int32_t> places;
  std::vector<std::int64_t> needed = communicator.together([&] {
    require_host_memory(8 * static_cast<std::int64_t>(columns.size()), "finding the columns that other ranks own");
    std::vector<std::int64_t> others;
    for (const std::int64_t column : columns)
      if (column < begin || column >= end) others.push_back(column);
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    const std::int64_t length = own + std::ssize(others);
    if (length > std::numeric_limits<std::int32_t>::max())
      throw Error(ErrorKind::resources, fmt::format("this rank's rows need {} entries of x, more than 2^31 - 1; use more ranks",
                                                    human_count(length)));
    require_memory(context.device, (length + own) * static_cast<std::int64_t>(context.entry_bytes()), "x and its halo");
    places.resize(parts.order.size());
    for (std::size_t i = 0; i < parts.order.size(); ++i)
      places[static_cast<std::size_t>(parts.order[i])] = static_cast<std::int32_t>(i);
    return others;
  });
  Halo halo = make_halo(communicator, parts.starts, std::move(needed), places);
  auto exchange = communicator.together([&] {
    return std::make_unique<HaloExchange>(context, begin, own, std::move(places), std::move(halo));
  });
  exchange->connect();
  return exchange;
}

}  // namespace shardmat
