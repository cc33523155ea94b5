// Halo: what others own follows the own entries in one vector, received in place; what others need is packed before. Through
// MPI on the host, grouped ncclSend and ncclRecv on GPUs.
#include <fmt/format.h>

#include "comm/exchange/exchange_list.h"
#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"
#include "kernels/vector.h"

namespace shardmat {
namespace {

constexpr int kTag = 22;

class HaloExchange final : public Exchange {
 public:
  HaloExchange(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map)
      : Exchange(context, std::move(map)),
        communicator_(context.communicator),
        nccl_(context.nccl),
        sent_(std::ssize(halo().sent)),
        x_(context.device, bytes_of(length())),
        packed_(context.device, bytes_of(sent_)),
        places_(context.device, halo().sent.size() * sizeof(std::int32_t)) {
    for (const Halo::Peer& peer : halo().to)
      sends_.push_back({peer.rank, packed_.as<char>() + bytes_of(peer.first), bytes_of(peer.count)});
    for (const Halo::Peer& peer : halo().from)
      receives_.push_back({peer.rank, x_.as<char>() + bytes_of(halo().first_received() + peer.first), bytes_of(peer.count)});
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, x_.bytes(), stream);
    copy_to_device(places_.data(), halo().sent.data(), places_.bytes(), stream);
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

  std::string_view name() const override { return kHaloExchange.name; }
  void* x() const override { return x_.data(); }
  void start(Stream& stream) override {
    gather_entries(entry_bytes(), sent_, places_.as<std::int32_t>(), x_.data(), packed_.data(), stream);
    if (nccl_ != nullptr) nccl_->transfer(number_, sends_, receives_, stream);
    else transfer_ = communicator_.start(sends_, receives_, kTag);
  }
  void finish(Stream&) override {
    if (nccl_ == nullptr) communicator_.finish(transfer_);
  }
  void wait(Stream& stream) override { nccl_ != nullptr ? nccl_->wait(stream, "exchange of x") : stream.synchronize(); }
  Communicator::Sent sent_to_other_hosts() const override { return to_other_hosts(communicator_, halo().to, entry_bytes()); }
  std::int64_t device_bytes() const override {
    return static_cast<std::int64_t>(x_.bytes() + packed_.bytes() + places_.bytes());
  }

 private:
  const Halo& halo() const { return map().halo(); }
  std::string how() const override {
    return fmt::format("{}, from {} and to {} ranks", nccl_ != nullptr ? "NCCL " + nccl_version() : "MPI",
                       halo().from.size(), halo().to.size());
  }

  Communicator& communicator_;
  NcclCommunicator* nccl_;
  std::int64_t sent_;
  Buffer x_, packed_, places_;
  std::vector<Communicator::Transfer::Outgoing> sends_;
  std::vector<Communicator::Transfer::Incoming> receives_;
  Communicator::Transfer transfer_;
  int number_ = 0;
};

std::string why_not(const ExchangeContext&) { return {}; }

std::int64_t held(Communicator&, const ColumnMap& map) { return map.length() + std::ssize(map.halo().sent); }

std::unique_ptr<Exchange> make(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map) {
  if (context.device.backend == Backend::cuda && context.nccl == nullptr)
    throw Error(ErrorKind::internal, "an exchange between GPUs was made without NCCL");
  auto exchange = context.communicator.run_agreed([&] {
    context.require_room(map->length() + std::ssize(map->halo().sent), "x and its halo");
    return std::make_unique<HaloExchange>(context, std::move(map));
  });
  exchange->connect();
  return exchange;
}

}  // namespace

const ExchangeEntry kHaloExchange = {.name = "halo",
                                     .help = "every rank gets what its rows need (MPI on the host, NCCL on GPUs)",
                                     .layout = ColumnLayout::compact,
                                     .ranks = ExchangeRanks::several,
                                     .means = ExchangeMeans::messages,
                                     .why_not = why_not,
                                     .entries_held = held,
                                     .make = make};

}  // namespace shardmat
