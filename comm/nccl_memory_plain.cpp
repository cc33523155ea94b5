// NcclCommunicator::Memory for NCCL before 2.27, which has no symmetric windows.
#include "comm/nccl_impl.h"

namespace shardmat {

NcclCommunicator::Memory::Memory(NcclCommunicator& owner, std::size_t bytes)
    : owner_(owner),
      bytes_(bytes),
      description_("plain device memory (NCCL " + nccl_version() + " has no symmetric windows)") {
  Impl& impl = *owner.impl_;
  impl.communicator.together([&] {
    require_memory(impl.device, static_cast<std::int64_t>(bytes), "memory shared between GPUs");
    plain_ = Buffer(impl.device, bytes);
  });
  data_ = plain_.data();
}

NcclCommunicator::Memory::~Memory() = default;

}  // namespace shardmat
