#include "comm/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "comm/exchange_list.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

std::unique_ptr<Exchange> make_all_gather(const ExchangeContext& context, GatheredLayout layout, const std::string& why) {
  if (context.communicator.size() == 1)
    return make_no_exchange(context, std::move(layout), why + "; one rank has nothing to gather");
  return context.device.backend == Backend::host ? make_host_all_gather(context, std::move(layout), why)
                                                 : make_nccl_all_gather(context, std::move(layout), why);
}

constexpr std::array kExchanges = {
    ExchangeEntry{"none", "one rank owns all of x (one rank only)", make_no_exchange},
    ExchangeEntry{"allgather", "every rank gets all of x (MPI on the host, NCCL on GPUs)", make_all_gather},
};

}  // namespace

std::int64_t GatheredLayout::part_size(int part) const {
  return starts.at(static_cast<std::size_t>(part) + 1) - starts.at(static_cast<std::size_t>(part));
}

std::int64_t GatheredLayout::position(std::int64_t column) const {
  if (starts.empty() || column < 0 || column >= starts.back())
    throw Error(ErrorKind::internal, fmt::format("column {} is in no part of x", column));
  // The last part that starts at or before the column; empty parts before it share its start.
  const auto part = std::upper_bound(starts.begin(), starts.end(), column) - starts.begin() - 1;
  return part * stride + (column - starts[static_cast<std::size_t>(part)]);
}

GatheredLayout make_gathered_layout(std::vector<std::int64_t> starts) {
  if (starts.size() < 2 || starts.front() != 0 || !std::is_sorted(starts.begin(), starts.end()))
    throw Error(ErrorKind::internal, "the starts of the parts of x must begin with 0 and not decrease");
  constexpr std::int64_t kAlign = 32, kLimit = std::int64_t{1} << 31;
  GatheredLayout layout;
  layout.starts = std::move(starts);
  std::int64_t largest = 0;
  for (int p = 0; p < layout.parts(); ++p) largest = std::max(largest, layout.part_size(p));
  if (largest > (kLimit - kAlign) / layout.parts())
    throw Error(ErrorKind::resources,
                fmt::format("an all-gather of x is impossible: {} parts of up to {} entries (the largest part sets the room "
                            "of each) reach the limit of 2^31 entries on a rank; use fewer ranks, or parts with more "
                            "even numbers of rows",
                            layout.parts(), human_count(largest)));
  layout.stride = (largest + kAlign - 1) / kAlign * kAlign;
  return layout;
}

std::size_t slot_bytes(const GatheredLayout& layout, ValueType type) {
  return static_cast<std::size_t>(layout.stride) * size_of(type);
}
std::size_t gathered_bytes(const GatheredLayout& layout, ValueType type) {
  return slot_bytes(layout, type) * static_cast<std::size_t>(layout.parts());
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

std::unique_ptr<Exchange> make_exchange(std::string_view name, const ExchangeContext& context, GatheredLayout layout) {
  if (layout.parts() != context.communicator.size())
    throw Error(ErrorKind::internal, fmt::format("{} parts of x for {} ranks", layout.parts(), context.communicator.size()));
  std::string why = "asked for";
  const ExchangeEntry* entry = find_exchange(name);
  if (entry == nullptr) {
    const bool alone = context.communicator.size() == 1;
    entry = find_exchange(alone ? "none" : "allgather");
    why = alone ? "one rank" : "the only exchange for several ranks";
  }
  return entry->make(context, std::move(layout), why);
}

}  // namespace shardmat
