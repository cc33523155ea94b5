#include "comm/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "comm/exchange_list.h"
#include "comm/nccl_communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

/// In the gathered layout, by `make`.
template <auto make>
std::unique_ptr<Exchange> make_gathered(const ExchangeContext& context, const XParts& parts, std::span<const std::int64_t>) {
  GatheredLayout layout = make_gathered_layout(context.communicator, parts);
  context.communicator.together([&] { context.require_room(layout.length(), "the gathered x"); });
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
  return make_halo_exchange(context, shardmat::make_halo(context.communicator, parts, columns));
}

std::unique_ptr<Exchange> make_peer(const ExchangeContext& context, const XParts& parts,
                                    std::span<const std::int64_t> columns) {
  if (context.communicator.size() == 1) return make_gathered<make_no_exchange>(context, parts, columns);
  PeerAttempt attempt = try_peer_exchange(context, shardmat::make_halo(context.communicator, parts, columns));
  context.communicator.together([&] {
    if (attempt.exchange == nullptr) throw Error(ErrorKind::resources, "exchange 'peer' cannot be had: " + attempt.why_not);
  });
  return std::move(attempt.exchange);
}

constexpr std::array kExchanges = {
    ExchangeEntry{"none", "one rank owns all of x (one rank only)", make_gathered<make_no_exchange>},
    ExchangeEntry{"allgather", "every rank gets all of x (MPI on the host, NCCL on GPUs)", make_gathered<make_all_gather>},
    ExchangeEntry{"halo", "every rank gets what its rows need (MPI on the host, NCCL on GPUs)", make_halo},
    ExchangeEntry{"peer", "every rank writes what others need into the memory of their GPUs", make_peer},
};

/// Entries that a rank holds when it has all of x.
std::int64_t gathered_entries(const XParts& parts) {
  std::int64_t largest = 0;
  for (std::size_t p = 0; p + 1 < parts.starts.size(); ++p)
    largest = std::max(largest, parts.starts[p + 1] - parts.starts[p]);
  return (largest + 32) * (std::ssize(parts.starts) - 1);
}

/// What the time counts of an exchange beside which a product can begin: the other way takes two products.
constexpr double kBeside = 0.5;

/// The fastest, what runs beside a product counting half, of halo, peer where GPUs can reach each other's memory, and
/// all-gather if ranks need a third of x or more and there is room for all of it.
std::unique_ptr<Exchange> choose(const ExchangeContext& context, const XParts& parts,
                                 std::span<const std::int64_t> columns) {
  Communicator& communicator = context.communicator;
  if (communicator.size() == 1) {
    auto none = make_gathered<make_no_exchange>(context, parts, columns);
    none->give_reason("one rank");
    return none;
  }
  std::vector<std::unique_ptr<Exchange>> candidates;
  Halo halo = shardmat::make_halo(communicator, parts, columns);
  const auto entry_bytes = static_cast<std::int64_t>(context.entry_bytes());
  const std::int64_t needed = communicator.all_reduce(halo.received * entry_bytes, Reduction::max);
  const std::int64_t entries = gathered_entries(parts), all = entries * entry_bytes;
  std::string why = fmt::format("a rank needs at most {} of {}", human_bytes(static_cast<double>(needed)),
                                human_bytes(static_cast<double>(parts.starts.back() * entry_bytes)));
  candidates.push_back(make_halo_exchange(context, halo));
  const std::int64_t for_peer =
      communicator.all_reduce(halo.length() * entry_bytes + peer_list_bytes(std::ssize(halo.sent)), Reduction::max);
  const std::int64_t free = communicator.all_reduce(available_memory(context.device), Reduction::min);
  const auto fits = [&](std::int64_t bytes) { return 2 * bytes <= free; };  // the matrix has to find room, too
  if (context.device.backend == Backend::cuda && fits(for_peer)) {
    PeerAttempt attempt = try_peer_exchange(context, std::move(halo));
    if (attempt.exchange != nullptr) candidates.push_back(std::move(attempt.exchange));
    else why += "; no peer: " + attempt.why_not;
  } else if (context.device.backend == Backend::cuda) {
    why += "; no peer: no room for another x";
  }
  if (3 * needed > all && fits(all) && entries < std::int64_t{1} << 31)
    candidates.push_back(make_gathered<make_all_gather>(context, parts, columns));
  if (candidates.size() > 1) {
    std::vector<double> seconds;
    for (const auto& candidate : candidates) seconds.push_back(time_exchange(*candidate, context));
    for (std::size_t i = 0; i < candidates.size(); ++i)
      why += fmt::format("{}{} {}", i == 0 ? "; measured: " : ", ", candidates[i]->name(), human_seconds(seconds[i]));
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (context.beside && candidates[i]->first_late_entry()) {
        seconds[i] *= kBeside;
        why += fmt::format(" ({} counts half: products begin beside it)", candidates[i]->name());
      }
    std::swap(candidates[0],
              candidates[static_cast<std::size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin())]);
  }
  candidates[0]->give_reason(why);
  return std::move(candidates[0]);
}

}  // namespace

void ExchangeContext::require_room(std::int64_t entries, const std::string& what) const {
  require_memory(device, entries * static_cast<std::int64_t>(entry_bytes()),
                 width == 1 ? what : fmt::format("{} of {} right-hand sides (fewer at once take less)", what, width));
}

std::int64_t entries_held(std::string_view name, Communicator& communicator, const XParts& parts,
                          std::span<const std::int64_t> columns) {
  if (communicator.size() == 1 || name == "allgather") return gathered_entries(parts);
  const Halo halo = shardmat::make_halo(communicator, parts, columns);
  if (name == "peer") return communicator.all_reduce(halo.length(), Reduction::max);  // windows are alike on all ranks
  return halo.length() + std::ssize(halo.sent);
}

bool reaches_peers(const ExchangeContext& context) {
  return context.nccl != nullptr && context.nccl->why_no_peer_access().empty();
}

double time_exchange(Exchange& exchange, const ExchangeContext& context) {
  constexpr int kWarmUps = 3, kTimes = 11, kTogether = 8;
  constexpr double kShort = 100e-6;  // seconds; beside longer ones the 3 µs of an event do not count
  Stream stream(context.device);
  const auto move = [&] { exchange.start(stream), exchange.finish(stream); };
  for (int i = 0; i < kWarmUps; ++i) move();
  exchange.wait(stream);
  /// The median of so many exchanges, each on its slowest rank: in graphs of `together`, as in iterations.
  const auto time = [&](int times, int together) {
    std::optional<Graph> graph;
    if (exchange.capturable())
      graph.emplace(stream, [&] {
        for (int i = 0; i < together; ++i) move();
      });
    std::vector<Event> marks;
    for (int i = 0; i <= times; ++i) marks.emplace_back(context.device);
    for (Event& mark : marks) graph ? graph->launch(stream) : move(), mark.record(stream);
    exchange.wait(stream);
    std::vector<double> seconds;
    for (std::size_t i = 1; i < marks.size(); ++i)
      seconds.push_back(marks[i].seconds_since(marks[i - 1]) / (graph ? together : 1));
    context.communicator.all_reduce(std::span<double>(seconds), Reduction::max);
    std::nth_element(seconds.begin(), seconds.begin() + times / 2, seconds.end());
    return seconds[static_cast<std::size_t>(times / 2)];
  };
  const double one_by_one = time(kTimes, 1);
  return exchange.capturable() && one_by_one < kShort ? time(kTimes, kTogether) : one_by_one;
}

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
