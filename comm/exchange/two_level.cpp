// Two levels: what the ranks of a host need of other hosts is sent to the host once, and the host's ranks share it. Several
// ranks of a host often need the same entries; with the halo each of them gets its own copy through the network.
#include "comm/exchange/two_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "comm/exchange/exchange_list.h"
#include "comm/exchange/halo.h"
#include "kernels/base/text.h"

namespace shardmat {

BetweenHosts sum_between_hosts(const ExchangeContext& context, const ColumnMap& map, const Communicator::Sent& mine) {
  const Communicator::Sent by_halo = to_other_hosts(context.communicator, map.halo().to, context.entry_bytes());
  std::array all = {mine.messages, mine.bytes, by_halo.messages, by_halo.bytes};
  context.communicator.all_reduce(std::span<std::int64_t>(all), Reduction::sum);
  return {{all[0], all[1]}, {all[2], all[3]}};
}

std::string text_of(const BetweenHosts& all) {
  return fmt::format("{} cross between hosts in {} messages, {} in {} with halo",
                     human_bytes(static_cast<double>(all.sent.bytes)), all.sent.messages,
                     human_bytes(static_cast<double>(all.by_halo.bytes)), all.by_halo.messages);
}

namespace {

std::string why_not_on_hosts(const Communicator& communicator) {
  if (communicator.hosts() == 1) return "all ranks are on one host; use halo";
  if (communicator.hosts() == communicator.size()) return "no two ranks share a host; use halo";
  return {};
}
std::string why_not(const ExchangeContext& context) { return why_not_on_hosts(context.communicator); }

std::int64_t held(Communicator& communicator, const ColumnMap& map) {
  if (!why_not_on_hosts(communicator).empty()) return map.length();
  return std::max(held_by_two_level_of_host(map), held_by_two_level_relays(communicator, map));
}

std::unique_ptr<Exchange> make(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map) {
  return context.device.backend == Backend::host ? make_two_level_of_host(context, std::move(map))
                                                 : make_two_level_by_relays(context, std::move(map));
}

}  // namespace

const ExchangeEntry kTwoLevelExchange = {
    .name = "two_level",
    .help = "every host gets once what its ranks need, and they share it (several hosts)",
    .layout = ColumnLayout::compact,
    .ranks = ExchangeRanks::several,
    .means = ExchangeMeans::two_levels,
    .why_not = why_not,
    .entries_held = held,
    .make = make};

}  // namespace shardmat
