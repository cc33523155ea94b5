#include "runtime/shared_gpu/group_context.h"

#include <fmt/format.h>

#include <utility>

#include "kernels/base/error.h"
#include "runtime/shared_gpu/answer_bytes.h"

namespace shardmat {
namespace {

/// The number of a GPU in this process; -1 if the process does not see it.
int ordinal_of(const std::string& uuid) {
  for (int i = 0; i < cuda_device_count(); ++i)
    if (properties(Device{Backend::cuda, i}).uuid == uuid) return i;
  return -1;
}

}  // namespace

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
        const bool on_gpu = context_->device().backend == Backend::cuda;
        const DeviceProperties gpu = on_gpu ? properties(context_->device()) : DeviceProperties();
        AnswerBytes made;
        made.put(context_->device().backend);
        made.put(places[static_cast<std::size_t>(group_->owners().rank())].device);
        made.put(gpu.id), made.put(gpu.uuid);
        return made.text();
      });
  AnswerBytes from(answer);
  std::string uuid;
  from.get(backend_), from.get(device_name_), from.get(gpu_), from.get(uuid);
  if (backend_ == Backend::cuda) device_ = {backend_, ordinal_of(uuid)};
}

void GroupContext::give_up(const Error& why) {
  ranks_.give_up(why);
  if (group_ && group_->owns()) group_->owners().give_up(why);
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

Stream& GroupContext::stream_of(Device device) {
  if (device.backend == Backend::host) return host_stream_;
  if (owns()) return context().stream();
  if (device_.ordinal < 0)
    throw Error(ErrorKind::usage, fmt::format("rank {} does not see GPU {}, on which rank {} works for it. Give it the same "
                                              "CUDA_VISIBLE_DEVICES, or give arrays in host memory",
                                              ranks_.rank(), gpu_, group_->owner()));
  if (!device_stream_) device_stream_.emplace(device_);
  return *device_stream_;
}

DeviceAddress GroupContext::require_on_device(std::string_view what, const void* array, std::size_t bytes) const {
  const_cast<GroupContext*>(this)->stream_of(device());  // throws if this process does not see it
  const DeviceAddress found = find_address(array, device());
  if (found.kind == DeviceAddress::Kind::unknown)
    throw Error(ErrorKind::usage,
                fmt::format("{} was given as memory of a GPU, but CUDA knows no memory at this address", what));
  if (found.kind != DeviceAddress::Kind::device) return found;
  if (found.ordinal != device().ordinal)
    throw Error(
        ErrorKind::usage,
        fmt::format("{} lies on GPU {} ({}), but rank {}, which works for rank {}, uses GPU {} ({}). Allocate it there, "
                    "or give a copy in host memory",
                    what, found.ordinal, properties(Device{Backend::cuda, found.ordinal}).id, group_->owner(), ranks_.rank(),
                    device().ordinal, gpu_));
  if (found.can_be_shared && static_cast<const std::byte*>(array) + bytes > found.base + found.bytes)
    throw Error(ErrorKind::usage, fmt::format("{} has {} bytes, but the memory that was allocated on the GPU ends after {}",
                                              what, bytes, found.base + found.bytes - static_cast<const std::byte*>(array)));
  return found;
}

}  // namespace shardmat
