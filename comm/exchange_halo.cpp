// Halo: what others own follows the own entries in one vector, received in place; what others need is packed before. Through
// MPI on the host, grouped ncclSend and ncclRecv on GPUs.
#include <fmt/format.h>

#include "comm/exchange_list.h"
#include "comm/halo.h"
#include "comm/nccl_communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"
#include "kernels/vector.h"

namespace shardmat {
namespace {

constexpr int kTag = 22;

class HaloExchange final : public Exchange {
 public:
  HaloExchange(const ExchangeContext& context, Halo halo)
      : Exchange(halo.length()),
        communicator_(context.communicator),
        nccl_(context.nccl),
        entry_bytes_(context.entry_bytes()),
        halo_(std::move(halo)),
        sent_(std::ssize(halo_.sent)),
        x_(context.device, bytes_of(length())),
        packed_(context.device, bytes_of(sent_)),
        places_(context.device, halo_.sent.size() * sizeof(std::int32_t)) {
    for (const Halo::Peer& peer : halo_.to)
      sends_.push_back({peer.rank, packed_.as<char>() + bytes_of(peer.first), bytes_of(peer.count)});
    for (const Halo::Peer& peer : halo_.from)
      receives_.push_back({peer.rank, x_.as<char>() + bytes_of(halo_.first_received() + peer.first), bytes_of(peer.count)});
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, x_.bytes(), stream);
    copy_to_device(places_.data(), halo_.sent.data(), places_.bytes(), stream);
    stream.synchronize();
    halo_.sent = std::vector<std::int32_t>();
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
  std::string how() const override {
    return fmt::format("{}, from {} and to {} ranks", nccl_ != nullptr ? "NCCL " + nccl_version() : "MPI", halo_.from.size(),
                       halo_.to.size());
  }
  void renumber(std::span<std::int64_t> columns) override { halo_.renumber(columns); }
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
  std::int64_t bytes_received() const override { return static_cast<std::int64_t>(bytes_of(halo_.received)); }
  std::int64_t device_bytes() const override {
    return static_cast<std::int64_t>(x_.bytes() + packed_.bytes() + places_.bytes());
  }

 private:
  std::size_t bytes_of(std::int64_t entries) const { return static_cast<std::size_t>(entries) * entry_bytes_; }

  Communicator& communicator_;
  NcclCommunicator* nccl_;
  std::size_t entry_bytes_;
  Halo halo_;
  std::int64_t sent_;
  Buffer x_, packed_, places_;
  std::vector<Communicator::Transfer::Outgoing> sends_;
  std::vector<Communicator::Transfer::Incoming> receives_;
  Communicator::Transfer transfer_;
  int number_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_halo_exchange(const ExchangeContext& context, Halo halo) {
  if (context.device.backend == Backend::cuda && context.nccl == nullptr)
    throw Error(ErrorKind::internal, "an exchange between GPUs was made without NCCL");
  auto exchange = context.communicator.together([&] {
    context.require_room(halo.length() + std::ssize(halo.sent), "x and its halo");
    return std::make_unique<HaloExchange>(context, std::move(halo));
  });
  exchange->connect();
  return exchange;
}

}  // namespace shardmat
