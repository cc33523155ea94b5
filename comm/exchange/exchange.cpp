#include "comm/exchange/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "comm/exchange/exchange_list.h"
#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

const ExchangeEntry& for_one_rank() {
  return *std::find_if(exchanges().begin(), exchanges().end(),
                       [](const ExchangeEntry& entry) { return entry.ranks == ExchangeRanks::one; });
}

/// A named exchange that cannot be had here is refused on all ranks.
void require_available(const ExchangeEntry& entry, const ExchangeContext& context) {
  context.communicator.run_agreed([&] {
    const std::string why_not = entry.why_not(context);
    if (why_not.empty()) return;
    if (entry.ranks == ExchangeRanks::one)
      throw Error(ErrorKind::usage, fmt::format("exchange '{}' is for one rank; choose auto", entry.name));
    throw Error(ErrorKind::resources, fmt::format("exchange '{}' cannot be had: {}", entry.name, why_not));
  });
}

/// The named entry, or null for "auto" with several ranks. Frees first what earlier exchanges have left.
const ExchangeEntry* named_entry(std::string_view name, const ExchangeContext& context) {
  const ExchangeEntry* named = context.communicator.run_agreed([&] { return find_exchange(name); });
  if (context.communicator.size() == 1) return &for_one_rank();
  if (context.nccl != nullptr) context.nccl->free_retired();
  if (named != nullptr) require_available(*named, context);
  return named;
}

/// Weight of the time of an exchange that overlaps with the product, when exchanges are compared: without overlap the
/// product is cut in two.
constexpr double kOverlapWeight = 0.5;
/// An all-gather is tried if a rank needs more than this share of x.
constexpr double kMuchOfX = 1.0 / 3;
/// Of the rule: an all-gather is taken from this share on.
constexpr double kMostOfX = 0.75;

/// The exchanges that "auto" compares, and what it says about them.
class Candidates {
 public:
  explicit Candidates(const ExchangeContext& context)
      : context_(context), free_(context.communicator.all_reduce(available_memory(context.device), Reduction::min)) {}

  /// Adds each exchange of the map's layout that can be had. All but the first must leave half of the device's memory to the
  /// matrix.
  void add(const std::shared_ptr<const ColumnMap>& map) {
    for (const ExchangeEntry& entry : exchanges()) {
      if (entry.ranks == ExchangeRanks::one || entry.layout != map->layout()) continue;
      if (context_.device.backend == Backend::host && !entry.why_not(context_).empty()) continue;  // nobody expects it
      const std::string why_not = why_left_out(entry, *map);
      if (!why_not.empty()) why_ += fmt::format("; no {}: {}", entry.name, why_not);
      else try_to_make(entry, map);
    }
  }
  /// The fastest; measures only if there is a choice. `why` begins the reason.
  std::unique_ptr<Exchange> fastest(std::string why) {
    if (all_.empty()) throw Error(ErrorKind::internal, "no exchange was found for these ranks" + why_);
    why += why_;
    std::size_t best = 0;
    if (all_.size() > 1) {
      std::vector<double> seconds;
      for (const auto& candidate : all_) seconds.push_back(time_exchange(*candidate, context_));
      for (std::size_t i = 0; i < all_.size(); ++i)
        why += fmt::format("{}{} {}", i == 0 ? "; measured: " : ", ", all_[i]->name(), human_seconds(seconds[i]));
      for (std::size_t i = 0; i < all_.size(); ++i)
        if (context_.overlapped && all_[i]->first_late_entry()) {
          seconds[i] *= kOverlapWeight;
          why += fmt::format(" ({} counts half: it overlaps with the product)", all_[i]->name());
        }
      best = static_cast<std::size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
    }
    std::unique_ptr<Exchange> chosen = std::move(all_[best]);
    all_.clear();
    if (context_.nccl != nullptr) context_.nccl->free_retired();
    chosen->give_reason(why);
    return chosen;
  }
  /// All ranks have room for so many entries, and as much again.
  bool fits(std::int64_t entries) const { return 2 * entries * static_cast<std::int64_t>(context_.entry_bytes()) <= free_; }

 private:
  std::string why_left_out(const ExchangeEntry& entry, const ColumnMap& map) {
    const std::string why_not = entry.why_not(context_);
    if (!why_not.empty() || all_.empty()) return why_not;
    const std::int64_t held =
        context_.communicator.all_reduce(entry.entries_held(context_.communicator, map), Reduction::max);
    return fits(held) ? "" : "no room for another x";
  }
  void try_to_make(const ExchangeEntry& entry, const std::shared_ptr<const ColumnMap>& map) {
    try {
      all_.push_back(entry.make(context_, map));
    } catch (const AgreedError& error) {  // on all ranks, so they go on alike
      if (error.kind() != ErrorKind::resources || all_.empty()) throw;
      why_ += fmt::format("; no {}: {}", entry.name, error.what());
    }
  }

  const ExchangeContext& context_;
  std::int64_t free_;
  std::vector<std::unique_ptr<Exchange>> all_;
  std::string why_;
};

