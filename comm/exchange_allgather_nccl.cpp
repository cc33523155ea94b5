// All-gather through NCCL, in place in memory that NCCL's kernels reach directly (a symmetric window where it
// can).
#include "comm/exchange_list.h"
#include "comm/nccl_communicator.h"
#include "kernels/base/device.h"

namespace shardmat {
namespace {

class NcclAllGather final : public Exchange {
 public:
  NcclAllGather(const ExchangeContext& context, GatheredLayout layout, const std::string& why)
      : Exchange(layout.length()),
        layout_(std::move(layout)),
        communicator_(context.communicator),
        nccl_(*context.nccl),
        type_(context.type),
        x_(nccl_, gathered_bytes(layout_, context.type)),
        why_(why + "; NCCL " + nccl_version() + ", in place, " + x_.description()) {
    // Once here, with zeros everywhere: padding stays zero, since it is gathered from padding, and NCCL
    // connects the ranks now, where a deadline holds, instead of while a graph is recorded.
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, gathered_bytes(layout_, context.type), stream);
    start(stream);
    wait(stream);
  }

  std::string_view name() const override { return "allgather"; }
  std::string why() const override { return why_; }
  void* local_x() override {
    return static_cast<char*>(x_.data()) +
           static_cast<std::size_t>(communicator_.rank()) * slot_bytes(layout_, type_);
  }
  const void* x() const override { return x_.data(); }
  void start(Stream& stream) override {
    nccl_.all_gather_in_place(x_.data(), static_cast<std::size_t>(layout_.stride), type_, stream);
  }
  void finish(Stream&) override {}
  bool capturable() const override { return true; }
  void wait(Stream& stream) override { nccl_.wait(stream, "exchange of x"); }
  std::int64_t bytes_received() const override {
    return static_cast<std::int64_t>(slot_bytes(layout_, type_)) * (communicator_.size() - 1);
  }

 private:
  GatheredLayout layout_;
  Communicator& communicator_;
  NcclCommunicator& nccl_;
  ValueType type_;
  NcclCommunicator::Memory x_;
  std::string why_;
};

}  // namespace

std::unique_ptr<Exchange> make_nccl_all_gather(const ExchangeContext& context, GatheredLayout layout,
                                               const std::string& why) {
  if (context.nccl == nullptr)
    throw Error(ErrorKind::internal, "an exchange between GPUs was made without NCCL");
  return std::make_unique<NcclAllGather>(context, std::move(layout), why);
}

}  // namespace shardmat
