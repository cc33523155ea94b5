#include "runtime/feeders/group_context.h"

#include <fmt/format.h>

#include <utility>

#include "kernels/base/error.h"
#include "runtime/feeders/answer.h"

namespace shardmat {

GroupContext::GroupContext(Communicator& ranks, const GroupContextOptions& options) : ranks_(ranks) {
  const std::vector<int> owners = owners_of_ranks(ranks, options.backend, options.groups);
  bool feeders = false;
  for (std::size_t rank = 0; rank < owners.size(); ++rank) feeders = feeders || owners[rank] != static_cast<int>(rank);
  if (!feeders) {
    context_.emplace(ranks, options.backend, options.threads);
    backend_ = context_->device().backend;
    device_name_ = context_->placement().ranks[static_cast<std::size_t>(ranks.rank())].device;
    return;
  }
  group_.emplace(ranks, owners);
  const std::string answer = group_->call(
      "the context", [] { return std::vector<Operand>(); },
      [&](std::span<const GroupOperand>) {
        context_.emplace(group_->owners(), options.backend, options.threads);
        const auto& places = context_->placement().ranks;
        Answer made;
        made.put(context_->device().backend);
        made.put(places[static_cast<std::size_t>(group_->owners().rank())].device);
        return made.text();
      });
  Answer from(answer);
  from.get(backend_), from.get(device_name_);
}

Context& GroupContext::context() {
  if (!context_)
    throw Error(
        ErrorKind::usage,
        fmt::format("rank {} has no device of its own: it hands its rows to rank {}, which works for it. Call this on "
                    "ranks that own a device",
                    ranks_.rank(), group_->owner()));
  return *context_;
}

void GroupContext::require_on_host(Device device, const char* what) const {
  if (!has_feeders() || device.backend == Backend::host) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} lie in memory of a GPU, but several ranks share a GPU here and hand over what lies in host "
                          "memory. Give a copy in host memory, or run one rank for each GPU",
                          what));
}

}  // namespace shardmat
