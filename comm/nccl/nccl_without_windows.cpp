// NCCL before 2.28: plain memory, and kernels cannot reach that of other ranks.
#include <fmt/format.h>

#include "comm/nccl/nccl_impl.h"

namespace shardmat {

NcclCommunicator::Memory::Memory(NcclCommunicator& owner, std::size_t bytes)
    : owner_(owner),
      bytes_(bytes),
      why_no_window_(fmt::format("that takes NCCL 2.28 or newer, this build has {}", nccl_version())) {
  Impl& impl = *owner.impl_;
  impl.communicator.run_agreed([&] {
    require_memory(impl.device, static_cast<std::int64_t>(bytes), "memory shared between GPUs");
    plain_ = Buffer(impl.device, bytes);
  });
  data_ = plain_.data();
}
NcclCommunicator::Memory::~Memory() = default;
void NcclCommunicator::free_retired() {}
void NcclCommunicator::Impl::free_shared() {}

int NcclCommunicator::blocks_to_push(std::int64_t, std::size_t, bool) { return 1; }
NcclCommunicator::Meeting::Meeting(NcclCommunicator& owner, int blocks) : blocks_(blocks), arrived_(owner, 0) {}
bool NcclCommunicator::push_lets_next_begin() const { return false; }
void NcclCommunicator::push(const Push&, Stream&) { throw Error(ErrorKind::internal, why_no_peer_access()); }
NcclCommunicator::Board::Board(NcclCommunicator& owner, int values) : values_(values), slots_(owner, 0) {}
void NcclCommunicator::sum(const Board&, double*, Stream&) { throw Error(ErrorKind::internal, why_no_peer_access()); }

}  // namespace shardmat
