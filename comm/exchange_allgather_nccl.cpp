// All-gather through NCCL, in place in memory that NCCL's kernels reach directly (a symmetric window where it
// can).
#include "comm/exchange_list.h"
#include "comm/nccl_communicator.h"
#include "kernels/base/device.h"

namespace shardmat {
namespace {

class NcclAllGather final : public Exchange {
 public:
  NcclAllGather(const ExchangeContext& context, GatheredLayout layout)
      : Exchange(layout.length()),
        layout_(std::move(layout)),
        communicator_(context.communicator),
        nccl_(*context.nccl),
        type_(context.type),
        slot_values_(static_cast<std::size_t>(layout_.stride * context.width)),
        x_(nccl_, static_cast<std::size_t>(length()) * context.entry_bytes()) {
    // Once here, with zeros everywhere: padding stays zero, since it is gathered from padding, and NCCL
    // connects the ranks now, where a deadline holds, instead of while a graph is recorded.
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, static_cast<std::size_t>(length()) * context.entry_bytes(), stream);
    start(stream);
    wait(stream);
  }

  std::string_view name() const override { return "allgather"; }
  std::string how() const override {
    return "NCCL " + nccl_version() + ", in place, " +
           (x_.symmetric() ? "symmetric window" : "plain device memory: " + x_.why_no_window());
  }
  void renumber(std::span<std::int64_t> columns) override { layout_.renumber(columns); }
  void* local_x() override {
    return static_cast<char*>(x_.data()) + static_cast<std::size_t>(communicator_.rank()) * slot_bytes();
  }
  const void* x() const override { return x_.data(); }
  void start(Stream& stream) override { nccl_.all_gather_in_place(x_.data(), slot_values_, type_, stream); }
  void finish(Stream&) override {}
  bool capturable() const override { return true; }
  void wait(Stream& stream) override { nccl_.wait(stream, "exchange of x"); }
  std::int64_t bytes_received() const override {
    return static_cast<std::int64_t>(slot_bytes()) * (communicator_.size() - 1);
  }

  std::int64_t device_bytes() const override { return bytes_received() + static_cast<std::int64_t>(slot_bytes()); }

 private:
  std::size_t slot_bytes() const { return slot_values_ * size_of(type_); }

  GatheredLayout layout_;
  Communicator& communicator_;
  NcclCommunicator& nccl_;
  ValueType type_;
  std::size_t slot_values_;  ///< of a part
  NcclCommunicator::Memory x_;
};

}  // namespace

std::unique_ptr<Exchange> make_nccl_all_gather(const ExchangeContext& context, GatheredLayout layout) {
  if (context.nccl == nullptr) throw Error(ErrorKind::internal, "an exchange between GPUs was made without NCCL");
  return std::make_unique<NcclAllGather>(context, std::move(layout));
}

}  // namespace shardmat
