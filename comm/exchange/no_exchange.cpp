// One rank: its own x is the whole x, on either backend.
#include "comm/exchange/exchange_list.h"
#include "kernels/base/zeros.h"

namespace shardmat {
namespace {

class NoExchange final : public Exchange {
 public:
  NoExchange(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map)
      : Exchange(context, std::move(map)), x_(zeros(context.device, bytes_of(length()))) {}

  std::string_view name() const override { return kNoExchange.name; }
  void* x() const override { return x_.data(); }
  bool x_may_lie_elsewhere() const override { return map().length() == map().own(); }
  void start(Stream&) override {}
  void finish(Stream&) override {}
  void wait(Stream& stream) override { stream.synchronize(); }
  Communicator::Sent sent_to_other_hosts() const override { return {}; }
  std::int64_t device_bytes() const override { return static_cast<std::int64_t>(x_.bytes()); }

 private:
  std::string how() const override { return "one rank owns all of x"; }

  Buffer x_;
};

std::string why_not(const ExchangeContext& context) {
  return context.communicator.size() == 1 ? "" : "it is for one rank; choose auto";
}

std::int64_t held(Communicator&, const ColumnMap& map) { return map.length(); }

std::unique_ptr<Exchange> make(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map) {
  return context.communicator.run_agreed([&]() -> std::unique_ptr<Exchange> {
    context.require_room(map->length(), "x");
    return std::make_unique<NoExchange>(context, std::move(map));
  });
}

}  // namespace

const ExchangeEntry kNoExchange = {.name = "none",
                                   .help = "one rank owns all of x (one rank only)",
                                   .layout = ColumnLayout::gathered,
                                   .ranks = ExchangeRanks::one,
                                   .means = ExchangeMeans::messages,
                                   .why_not = why_not,
                                   .entries_held = held,
                                   .make = make};

}  // namespace shardmat