/// Compares the exchanges over compact maps, and over gathered ones where ranks need much of x and there is room for all.
MappedExchange choose(const ExchangeContext& context, const XParts& parts, const ColumnView& columns) {
  Communicator& communicator = context.communicator;
  auto compact = make_column_map(ColumnLayout::compact, communicator, parts, columns);
  const auto entry_bytes = static_cast<std::int64_t>(context.entry_bytes());
  const std::int64_t needed = communicator.all_reduce(compact->received(), Reduction::max),
                     all = gathered_length(parts.starts);
  Candidates candidates(context);
  const double share = context.layout_by_rule ? kMostOfX : kMuchOfX;
  const bool may_gather =
      static_cast<double>(needed) > share * static_cast<double>(all) && candidates.fits(all) && all < std::int64_t{1} << 31;
  if (!may_gather || !context.layout_by_rule) candidates.add(compact);
  std::shared_ptr<ColumnMap> gathered;
  if (may_gather) {
    gathered = make_column_map(ColumnLayout::gathered, communicator, parts, columns);
    candidates.add(gathered);
  }
  auto exchange = candidates.fastest(
      fmt::format("a rank needs at most {} of {}{}", human_bytes(static_cast<double>(needed * entry_bytes)),
                  human_bytes(static_cast<double>(parts.starts.back() * entry_bytes)),
                  context.layout_by_rule ? "; by rule, for reproducible results: where x lies" : ""));
  auto map = exchange->map().layout() == ColumnLayout::compact ? compact : gathered;
  return {std::move(map), std::move(exchange)};
}

std::string reason(std::string_view name, const ExchangeContext& context) {
  return name != "auto" ? "asked for" : context.communicator.size() == 1 ? "one rank" : "the only one";
}

}  // namespace

void ExchangeContext::require_room(std::int64_t entries, const std::string& what) const {
  require_memory(device, entries * static_cast<std::int64_t>(entry_bytes()),
                 width == 1 ? what : fmt::format("{} of {} right-hand sides (fewer at once take less)", what, width));
}

std::string why_no_exchange(std::string_view name, const ExchangeContext& context) {
  const auto entry = std::find_if(exchanges().begin(), exchanges().end(), [&](const auto& one) { return one.name == name; });
  return entry == exchanges().end() || context.communicator.size() == 1 ? std::string() : entry->why_not(context);
}

MappedExchange make_mapped_exchange(std::string_view name, const ExchangeContext& context, const XParts& parts,
                                    const ColumnView& columns) {
  if (std::ssize(parts.starts) - 1 != context.communicator.size())
    throw Error(ErrorKind::internal,
                fmt::format("{} parts of x for {} ranks", std::ssize(parts.starts) - 1, context.communicator.size()));
  const ExchangeEntry* entry = named_entry(name, context);
  if (entry == nullptr) return choose(context, parts, columns);
  auto map = make_column_map(entry->layout, context.communicator, parts, columns);
  auto exchange = entry->make(context, map);
  exchange->give_reason(reason(name, context));
  return {std::move(map), std::move(exchange)};
}

void require_exchange_over(std::string_view name, const ColumnMap& map) {
  const ExchangeEntry* const entry = find_exchange(name);
  if (entry == nullptr || entry->layout == map.layout()) return;
  throw Error(ErrorKind::usage,
              fmt::format("exchange '{}' needs another order of x than the matrix has: x is {} there; load the matrix with "
                          "this exchange, or leave the choice to the product",
                          entry->name, map.layout() == ColumnLayout::compact ? "compact" : "gathered"));
}

std::unique_ptr<Exchange> make_exchange(std::string_view name, const ExchangeContext& context,
                                        std::shared_ptr<const ColumnMap> map) {
  const ExchangeEntry* entry = named_entry(name, context);
  if (entry == nullptr) {
    Candidates candidates(context);
    candidates.add(map);
    return candidates.fastest("x lies as for the matrix's other products");
  }
  if (context.communicator.size() > 1) context.communicator.run_agreed([&] { require_exchange_over(name, *map); });
  auto exchange = entry->make(context, std::move(map));
  exchange->give_reason(reason(name, context));
  return exchange;
}

std::int64_t entries_held(std::string_view name, Communicator& communicator, const ColumnMap& map) {
  const ExchangeEntry* named = communicator.size() == 1 ? &for_one_rank() : find_exchange(name);
  std::int64_t most = 0;
  for (const ExchangeEntry& entry : exchanges())
    if (named != nullptr ? &entry == named : entry.layout == map.layout() && entry.ranks == ExchangeRanks::several)
      most = std::max(most, entry.entries_held(communicator, map));
  return most;
}

std::int64_t entries_held(std::string_view name, Communicator& communicator, const XParts& parts,
                          const ColumnView& columns) {
  const ExchangeEntry* entry = communicator.size() == 1 ? &for_one_rank() : find_exchange(name);
  const ColumnLayout layout = entry != nullptr ? entry->layout : ColumnLayout::compact;
  if (layout == ColumnLayout::gathered) return gathered_length(parts.starts);
  return entries_held(name, communicator, *make_column_map(layout, communicator, parts, columns));
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

std::span<const ExchangeEntry> exchanges() {
  static const std::array all = {kNoExchange, kAllGatherExchange, kHaloExchange, kPeerExchange, kTwoLevelExchange};
  return all;
}

const ExchangeEntry* find_exchange(std::string_view name) {
  std::vector<std::string> names = {"auto"};
  if (name == "auto") return nullptr;
  for (const ExchangeEntry& entry : exchanges()) {
    if (entry.name == name) return &entry;
    names.emplace_back(entry.name);
  }
  const std::string near = nearest(name, names);
  throw Error(ErrorKind::usage,
              fmt::format("there is no exchange '{}'{}; choose {}", name,
                          near.empty() ? "" : fmt::format("; did you mean '{}'?", near), join_choices(names)));
}

}  // namespace shardmat
