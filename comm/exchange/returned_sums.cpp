#include "comm/exchange/returned_sums.h"

#include <algorithm>
#include <utility>

#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/error.h"
#include "kernels/spmm_plan.h"
#include "kernels/vector.h"

namespace shardmat {
namespace {

constexpr int kTag = 27;

}  // namespace

ReturnedSums::ReturnedSums(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map)
    : communicator_(context.communicator),
      nccl_(context.nccl),
      map_(std::move(map)),
      type_(context.type),
      width_(context.width),
      entry_bytes_(context.entry_bytes()) {
  communicator_.run_agreed([&] {
    if (communicator_.size() > 1 && context.device.backend == Backend::cuda && nccl_ == nullptr)
      throw Error(ErrorKind::internal, "an exchange between GPUs was made without NCCL");
    const bool compact = map_->layout() == ColumnLayout::compact;
    const std::int64_t received = compact ? std::ssize(map_->halo().sent) : map_->own() * (communicator_.size() - 1);
    context.require_room(map_->length() + received, "the sums of a transposed product and their exchange");
    sums_ = Buffer(context.device, bytes_of(map_->length()));
    received_ = Buffer(context.device, bytes_of(received));
    Stream stream(context.device);
    fill_bytes(sums_.data(), 0, sums_.bytes(), stream);
    if (compact) {
      places_ = Buffer(context.device, map_->halo().sent.size() * sizeof(std::int32_t));
      copy_to_device(places_.data(), map_->halo().sent.data(), places_.bytes(), stream);
    }
    compact ? plan_compact() : plan_gathered();
    std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; });
    stream.synchronize();
  });
  if (nccl_ == nullptr || communicator_.size() == 1) return;
  number_ = nccl_->next_transfer();
  Stream stream(context.device);  // NCCL connects the ranks now, where a deadline holds
  start(stream);
  finish(stream);
  wait(stream);
}

/// A halo the other way round: what was received is sent, and the other way.
void ReturnedSums::plan_compact() {
  const Halo& halo = map_->halo();
  for (const Halo::Peer& peer : halo.from)
    sends_.push_back({peer.rank, sums_.as<char>() + bytes_of(halo.first_received() + peer.first), bytes_of(peer.count)});
  for (const Halo::Peer& peer : halo.to) {
    receives_.push_back({peer.rank, received_.as<char>() + bytes_of(peer.first), bytes_of(peer.count)});
    parts_.push_back({peer.rank, peer.first, peer.count});
  }
}

/// Each rank has sums for all entries. The next higher rank comes first, as in a halo.
void ReturnedSums::plan_gathered() {
  const GatheredLayout& layout = map_->gathered();
  const int size = communicator_.size(), me = communicator_.rank();
  for (int step = 1; step < size; ++step) {
    const int to = (me + step) % size, from = (me + size - step) % size;
    if (layout.part_size(to) > 0)
      sends_.push_back({to, sums_.as<char>() + bytes_of(layout.stride * to), bytes_of(layout.part_size(to))});
    if (map_->own() == 0) continue;
    const std::int64_t first = map_->own() * (step - 1);
    receives_.push_back({from, received_.as<char>() + bytes_of(first), bytes_of(map_->own())});
    parts_.push_back({from, first, map_->own()});
  }
}

void ReturnedSums::start(Stream& stream) {
  if (communicator_.size() == 1) return;
  if (nccl_ != nullptr) nccl_->transfer(number_, sends_, receives_, stream);
  else transfer_ = communicator_.start(sends_, receives_, kTag);
}

void ReturnedSums::finish(Stream& stream) {
  if (communicator_.size() == 1) return;
  if (nccl_ == nullptr) communicator_.finish(transfer_);
  for (const Part& part : parts_) {
    const bool compact = map_->layout() == ColumnLayout::compact;
    add_entries(type_, part.count, width_, compact ? places_.as<std::int32_t>() + part.first : nullptr,
                received_.as<char>() + bytes_of(part.first), own(), DenseStrides{width_, 1}, stream);
  }
}

void ReturnedSums::wait(Stream& stream) const {
  nccl_ != nullptr&& communicator_.size() > 1 ? nccl_->wait(stream, "a transposed product") : stream.synchronize();
}

std::int64_t ReturnedSums::device_bytes() const {
  return static_cast<std::int64_t>(sums_.bytes() + received_.bytes() + places_.bytes());
}

}  // namespace shardmat
