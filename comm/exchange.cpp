#include "comm/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "comm/exchange_list.h"
#include "kernels/base/device.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

/// In the gathered layout, by `make`.
template <auto make>
std::unique_ptr<Exchange> make_gathered(const ExchangeContext& context, const XParts& parts, std::span<const std::int64_t>) {
  GatheredLayout layout = make_gathered_layout(context.communicator, parts);
  context.communicator.together([&] {
    require_memory(context.device, layout.length() * static_cast<std::int64_t>(context.entry_bytes()), "the gathered x");
  });
  return make(context, std::move(layout));
}

std::unique_ptr<Exchange> make_all_gather(const ExchangeContext& context, GatheredLayout layout) {
  if (context.communicator.size() == 1) return make_no_exchange(context, std::move(layout));
  return context.device.backend == Backend::host ? make_host_all_gather(context, std::move(layout))
                                                 : make_nccl_all_gather(context, std::move(layout));
}

std::unique_ptr<Exchange> make_halo(const ExchangeContext& context, const XParts& parts,
                                    std::span<const std::int64_t> columns) {
  if (context.communicator.size() == 1) return make_gathered<make_no_exchange>(context, parts, columns);
  return make_halo_exchange(context, parts, columns);
}

constexpr std::array kExchanges = {
    ExchangeEntry{"none", "one rank owns all of x (one rank only)", make_gathered<make_no_exchange>},
    ExchangeEntry{"allgather", "every rank gets all of x (MPI on the host, NCCL on GPUs)", make_gathered<make_all_gather>},
    ExchangeEntry{"halo", "every rank gets what its rows need (MPI on the host, NCCL on GPUs)", make_halo},
};

/// Seconds of one exchange on the slowest rank, the median of some.
double seconds_of(Exchange& exchange, const ExchangeContext& context) {
  constexpr int kWarmUps = 3, kTimes = 11;
  Stream stream(context.device);
  std::vector<Event> marks;
  for (int i = 0; i <= kTimes; ++i) marks.emplace_back(context.device);
  for (int i = -kWarmUps; i <= kTimes; ++i) {
    if (i > -kWarmUps) exchange.start(stream), exchange.finish(stream);
    if (i >= 0) marks[static_cast<std::size_t>(i)].record(stream);
  }
  exchange.wait(stream);
  std::vector<double> seconds;
  for (std::size_t i = 1; i < marks.size(); ++i) seconds.push_back(marks[i].seconds_since(marks[i - 1]));
  context.communicator.all_reduce(std::span<double>(seconds), Reduction::max);
  std::nth_element(seconds.begin(), seconds.begin() + kTimes / 2, seconds.end());
  return seconds[kTimes / 2];
}

/// Halo, unless it moves more than a third of what all-gather does and all-gather then is measured to be faster.
std::unique_ptr<Exchange> choose(const ExchangeContext& context, const XParts& parts, std::span<const std::int64_t> columns) {
  Communicator& communicator = context.communicator;
  if (communicator.size() == 1) {
    auto none = make_gathered<make_no_exchange>(context, parts, columns);
    none->give_reason("one rank");
    return none;
  }
  auto halo = make_halo_exchange(context, parts, columns);
  const std::int64_t needed = communicator.all_reduce(halo->bytes_received(), Reduction::max);
  std::int64_t gathered = 0;  // a rank
  for (std::size_t p = 0; p + 1 < parts.starts.size(); ++p)
    gathered = std::max(gathered, parts.starts[p + 1] - parts.starts[p]);
  gathered *= static_cast<std::int64_t>(context.entry_bytes()) * communicator.size();
  const std::string bytes = fmt::format("a rank needs at most {} of {}", human_bytes(static_cast<double>(needed)),
                                        human_bytes(static_cast<double>(gathered)));
  if (3 * needed <= gathered) {
    halo->give_reason(bytes);
    return halo;
  }
  const std::int64_t free = communicator.all_reduce(available_memory(context.device), Reduction::min);
  if (2 * gathered > free) {  // the matrix has to find room, too
    halo->give_reason(bytes + "; little memory");
    return halo;
  }
  auto all = make_gathered<make_all_gather>(context, parts, columns);
  const double halo_seconds = seconds_of(*halo, context), all_seconds = seconds_of(*all, context);
  auto& best = all_seconds < halo_seconds ? all : halo;
  best->give_reason(fmt::format("{}; measured: halo {}, allgather {}", bytes, human_seconds(halo_seconds),
                                human_seconds(all_seconds)));
  return std::move(best);
}

}  // namespace

std::span<const ExchangeEntry> exchanges() { return kExchanges; }

const ExchangeEntry* find_exchange(std::string_view name) {
  std::vector<std::string> names = {"auto"};
  if (name == "auto") return nullptr;
  for (const ExchangeEntry& entry : kExchanges) {
    if (entry.name == name) return &entry;
    names.emplace_back(entry.name);
  }
  const std::string near = nearest(name, names);
  throw Error(ErrorKind::usage,
              fmt::format("there is no exchange '{}'{}; choose {}", name,
                          near.empty() ? "" : fmt::format("; did you mean '{}'?", near), join_choices(names)));
}

std::unique_ptr<Exchange> make_exchange(std::string_view name, const ExchangeContext& context, const XParts& parts,
                                        std::span<const std::int64_t> columns) {
  if (static_cast<int>(parts.starts.size()) - 1 != context.communicator.size())
    throw Error(ErrorKind::internal,
                fmt::format("{} parts of x for {} ranks", parts.starts.size() - 1, context.communicator.size()));
  const ExchangeEntry* entry = find_exchange(name);
  if (entry == nullptr) return choose(context, parts, columns);
  auto exchange = entry->make(context, parts, columns);
  exchange->give_reason("asked for");
  return exchange;
}

}  // namespace shardmat
