// All-gather through MPI, in place in host memory.
#include "comm/exchange_list.h"
#include "kernels/base/device.h"

namespace shardmat {
namespace {

class HostAllGather final : public Exchange {
 public:
  HostAllGather(const ExchangeContext& context, GatheredLayout layout)
      : Exchange(layout.length()),
        layout_(std::move(layout)),
        communicator_(context.communicator),
        slot_bytes_(static_cast<std::size_t>(layout_.stride) * context.entry_bytes()),
        x_(context.device, static_cast<std::size_t>(length()) * context.entry_bytes()) {
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, x_.bytes(), stream);
  }

  std::string_view name() const override { return "allgather"; }
  std::string how() const override { return "MPI, in place"; }
  void renumber(std::span<std::int64_t> columns) override { layout_.renumber(columns); }
  void* local_x() override { return x_.as<char>() + static_cast<std::size_t>(communicator_.rank()) * slot_bytes_; }
  const void* x() const override { return x_.data(); }
  void start(Stream&) override { communicator_.all_gather_slots(x_.data(), slot_bytes_); }
  void finish(Stream&) override {}
  bool capturable() const override { return true; }  // a host graph replays the function
  void wait(Stream& stream) override { stream.synchronize(); }
  std::int64_t bytes_received() const override {
    return static_cast<std::int64_t>(slot_bytes_) * (communicator_.size() - 1);
  }

  std::int64_t device_bytes() const override { return static_cast<std::int64_t>(x_.bytes()); }

 private:
  GatheredLayout layout_;
  Communicator& communicator_;
  std::size_t slot_bytes_;
  Buffer x_;
};

}  // namespace

std::unique_ptr<Exchange> make_host_all_gather(const ExchangeContext& context, GatheredLayout layout) {
  return context.communicator.together(
      [&]() -> std::unique_ptr<Exchange> { return std::make_unique<HostAllGather>(context, std::move(layout)); });
}

}  // namespace shardmat
