// All-gather: every rank gets all of x, in place. Through MPI in host memory; through NCCL on GPUs, in plain device memory:
// in symmetric windows NCCL 2.28.9 gathered stale entries of small f32 vectors between two H200.
#include "comm/exchange/exchange_list.h"
#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/device.h"

namespace shardmat {
namespace {

/// Each host must get these bytes once.
Communicator::Sent one_to_each_host(const Communicator& communicator, std::size_t bytes) {
  const std::int64_t others = bytes == 0 ? 0 : communicator.hosts() - 1;
  return {others, others * static_cast<std::int64_t>(bytes)};
}

class HostAllGather final : public Exchange {
 public:
  HostAllGather(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map)
      : Exchange(context, std::move(map)),
        communicator_(context.communicator),
        slot_bytes_(bytes_of(this->map().gathered().stride)),
        x_(context.device, bytes_of(length())) {
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, x_.bytes(), stream);
  }

  std::string_view name() const override { return kAllGatherExchange.name; }
  void* x() const override { return x_.data(); }
  void start(Stream&) override { communicator_.all_gather_slots(x_.data(), slot_bytes_); }
  void finish(Stream&) override {}
  void wait(Stream& stream) override { stream.synchronize(); }
  Communicator::Sent sent_to_other_hosts() const override { return one_to_each_host(communicator_, bytes_of(map().own())); }
  std::int64_t device_bytes() const override { return static_cast<std::int64_t>(x_.bytes()); }

 private:
  std::string how() const override { return "MPI, in place"; }

  Communicator& communicator_;
  std::size_t slot_bytes_;
  Buffer x_;
};

class NcclAllGather final : public Exchange {
 public:
  NcclAllGather(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map)
      : Exchange(context, std::move(map)),
        communicator_(context.communicator),
        nccl_(*context.nccl),
        type_(context.type),
        slot_values_(static_cast<std::size_t>(this->map().gathered().stride * context.width)),
        x_(context.device, bytes_of(length())) {
    // Once here, with zeros everywhere: padding stays zero, since it is gathered from padding, and NCCL
    // connects the ranks now, where a deadline holds, instead of while a graph is recorded.
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, bytes_of(length()), stream);
    start(stream);
    wait(stream);
  }

  std::string_view name() const override { return kAllGatherExchange.name; }
  void* x() const override { return x_.data(); }
  void start(Stream& stream) override { nccl_.all_gather_in_place(x_.data(), slot_values_, type_, stream); }
  void finish(Stream&) override {}
  void wait(Stream& stream) override { nccl_.wait(stream, "exchange of x"); }
  Communicator::Sent sent_to_other_hosts() const override { return one_to_each_host(communicator_, bytes_of(map().own())); }
  std::int64_t device_bytes() const override { return static_cast<std::int64_t>(bytes_of(length())); }

 private:
  std::string how() const override { return "NCCL " + nccl_version() + ", in place"; }

  Communicator& communicator_;
  NcclCommunicator& nccl_;
  ValueType type_;
  std::size_t slot_values_;  ///< of a part
  Buffer x_;
};

std::string why_not(const ExchangeContext&) { return {}; }

std::int64_t held(Communicator&, const ColumnMap& map) { return map.length(); }

std::unique_ptr<Exchange> make(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map) {
  const bool host = context.device.backend == Backend::host;
  if (!host && context.nccl == nullptr) throw Error(ErrorKind::internal, "an exchange between GPUs was made without NCCL");
  auto exchange = context.communicator.run_agreed([&]() -> std::unique_ptr<Exchange> {
    context.require_room(map->length(), "the gathered x");
    return host ? std::make_unique<HostAllGather>(context, map) : nullptr;
  });
  return host ? std::move(exchange) : std::make_unique<NcclAllGather>(context, std::move(map));
}

}  // namespace

const ExchangeEntry kAllGatherExchange = {.name = "allgather",
                                          .help = "every rank gets all of x (MPI on the host, NCCL on GPUs)",
                                          .layout = ColumnLayout::gathered,
                                          .ranks = ExchangeRanks::several,
                                          .means = ExchangeMeans::messages,
                                          .why_not = why_not,
                                          .entries_held = held,
                                          .make = make};

}  // namespace shardmat
