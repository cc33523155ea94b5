// Peer: a kernel waits until all ranks are there and reads what others own out of their memory, over NVLink or PCIe: no
// packing, no sending, no library call in an iteration. For GPUs that can read each other's memory.
#include <fmt/format.h>

#include <algorithm>

#include "comm/exchange_list.h"
#include "comm/halo.h"
#include "comm/nccl_communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"

namespace shardmat {
namespace {

class PeerExchange final : public Exchange {
 public:
  /// `places`: of the received entries among those of their owners. `entries`: of x and `received` of its halo, most of a
  /// rank.
  PeerExchange(const ExchangeContext& context, Halo halo, std::span<const std::int32_t> places, std::int64_t entries,
               std::int64_t received)
      : Exchange(halo.length()),
        nccl_(*context.nccl),
        entry_bytes_(context.entry_bytes()),
        halo_(std::move(halo)),
        x_(nccl_, static_cast<std::size_t>(entries) * entry_bytes_),  // windows are alike on all ranks
        meeting_(nccl_, NcclCommunicator::blocks_to_pull(received * static_cast<std::int64_t>(entry_bytes_), entry_bytes_,
                                                         context.beside)) {
    context.communicator.together([&] {
      std::vector<std::uint8_t> owners(places.size());
      for (const Halo::Peer& peer : halo_.from)
        std::fill_n(owners.begin() + peer.first, peer.count, static_cast<std::uint8_t>(peer.rank));
      require_memory(context.device, static_cast<std::int64_t>(places.size_bytes() + owners.size()),
                     "the places of the halo");
      places_ = Buffer(context.device, places.size_bytes());
      owners_ = Buffer(context.device, owners.size());
      Stream stream(context.device);
      fill_bytes(x_.data(), 0, static_cast<std::size_t>(length()) * entry_bytes_, stream);
      copy_to_device(places_.data(), places.data(), places_.bytes(), stream);
      copy_to_device(owners_.data(), owners.data(), owners_.bytes(), stream);
      stream.synchronize();
    });
    halo_.sent = std::vector<std::int32_t>();
  }

  std::string_view name() const override { return "peer"; }
  std::string how() const override {
    return fmt::format("read in the memory of {} other GPU{}, {} thread blocks", halo_.from.size(),
                       halo_.from.size() == 1 ? "" : "s", meeting_.blocks());
  }
  void renumber(std::span<std::int64_t> columns) override { halo_.renumber(columns); }
  void* local_x() override { return x_.data(); }
  const void* x() const override { return x_.data(); }
  bool symmetric() const { return x_.symmetric() && meeting_.symmetric(); }
  const std::string& memory() const { return x_.description(); }
  void start(Stream& stream) override {
    nccl_.pull({&x_, &meeting_, entry_bytes_, halo_.received, places_.as<std::int32_t>(), owners_.as<std::uint8_t>(),
                static_cast<char*>(x_.data()) + static_cast<std::size_t>(halo_.first_received()) * entry_bytes_},
               stream);
  }
  void finish(Stream&) override {}
  std::optional<std::int64_t> first_late_entry() const override {
    return nccl_.pull_lets_next_begin() ? std::optional(halo_.first_received()) : std::nullopt;
  }
  bool capturable() const override { return true; }
  void wait(Stream& stream) override { nccl_.wait(stream, "exchange of x"); }
  std::int64_t bytes_received() const override { return halo_.received * static_cast<std::int64_t>(entry_bytes_); }
  std::int64_t device_bytes() const override {
    return static_cast<std::int64_t>(x_.bytes() + places_.bytes() + owners_.bytes());
  }

 private:
  NcclCommunicator& nccl_;
  std::size_t entry_bytes_;
  Halo halo_;
  NcclCommunicator::Memory x_;
  NcclCommunicator::Meeting meeting_;
  Buffer places_, owners_;
};

constexpr int kMostRanks = 256;  // owners are numbers of 8 bits

/// Empty if ranks can read each other's memory.
std::string why_not(const ExchangeContext& context) {
  if (context.device.backend == Backend::host) return "the host backend reads no memory of other ranks; use halo";
  if (context.nccl == nullptr) return "there is one rank";
  if (context.communicator.size() > kMostRanks) return fmt::format("it is for up to {} ranks; use halo", kMostRanks);
  return context.nccl->why_no_peer_access();
}

}  // namespace

PeerAttempt try_peer_exchange(const ExchangeContext& context, Halo halo) {
  Communicator& communicator = context.communicator;
  PeerAttempt attempt{nullptr, why_not(context)};
  if (communicator.all_reduce(attempt.why_not.empty() ? 1 : 0, Reduction::min) == 0) {
    if (attempt.why_not.empty()) attempt.why_not = "another rank cannot; use halo";
    return attempt;
  }
  const std::vector<std::int32_t> places = places_at_owners(communicator, halo);
  const std::int64_t entries = communicator.all_reduce(halo.length(), Reduction::max),
                     received = communicator.all_reduce(halo.received, Reduction::max);
  auto exchange = std::make_unique<PeerExchange>(context, std::move(halo), places, entries, received);
  if (exchange->symmetric()) attempt.exchange = std::move(exchange);
  else attempt.why_not = exchange->memory() + "; use halo";
  return attempt;
}

}  // namespace shardmat
