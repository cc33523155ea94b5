// A build without NCCL: one GPU, or the host backend.
#include "comm/nccl/nccl_communicator.h"
#include "comm/placement.h"

namespace shardmat {

struct NcclCommunicator::Impl {};

namespace {

[[noreturn]] void absent() {
  throw Error(ErrorKind::resources,
              "this build has no NCCL, so several GPUs cannot work together. Rebuild where NCCL is installed "
              "(libnccl-dev, or -DNCCL_ROOT=DIR), run one rank, or run on the host backend",
              "backend");
}

}  // namespace

bool built_with_nccl() { return false; }
std::string nccl_version() { return {}; }
std::string nccl_version_of_build() { return {}; }

NcclCommunicator::NcclCommunicator(Communicator&, Device) { absent(); }
NcclCommunicator::~NcclCommunicator() = default;
void NcclCommunicator::all_gather_in_place(void*, std::size_t, ValueType, Stream&) { absent(); }
void NcclCommunicator::all_reduce_sum(double*, std::size_t, Stream&) { absent(); }
void NcclCommunicator::transfer(int, std::span<const Communicator::Transfer::Outgoing>,
                                std::span<const Communicator::Transfer::Incoming>, Stream&) {
  absent();
}
int NcclCommunicator::next_transfer() { absent(); }
std::string NcclCommunicator::why_no_peer_access() const { absent(); }
int NcclCommunicator::blocks_to_push(std::int64_t, std::size_t, bool) { absent(); }
void NcclCommunicator::push(const Push&, Stream&) { absent(); }
bool NcclCommunicator::push_lets_next_begin() const { absent(); }
NcclCommunicator::Meeting::Meeting(NcclCommunicator& owner, int blocks) : blocks_(blocks), arrived_(owner, 0) {}
NcclCommunicator::Board::Board(NcclCommunicator& owner, int values) : values_(values), slots_(owner, 0) {}
void NcclCommunicator::sum(const Board&, double*, Stream&) { absent(); }
void NcclCommunicator::wait(Stream&, const char*) { absent(); }

NcclCommunicator::Memory::Memory(NcclCommunicator& owner, std::size_t bytes) : owner_(owner), bytes_(bytes) { absent(); }
NcclCommunicator::Memory::~Memory() = default;
void NcclCommunicator::free_retired() { absent(); }

}  // namespace shardmat
