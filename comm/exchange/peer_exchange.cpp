// Peer: a kernel waits until all ranks are there and writes what others need into their memory, over NVLink or PCIe: no
// packing, no library call in an iteration. For GPUs that can reach each other's memory.
#include <fmt/format.h>

#include "comm/exchange/exchange_list.h"
#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"

namespace shardmat {
namespace {

/// Memory of the device that so many sent entries take apart from x.
constexpr std::int64_t list_bytes(std::int64_t sent) {
  return sent * static_cast<std::int64_t>(sizeof(std::int32_t) + sizeof(std::uint8_t));  // place and receiver
}

class PeerExchange final : public Exchange {
 public:
  /// `entries`: the most in x of any rank; `sent`: the most that any rank sends.
  PeerExchange(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map, const SentPlaces& there,
               std::int64_t entries, std::int64_t sent)
      : Exchange(context, std::move(map)),
        communicator_(context.communicator),
        nccl_(*context.nccl),
        sent_(std::ssize(halo().sent)),
        x_(nccl_, bytes_of(entries)),  // windows are alike on all ranks
        meeting_(nccl_, NcclCommunicator::blocks_to_push(sent * static_cast<std::int64_t>(entry_bytes()), entry_bytes(),
                                                         context.overlapped)) {
    context.communicator.run_agreed([&] {
      Stream stream(context.device);
      const auto upload = [&]<class T>(const std::vector<T>& from) {
        Buffer buffer(context.device, from.size() * sizeof(T));
        copy_to_device(buffer.data(), from.data(), buffer.bytes(), stream);
        return buffer;
      };
      require_memory(context.device, list_bytes(sent_), "the entries of x that other ranks need");
      places_ = upload(halo().sent), receivers_ = upload(there.receivers), shifts_ = upload(there.shifts);
      fill_bytes(x_.data(), 0, bytes_of(length()), stream);
      stream.synchronize();
    });
  }

  std::string_view name() const override { return kPeerExchange.name; }
  void* x() const override { return x_.data(); }
  /// As Memory::why_no_window().
  const std::string& why_no_window() const { return x_.symmetric() ? meeting_.why_no_window() : x_.why_no_window(); }
  void start(Stream& stream) override {
    nccl_.push({&x_, &meeting_, entry_bytes(), sent_, places_.as<std::int32_t>(), receivers_.as<std::uint8_t>(),
                shifts_.as<std::int64_t>()},
               stream);
  }
  void finish(Stream&) override {}
  std::optional<std::int64_t> first_late_entry() const override {
    return nccl_.push_lets_next_begin() ? std::optional(halo().first_received()) : std::nullopt;
  }
  void wait(Stream& stream) override { nccl_.wait(stream, "exchange of x"); }
  Communicator::Sent sent_to_other_hosts() const override { return to_other_hosts(communicator_, halo().to, entry_bytes()); }
  std::int64_t device_bytes() const override {
    return static_cast<std::int64_t>(x_.bytes() + places_.bytes() + receivers_.bytes() + shifts_.bytes());
  }

 private:
  const Halo& halo() const { return map().halo(); }
  std::string how() const override {
    if (halo().to.empty()) return "nothing to write";
    return fmt::format("written into the memory of {} other GPU{} by {} thread block{}", halo().to.size(),
                       halo().to.size() == 1 ? "" : "s", meeting_.blocks(), meeting_.blocks() == 1 ? "" : "s");
  }

  Communicator& communicator_;
  NcclCommunicator& nccl_;
  std::int64_t sent_;
  NcclCommunicator::Memory x_;
  NcclCommunicator::Meeting meeting_;
  Buffer places_, receivers_, shifts_;
};

constexpr int kMostRanks = 256;  // see SentPlaces

std::string why_not(const ExchangeContext& context) {
  if (context.device.backend == Backend::host) return "the host backend reaches no memory of other ranks; use halo";
  if (context.nccl == nullptr) return "there is one rank";
  if (context.communicator.size() > kMostRanks) return fmt::format("it is for up to {} ranks; use halo", kMostRanks);
  return context.nccl->why_no_peer_access();
}

/// Windows are alike on all ranks. The list of sent entries is small next to them, except for one right-hand side.
std::int64_t held(Communicator& communicator, const ColumnMap& map) {
  return communicator.all_reduce(map.length() + std::ssize(map.halo().sent), Reduction::max);
}

std::unique_ptr<Exchange> make(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map) {
  Communicator& communicator = context.communicator;
  const SentPlaces there = find_sent_places(communicator, map->halo());
  const std::int64_t entries = communicator.all_reduce(map->length(), Reduction::max),
                     sent = communicator.all_reduce<std::int64_t>(std::ssize(map->halo().sent), Reduction::max);
  auto exchange = std::make_unique<PeerExchange>(context, std::move(map), there, entries, sent);
  communicator.run_agreed([&] {
    if (exchange->why_no_window().empty()) return;
    throw Error(ErrorKind::resources, "exchange 'peer' cannot be had: " + exchange->why_no_window() + "; use halo");
  });
  return exchange;
}

}  // namespace

const ExchangeEntry kPeerExchange = {.name = "peer",
                                     .help = "every rank writes what others need into the memory of their GPUs",
                                     .layout = ColumnLayout::compact,
                                     .ranks = ExchangeRanks::several,
                                     .means = ExchangeMeans::peer_memory,
                                     .why_not = why_not,
                                     .entries_held = held,
                                     .make = make};

}  // namespace shardmat
