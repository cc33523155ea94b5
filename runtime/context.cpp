#include "runtime/context.h"

namespace shardmat {

Context::Context(Communicator& communicator, BackendChoice backend, int threads)
    : communicator_(communicator),
      placement_(communicator.together([&] { return place_ranks(communicator, backend, threads); })),
      nccl_(placement_.device.backend == Backend::cuda && communicator.size() > 1
                ? std::make_unique<NcclCommunicator>(communicator, placement_.device)
                : nullptr),
      stream_(placement_.device),
      exchange_stream_(placement_.device, Stream::Priority::high) {}

Context::Context(Communicator& self, const Context& among)
    : communicator_(self),
      placement_{among.device(),
                 {among.placement().ranks[static_cast<std::size_t>(among.communicator().rank())]},
                 among.placement().why,
                 among.threads(),
                 among.placement().isa},
      stream_(placement_.device),
      exchange_stream_(placement_.device, Stream::Priority::high) {}

}  // namespace shardmat
