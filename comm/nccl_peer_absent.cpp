// With NCCL before 2.28, kernels cannot reach the memory of other ranks.
#include <fmt/format.h>

#include "comm/nccl_impl.h"

namespace shardmat {

bool NcclCommunicator::Impl::reach_each_other() const { return true; }  // as far as this NCCL says
std::string NcclCommunicator::why_no_peer_access() const {
  return fmt::format("it needs NCCL 2.28 or newer, this build has {}; use halo", nccl_version());
}
int NcclCommunicator::blocks_to_push(std::int64_t, std::size_t, bool) { return 1; }
NcclCommunicator::Meeting::Meeting(NcclCommunicator& owner, int blocks) : blocks_(blocks), arrived_(owner, 0) {}
bool NcclCommunicator::push_lets_next_begin() const { return false; }
void NcclCommunicator::push(const Push&, Stream&) { throw Error(ErrorKind::internal, why_no_peer_access()); }
NcclCommunicator::Board::Board(NcclCommunicator& owner, int values) : values_(values), slots_(owner, 0) {}
void NcclCommunicator::sum(const Board&, double*, Stream&) { throw Error(ErrorKind::internal, why_no_peer_access()); }

}  // namespace shardmat
