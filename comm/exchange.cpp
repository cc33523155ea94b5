#include "comm/exchange.h"

#include <fmt/format.h>

#include <array>

#include "comm/exchange_list.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

/// In the gathered layout, by `make`.
template <auto make>
std::unique_ptr<Exchange> make_gathered(const ExchangeContext& context, const XParts& parts, std::span<std::int64_t> columns,
                                        const std::string& why) {
  GatheredLayout layout = context.communicator.together([&] {
    GatheredLayout made = make_gathered_layout(parts.starts);
    require_memory(context.device, static_cast<std::int64_t>(gathered_bytes(made, context.type)), "the gathered x");
    return made;
  });
  renumber_gathered(context.communicator, layout, parts, columns);
  return make(context, std::move(layout), why);
}

std::unique_ptr<Exchange> make_all_gather(const ExchangeContext& context, GatheredLayout layout, const std::string& why) {
  if (context.communicator.size() == 1)
    return make_no_exchange(context, std::move(layout), why + "; one rank has nothing to gather");
  return context.device.backend == Backend::host ? make_host_all_gather(context, std::move(layout), why)
                                                 : make_nccl_all_gather(context, std::move(layout), why);
}

std::unique_ptr<Exchange> make_halo(const ExchangeContext& context, const XParts& parts, std::span<std::int64_t> columns,
                                    const std::string& why) {
  if (context.communicator.size() == 1)
    return make_gathered<make_no_exchange>(context, parts, columns, why + "; one rank has no neighbours");
  return make_halo_exchange(context, parts, columns, why);
}

constexpr std::array kExchanges = {
    ExchangeEntry{"none", "one rank owns all of x (one rank only)", make_gathered<make_no_exchange>},
    ExchangeEntry{"allgather", "every rank gets all of x (MPI on the host, NCCL on GPUs)", make_gathered<make_all_gather>},
    ExchangeEntry{"halo", "every rank gets what its rows need (MPI on the host, NCCL on GPUs)", make_halo},
};

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
                                        std::span<std::int64_t> columns) {
  if (static_cast<int>(parts.starts.size()) - 1 != context.communicator.size())
    throw Error(ErrorKind::internal,
                fmt::format("{} parts of x for {} ranks", parts.starts.size() - 1, context.communicator.size()));
  std::string why = "asked for";
  const ExchangeEntry* entry = find_exchange(name);
  if (entry == nullptr) {
    const bool alone = context.communicator.size() == 1;
    entry = find_exchange(alone ? "none" : "allgather");
    why = alone ? "one rank" : "the only exchange for several ranks";
  }
  return entry->make(context, parts, columns, why);
}

}  // namespace shardmat
