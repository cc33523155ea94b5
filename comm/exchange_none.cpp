// One rank: its own x is the whole x, on either backend.
#include "comm/exchange_list.h"
#include "kernels/base/device.h"

namespace shardmat {
namespace {

class NoExchange final : public Exchange {
 public:
  NoExchange(const ExchangeContext& context, GatheredLayout layout)
      : Exchange(layout.length()),
        layout_(std::move(layout)),
        x_(context.device, static_cast<std::size_t>(length()) * context.entry_bytes()) {
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, x_.bytes(), stream);
    stream.synchronize();
  }

  std::string_view name() const override { return "none"; }
  std::string how() const override { return "one rank owns all of x"; }
  void renumber(std::span<std::int64_t> columns) override { layout_.renumber(columns); }
  void* local_x() override { return x_.data(); }
  const void* x() const override { return x_.data(); }
  void start(Stream&) override {}
  void finish(Stream&) override {}
  bool capturable() const override { return true; }
  void wait(Stream& stream) override { stream.synchronize(); }
  std::int64_t bytes_received() const override { return 0; }
  std::int64_t device_bytes() const override { return static_cast<std::int64_t>(x_.bytes()); }

 private:
  GatheredLayout layout_;
  Buffer x_;
};

}  // namespace

std::unique_ptr<Exchange> make_no_exchange(const ExchangeContext& context, GatheredLayout layout) {
  context.communicator.together([&] {
    if (context.communicator.size() > 1)
      throw Error(ErrorKind::usage, "exchange 'none' is for one rank; use --exchange auto");
  });
  return std::make_unique<NoExchange>(context, std::move(layout));
}

}  // namespace shardmat
