#include "kernels/base/device_sharing.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "kernels/base/cuda_check.h"
#include "kernels/base/error.h"

namespace shardmat {
namespace {

static_assert(sizeof(DeviceMemoryHandle) == sizeof(cudaIpcMemHandle_t));

/// A function of the driver, with whose library the program is not linked.
template <class Function>
Function driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  SHARDMAT_CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, &function, 7000, cudaEnableDefault, &found));
#else
  SHARDMAT_CUDA_CHECK(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess || function == nullptr)
    throw Error(ErrorKind::resources, fmt::format("CUDA's driver has no function {}; install a later driver", name));
  return reinterpret_cast<Function>(function);
}

/// An attribute of an address; 0 if it has none.
template <class T>
T attribute(CUpointer_attribute which, const void* address) {
  using GetAttribute = CUresult (*)(void*, CUpointer_attribute, CUdeviceptr);
  static const auto get = driver_function<GetAttribute>("cuPointerGetAttribute");
  T value{};
  if (get(&value, which, reinterpret_cast<CUdeviceptr>(address)) != CUDA_SUCCESS) return T{};
  return value;
}

}  // namespace

DeviceAddress find_address(const void* address, Device device) {
  const DeviceGuard guard(device);
  cudaPointerAttributes known{};
  const cudaError_t status = cudaPointerGetAttributes(&known, address);
  if (status == cudaErrorInvalidValue) {
    cudaGetLastError();
    return {};
  }
  SHARDMAT_CUDA_CHECK(status);
  DeviceAddress found;
  found.ordinal = known.device;
  if (known.type == cudaMemoryTypeHost) found.kind = DeviceAddress::Kind::host;
  if (known.type == cudaMemoryTypeManaged) found.kind = DeviceAddress::Kind::managed;
  if (known.type != cudaMemoryTypeDevice) return found;
  found.kind = DeviceAddress::Kind::device;
  using GetRange = CUresult (*)(CUdeviceptr*, std::size_t*, CUdeviceptr);
  static const auto get_range = driver_function<GetRange>("cuMemGetAddressRange");
  CUdeviceptr base = 0;
  if (get_range(&base, &found.bytes, reinterpret_cast<CUdeviceptr>(address)) != CUDA_SUCCESS) return found;
  found.base = reinterpret_cast<std::byte*>(base);
  found.allocation = allocation_at(address, device);
  found.can_be_shared =
      found.allocation != 0 && attribute<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address) != 0;
  return found;
}

std::uint64_t allocation_at(const void* address, Device device) {
  const DeviceGuard guard(device);
  return attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
}

DeviceMemoryHandle share_memory(void* base, Device device) {
  const DeviceGuard guard(device);
  cudaIpcMemHandle_t native{};
  const cudaError_t status = cudaIpcGetMemHandle(&native, base);
  if (status != cudaSuccess) {
    cudaGetLastError();
    throw Error(ErrorKind::resources,
                fmt::format("memory of GPU {} cannot be shared with another process ({}); give arrays in host memory",
                            device.ordinal, cudaGetErrorString(status)));
  }
  DeviceMemoryHandle handle;
  std::memcpy(handle.bytes, &native, sizeof native);
  return handle;
}

OpenedMemory::OpenedMemory(const DeviceMemoryHandle& handle, Device device) : device_(device) {
  const DeviceGuard guard(device);
  cudaIpcMemHandle_t native{};
  std::memcpy(&native, handle.bytes, sizeof native);
  void* memory = nullptr;
  const cudaError_t status = cudaIpcOpenMemHandle(&memory, native, cudaIpcMemLazyEnablePeerAccess);
  if (status != cudaSuccess) {
    cudaGetLastError();
    throw Error(
        ErrorKind::resources,
        fmt::format("memory of another process on GPU {} cannot be opened ({}). Give arrays in host memory, or start "
                    "the ranks that share a GPU in one container, and free memory only between calls",
                    device.ordinal, cudaGetErrorString(status)));
  }
  data_ = static_cast<std::byte*>(memory);
}

OpenedMemory::~OpenedMemory() {
  if (data_ == nullptr) return;
  const DeviceGuard guard(device_, std::nothrow);
  const cudaError_t status = cudaIpcCloseMemHandle(data_);
  if (status == cudaSuccess) return;
  cudaGetLastError();
  if (status != cudaErrorCudartUnloading)
    std::fprintf(stderr, "shardmat: closing memory of another process: %s\n", cudaGetErrorString(status));
}

OpenedMemory::OpenedMemory(OpenedMemory&& other) noexcept
    : device_(other.device_), data_(std::exchange(other.data_, nullptr)) {}

void wait_for_default_streams(Device device) {
  const DeviceGuard guard(device);
  SHARDMAT_CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  SHARDMAT_CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
}

}  // namespace shardmat
