// A build without CUDA: there is no memory of a GPU.
#include "kernels/base/device_sharing.h"
#include "kernels/base/error.h"

namespace shardmat {
namespace {

[[noreturn]] void absent() { throw Error(ErrorKind::internal, "this build has no CUDA support, and no memory of a GPU"); }

}  // namespace

DeviceAddress find_address(const void*, Device) { absent(); }
std::uint64_t allocation_at(const void*, Device) { absent(); }
DeviceMemoryHandle share_memory(void*, Device) { absent(); }
OpenedMemory::OpenedMemory(const DeviceMemoryHandle&, Device) { absent(); }
OpenedMemory::OpenedMemory(OpenedMemory&&) noexcept {}
OpenedMemory::~OpenedMemory() {}
void wait_for_default_streams(Device) { absent(); }

}  // namespace shardmat
