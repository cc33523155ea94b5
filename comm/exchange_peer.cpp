// Peer: a kernel waits until all ranks are there and writes what others need into their memory, over NVLink or PCIe: no
// packing, no library call in an iteration. For GPUs that can reach each other's memory.
#include <fmt/format.h>

#include <algorithm>

#include "comm/exchange_list.h"
#include "comm/halo.h"
#include "comm/nccl_communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"

namespace shardmat {
namespace {

/// What a rank writes, the entries for the ranks behind it first: if all began with the same one, its link would be all they
/// had.
struct Sending {
  std::vector<std::int32_t> places;     ///< of the entries in x here
  std::vector<std::uint8_t> receivers;  ///< of each entry
  std::vector<std::int64_t> shifts;     ///< one a rank: entry i goes to place i + shifts[receiver] of its x
};

/// `shifts`: at first where in x of each rank the entries begin that come from this one.
Sending plan_sending(const Halo& halo, int rank, std::vector<std::int64_t> shifts) {
  Sending sending;
  sending.places.reserve(halo.sent.size()), sending.receivers.reserve(halo.sent.size());
  std::vector<Halo::Peer> to = halo.to;
  std::rotate(to.begin(), std::find_if(to.begin(), to.end(), [&](const Halo::Peer& peer) { return peer.rank > rank; }),
              to.end());
  for (const Halo::Peer& peer : to) {
    shifts[static_cast<std::size_t>(peer.rank)] -= std::ssize(sending.places);
    const auto first = halo.sent.begin() + peer.first;
    sending.places.insert(sending.places.end(), first, first + peer.count);
    sending.receivers.insert(sending.receivers.end(), static_cast<std::size_t>(peer.count),
                             static_cast<std::uint8_t>(peer.rank));
  }
  sending.shifts = std::move(shifts);
  return sending;
}

class PeerExchange final : public Exchange {
 public:
  /// `entries`: of x, and `sent`, most of a rank.
  PeerExchange(const ExchangeContext& context, Halo halo, std::vector<std::int64_t> places_there, std::int64_t entries,
               std::int64_t sent)
      : Exchange(halo.length()),
        nccl_(*context.nccl),
        entry_bytes_(context.entry_bytes()),
        halo_(std::move(halo)),
        sent_(std::ssize(halo_.sent)),
        x_(nccl_, static_cast<std::size_t>(entries) * entry_bytes_),  // windows are alike on all ranks
        meeting_(nccl_, NcclCommunicator::blocks_to_push(sent * static_cast<std::int64_t>(entry_bytes_), entry_bytes_,
                                                         context.beside)) {
    context.communicator.together([&] {
      const Sending sending = plan_sending(halo_, context.communicator.rank(), std::move(places_there));
      Stream stream(context.device);
      const auto upload = [&]<class T>(const std::vector<T>& from) {
        Buffer buffer(context.device, from.size() * sizeof(T));
        copy_to_device(buffer.data(), from.data(), buffer.bytes(), stream);
        return buffer;
      };
      require_memory(context.device, sent_ * static_cast<std::int64_t>(sizeof(std::int32_t) + sizeof(std::uint8_t)),
                     "what others need of x");
      places_ = upload(sending.places), receivers_ = upload(sending.receivers), shifts_ = upload(sending.shifts);
      fill_bytes(x_.data(), 0, static_cast<std::size_t>(length()) * entry_bytes_, stream);
      stream.synchronize();
    });
    halo_.sent = std::vector<std::int32_t>();
  }

  std::string_view name() const override { return "peer"; }
  std::string how() const override {
    return fmt::format("written into the memory of {} other GPU{} by {} thread blocks", halo_.to.size(),
                       halo_.to.size() == 1 ? "" : "s", meeting_.blocks());
  }
  void renumber(std::span<std::int64_t> columns) override { halo_.renumber(columns); }
  void* local_x() override { return x_.data(); }
  const void* x() const override { return x_.data(); }
  bool symmetric() const { return x_.symmetric() && meeting_.symmetric(); }
  const std::string& memory() const { return x_.description(); }
  void start(Stream& stream) override {
    nccl_.push({&x_, &meeting_, entry_bytes_, sent_, places_.as<std::int32_t>(), receivers_.as<std::uint8_t>(),
                shifts_.as<std::int64_t>()},
               stream);
  }
  void finish(Stream&) override {}
  std::optional<std::int64_t> first_late_entry() const override {
    return nccl_.push_lets_next_begin() ? std::optional(halo_.first_received()) : std::nullopt;
  }
  bool capturable() const override { return true; }
  void wait(Stream& stream) override { nccl_.wait(stream, "exchange of x"); }
  std::int64_t bytes_received() const override { return halo_.received * static_cast<std::int64_t>(entry_bytes_); }
  std::int64_t device_bytes() const override {
    return static_cast<std::int64_t>(x_.bytes() + places_.bytes() + receivers_.bytes() + shifts_.bytes());
  }

 private:
  NcclCommunicator& nccl_;
  std::size_t entry_bytes_;
  Halo halo_;
  std::int64_t sent_;
  NcclCommunicator::Memory x_;
  NcclCommunicator::Meeting meeting_;
  Buffer places_, receivers_, shifts_;
};

constexpr int kMostRanks = 256;  // receivers are numbers of 8 bits

/// Empty if ranks can reach each other's memory.
std::string why_not(const ExchangeContext& context) {
  if (context.device.backend == Backend::host) return "the host backend reaches no memory of other ranks; use halo";
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
  std::vector<std::int64_t> places_there = places_at_receivers(communicator, halo);
  const std::int64_t entries = communicator.all_reduce(halo.length(), Reduction::max),
                     sent = communicator.all_reduce<std::int64_t>(std::ssize(halo.sent), Reduction::max);
  auto exchange = std::make_unique<PeerExchange>(context, std::move(halo), std::move(places_there), entries, sent);
  if (exchange->symmetric()) attempt.exchange = std::move(exchange);
  else attempt.why_not = exchange->memory() + "; use halo";
  return attempt;
}

}  // namespace shardmat
