// Peer: a kernel waits until all ranks are there and writes what others need into their memory, over NVLink or PCIe: no
// packing, no library call in an iteration. For GPUs that can reach each other's memory.
#include <fmt/format.h>

#include "comm/exchange_list.h"
#include "comm/halo.h"
#include "comm/nccl_communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"

namespace shardmat {
namespace {

class PeerExchange final : public Exchange {
 public:
  /// `entries`: the most in x of any rank; `sent`: the most that any rank sends.
  PeerExchange(const ExchangeContext& context, Halo halo, const SentPlaces& there, std::int64_t entries, std::int64_t sent)
      : Exchange(halo.length()),
        nccl_(*context.nccl),
        entry_bytes_(context.entry_bytes()),
        halo_(std::move(halo)),
        sent_(std::ssize(halo_.sent)),
        x_(nccl_, static_cast<std::size_t>(entries) * entry_bytes_),  // windows are alike on all ranks
        meeting_(nccl_, NcclCommunicator::blocks_to_push(sent * static_cast<std::int64_t>(entry_bytes_), entry_bytes_,
                                                         context.beside)) {
    context.communicator.together([&] {
      Stream stream(context.device);
      const auto upload = [&]<class T>(const std::vector<T>& from) {
        Buffer buffer(context.device, from.size() * sizeof(T));
        copy_to_device(buffer.data(), from.data(), buffer.bytes(), stream);
        return buffer;
      };
      require_memory(context.device, peer_list_bytes(sent_), "what others need of x");
      places_ = upload(halo_.sent), receivers_ = upload(there.receivers), shifts_ = upload(there.shifts);
      fill_bytes(x_.data(), 0, static_cast<std::size_t>(length()) * entry_bytes_, stream);
      stream.synchronize();
    });
    halo_.sent = std::vector<std::int32_t>();
  }

  std::string_view name() const override { return "peer"; }
  std::string how() const override {
    if (halo_.to.empty()) return "nothing to write";
    return fmt::format("written into the memory of {} other GPU{} by {} thread block{}", halo_.to.size(),
                       halo_.to.size() == 1 ? "" : "s", meeting_.blocks(), meeting_.blocks() == 1 ? "" : "s");
  }
  void renumber(std::span<std::int64_t> columns) override { halo_.renumber(columns); }
  void* local_x() override { return x_.data(); }
  const void* x() const override { return x_.data(); }
  /// As Memory::why_no_window().
  const std::string& why_no_window() const { return x_.symmetric() ? meeting_.why_no_window() : x_.why_no_window(); }
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

constexpr int kMostRanks = 256;  // see SentPlaces

/// Empty if ranks can reach each other's memory; on all ranks or on none.
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
  if (!attempt.why_not.empty()) return attempt;
  const SentPlaces there = find_sent_places(communicator, halo);
  const std::int64_t entries = communicator.all_reduce(halo.length(), Reduction::max),
                     sent = communicator.all_reduce<std::int64_t>(std::ssize(halo.sent), Reduction::max);
  auto exchange = std::make_unique<PeerExchange>(context, std::move(halo), there, entries, sent);
  if (exchange->why_no_window().empty()) attempt.exchange = std::move(exchange);
  else attempt.why_not = exchange->why_no_window() + "; use halo";
  return attempt;
}

}  // namespace shardmat
