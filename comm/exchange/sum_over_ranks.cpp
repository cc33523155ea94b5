#include "comm/exchange/sum_over_ranks.h"

namespace shardmat {

namespace {

/// Of the kernel that sums, which keeps the values of all ranks there.
constexpr std::int64_t kMostSharedBytes = 48 << 10;

}  // namespace

SumOverRanks::SumOverRanks(const ExchangeContext& context, int values)
    : communicator_(context.communicator), nccl_(context.nccl), values_(values) {
  if (nccl_ == nullptr || communicator_.size() > NcclCommunicator::Board::kMostRanks ||
      !nccl_->why_no_peer_access().empty() || std::int64_t{8} * communicator_.size() * values > kMostSharedBytes)
    return;
  auto board = std::make_unique<NcclCommunicator::Board>(*nccl_, values);
  if (board->symmetric()) board_ = std::move(board);
}

std::string_view SumOverRanks::name() const {
  return communicator_.size() == 1 ? "none" : board_ != nullptr ? "kernel" : nccl_ != nullptr ? "NCCL" : "MPI";
}

void SumOverRanks::operator()(double* values, Stream& stream) {
  if (communicator_.size() == 1) return;
  if (board_ != nullptr) nccl_->sum(*board_, values, stream);
  else if (nccl_ != nullptr) nccl_->all_reduce_sum(values, static_cast<std::size_t>(values_), stream);
  else communicator_.all_reduce(std::span<double>(values, static_cast<std::size_t>(values_)), Reduction::sum);
}

}  // namespace shardmat
