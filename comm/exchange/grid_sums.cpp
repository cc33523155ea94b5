#include "comm/exchange/grid_sums.h"

namespace shardmat {

int GridSums::blocks_for_all(const ExchangeContext& context, int blocks) {
  Communicator& ranks = context.communicator;
  const bool reached = ranks.size() == 1 || (context.nccl != nullptr && context.nccl->why_no_peer_access().empty() &&
                                             ranks.size() <= NcclCommunicator::Board::kMostRanks);
  return static_cast<int>(ranks.all_reduce(std::int64_t{reached ? blocks : 0}, Reduction::min));
}

GridSums::GridSums(const ExchangeContext& context, int blocks, int values) : blocks_(blocks_for_all(context, blocks)) {
  if (blocks_ == 0) return;
  if (context.communicator.size() > 1) {
    of_ranks_ = std::make_unique<NcclCommunicator::Board>(*context.nccl, blocks_ * values);
    if (of_ranks_->symmetric()) board_ = of_ranks_->view();
    else blocks_ = 0;
    return;
  }
  const auto bytes = static_cast<std::size_t>(4 * blocks_ * values) * sizeof(std::uint64_t);
  require_memory(context.device, static_cast<std::int64_t>(bytes), "sums of thread blocks");
  slots_ = Buffer(context.device, bytes);
  rounds_ = Buffer(context.device, sizeof(unsigned));
  pointers_ = Buffer(context.device, sizeof(std::uint64_t*));
  std::uint64_t* const slots = slots_.as<std::uint64_t>();
  Stream stream(context.device);
  fill_bytes(slots_.data(), 0, bytes, stream);
  fill_bytes(rounds_.data(), 0, rounds_.bytes(), stream);
  copy_to_device(pointers_.data(), &slots, sizeof slots, stream);
  stream.synchronize();
  board_ = {.values = blocks_ * values, .slots = pointers_.as<std::uint64_t*>(), .rounds = rounds_.as<unsigned>()};
}

}  // namespace shardmat
