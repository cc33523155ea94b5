#include "runtime/context/context.h"

#include <algorithm>

#include "comm/exchange/exchange.h"
#include "comm/nccl/nccl_communicator.h"
#include "kernels/bandwidth.h"
#include "runtime/context/leftovers.h"
#include "runtime/context/row_maps.h"

namespace shardmat {

Context::Context(Communicator& communicator, BackendChoice backend, int threads)
    : communicator_(communicator),
      placement_(communicator.run_agreed([&] { return place_ranks(communicator, backend, threads); })),
      nccl_(placement_.device.backend == Backend::cuda && communicator.size() > 1
                ? std::make_unique<NcclCommunicator>(communicator, placement_.device)
                : nullptr),
      stream_(placement_.device),
      exchange_stream_(placement_.device, Stream::Priority::high),
      row_maps_(std::make_unique<RowMaps>()),
      leftovers_(std::make_unique<Leftovers>()) {}

Context::~Context() = default;

Context::Context(Communicator& some, const Context& among)
    : communicator_(some),
      placement_(among.placement()),
      stream_(placement_.device),
      exchange_stream_(placement_.device, Stream::Priority::high),
      row_maps_(std::make_unique<RowMaps>()),
      leftovers_(std::make_unique<Leftovers>()) {
  if (some.size() == among.communicator().size()) return;
  placement_.ranks = {among.placement().ranks[static_cast<std::size_t>(among.communicator().rank())]};
}

ExchangeContext Context::exchange_context(ValueType type, std::int64_t right_hand_sides) const {
  return {communicator_, nccl_.get(), device(), type, right_hand_sides};
}

void Context::wait(Stream& stream, const char* what) const {
  if (nccl_ != nullptr) nccl_->wait(stream, what);
  else stream.synchronize();
}

std::int64_t Context::bytes_to_copy() const {
  // The arrays of all ranks of a host are together larger than its caches, and so are those of a rank than its core's share.
  constexpr std::int64_t kOfHost = std::int64_t{64} << 20, kLeastOfRank = std::int64_t{16} << 20;
  if (device().backend == Backend::cuda) return 0;
  return 2 * std::max(kLeastOfRank, kOfHost / communicator_.local_size());
}

double Context::copy_bandwidth() {
  if (!copy_bandwidth_)
    copy_bandwidth_ = device().backend == Backend::host
                          ? measure_copy_bandwidth(stream_, static_cast<std::size_t>(bytes_to_copy() / 2))
                          : measure_copy_bandwidth(stream_);
  return *copy_bandwidth_;
}

}  // namespace shardmat
