// What every distributed operation runs in: the ranks, the device of this one, its stream.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/exchange/exchange.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/placement.h"
#include "kernels/base/device.h"

namespace shardmat {

class Context {
 public:
  /// Collective: places the ranks on devices and, with several GPUs, starts NCCL (see NcclCommunicator for what
  /// that sets in the environment). `threads`: host threads of each rank, 0 for its share of the cores. Throws the same
  /// error on all ranks.
  Context(Communicator& communicator, BackendChoice backend, int threads = 0);

  /// This rank alone, on the device that it has among others; `self` is of one rank.
  Context(Communicator& self, const Context& among);

  Communicator& communicator() const { return communicator_; }
  const Placement& placement() const { return placement_; }
  Device device() const { return placement_.device; }
  NcclCommunicator* nccl() const { return nccl_.get(); }
  Stream& stream() { return stream_; }
  /// For moving x beside products: its blocks go first.
  Stream& exchange_stream() { return exchange_stream_; }
  ExchangeContext exchange_context(ValueType type, std::int64_t right_hand_sides) const {
    return {communicator_, nccl_.get(), device(), type, right_hand_sides};
  }

 private:
  Communicator& communicator_;
  Placement placement_;
  DeviceGuard guard_;
  std::unique_ptr<NcclCommunicator> nccl_;
  Stream stream_, exchange_stream_;
};

}  // namespace shardmat
