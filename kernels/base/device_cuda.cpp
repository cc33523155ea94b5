#include "kernels/base/device_cuda.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>

#include "kernels/base/cuda_check.h"
#include "kernels/base/cusparse_library.h"

namespace shardmat::cuda {
namespace {

std::atomic<bool> started{false};

/// Destructors cannot throw; an error there is worth a line, unless the process is shutting CUDA down.
void warn(cudaError_t status, const char* what) noexcept {
  if (status != cudaSuccess && status != cudaErrorCudartUnloading)
    std::fprintf(stderr, "shardmat: %s: %s\n", what, cudaGetErrorString(status));
}

/// Does this process use the device? The program is not linked with the driver's library, so the runtime finds the function.
bool has_context(int ordinal) {
  using GetState = CUresult (*)(CUdevice, unsigned int*, int*);
  static const auto get_state = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    SHARDMAT_CUDA_CHECK(
        cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &function, 7000, cudaEnableDefault, &found));
#else
    SHARDMAT_CUDA_CHECK(cudaGetDriverEntryPoint("cuDevicePrimaryCtxGetState", &function, cudaEnableDefault, &found));
#endif
    return found == cudaDriverEntryPointSuccess ? reinterpret_cast<GetState>(function) : nullptr;
  }();
  unsigned int flags = 0;
  int active = 0;
  return get_state != nullptr && get_state(ordinal, &flags, &active) == CUDA_SUCCESS && active != 0;
}

std::string software_versions() {
  int runtime = 0, driver = 0, parts[3] = {};
  SHARDMAT_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  SHARDMAT_CUDA_CHECK(cudaDriverGetVersion(&driver));
  constexpr libraryPropertyType kParts[3] = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
  for (int part = 0; part < 3; ++part)
    if (cusparse().GetProperty(kParts[part], &parts[part]) != CUSPARSE_STATUS_SUCCESS)
      throw Error(ErrorKind::internal, "cuSPARSE does not tell its version");
  char text[96];
  std::snprintf(text, sizeof text, "CUDA %d.%d, driver for %d.%d, cuSPARSE %d.%d.%d", runtime / 1000, runtime % 1000 / 10,
                driver / 1000, driver % 1000 / 10, parts[0], parts[1], parts[2]);
  return text;
}

}  // namespace

bool available() { return true; }
bool has_started() { return started; }

int device_count(std::string* why_none) {
  started = true;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();
    count = 0;
  }
  if (count == 0 && why_none != nullptr)
    *why_none = status == cudaSuccess ? "the driver shows no device" : cudaGetErrorString(status);
  return count;
}

DeviceProperties properties(int ordinal) {
  cudaDeviceProp p{};
  SHARDMAT_CUDA_CHECK(cudaGetDeviceProperties(&p, ordinal));
  DeviceProperties result;
  result.name = p.name;
  char id[32] = {};
  SHARDMAT_CUDA_CHECK(cudaDeviceGetPCIBusId(id, sizeof id, ordinal));
  result.id = id;
  for (const char byte : p.uuid.bytes) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    result.uuid += hex;
  }
  result.memory_bytes = static_cast<std::int64_t>(p.totalGlobalMem);
  result.multiprocessors = p.multiProcessorCount;
  result.l2_bytes = p.l2CacheSize;
  result.software = software_versions();
  return result;
}

std::int64_t available_memory() {
  std::size_t free = 0, total = 0;
  SHARDMAT_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<std::int64_t>(free);
}

int set_device(int ordinal) {
  started = true;
  int current = -1;
  SHARDMAT_CUDA_CHECK(cudaGetDevice(&current));
  if (current == ordinal) return -1;
  const bool return_there = has_context(current);
  SHARDMAT_CUDA_CHECK(cudaSetDevice(ordinal));
  return return_there ? current : -1;
}

void forget_error() noexcept { static_cast<void>(cudaGetLastError()); }

CUstream_st* create_stream(bool high_priority) {
  int lowest = 0, highest = 0;
  SHARDMAT_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  cudaStream_t stream = nullptr;
  SHARDMAT_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high_priority ? highest : lowest));
  return stream;
}
void destroy_stream(CUstream_st* stream) noexcept {
  if (stream != nullptr) warn(cudaStreamDestroy(stream), "destroying a stream");
}
bool stream_finished(CUstream_st* stream) {
  const cudaError_t status = cudaStreamQuery(stream);
  if (status == cudaErrorNotReady) return false;
  SHARDMAT_CUDA_CHECK(status);
  return true;
}
void synchronize_stream(CUstream_st* stream) { SHARDMAT_CUDA_CHECK(cudaStreamSynchronize(stream)); }
bool stream_records(CUstream_st* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  SHARDMAT_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

CUevent_st* create_event() {
  cudaEvent_t event = nullptr;
  SHARDMAT_CUDA_CHECK(cudaEventCreate(&event));
  return event;
}
void destroy_event(CUevent_st* event) noexcept {
  if (event != nullptr) warn(cudaEventDestroy(event), "destroying an event");
}
void stream_waits(CUstream_st* stream, CUevent_st* event) { SHARDMAT_CUDA_CHECK(cudaStreamWaitEvent(stream, event)); }
void record_event(CUevent_st* event, CUstream_st* stream) { SHARDMAT_CUDA_CHECK(cudaEventRecord(event, stream)); }
void synchronize_event(CUevent_st* event) { SHARDMAT_CUDA_CHECK(cudaEventSynchronize(event)); }
double seconds_between(CUevent_st* earlier, CUevent_st* later) {
  float milliseconds = 0;
  SHARDMAT_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, earlier, later));
  return 1e-3 * static_cast<double>(milliseconds);
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  SHARDMAT_CUDA_CHECK(status);
  return memory;
}
void release(void* memory) noexcept { warn(cudaFree(memory), "freeing device memory"); }
void* allocate_page_locked(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  SHARDMAT_CUDA_CHECK(status);
  return memory;
}
void release_page_locked(void* memory) noexcept { warn(cudaFreeHost(memory), "freeing page-locked memory"); }
std::string lock_pages(void* memory, std::size_t bytes) {
  const cudaError_t status = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
  if (status == cudaSuccess) return {};
  cudaGetLastError();
  return cudaGetErrorString(status);
}
void unlock_pages(void* memory) noexcept { warn(cudaHostUnregister(memory), "unlocking pages"); }
void copy(void* to, const void* from, std::size_t bytes, CUstream_st* stream) {
  SHARDMAT_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}
void fill(void* memory, unsigned char byte, std::size_t bytes, CUstream_st* stream) {
  SHARDMAT_CUDA_CHECK(cudaMemsetAsync(memory, byte, bytes, stream));
}
void fill_now(void* memory, unsigned char byte, std::size_t bytes) {
  SHARDMAT_CUDA_CHECK(cudaMemsetAsync(memory, byte, bytes, cudaStreamPerThread));
  SHARDMAT_CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
}

CUgraphExec_st* record_graph(CUstream_st* stream, const std::function<void()>& work) {
  SHARDMAT_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  SHARDMAT_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority);
  cudaGraphDestroy(graph);
  SHARDMAT_CUDA_CHECK(status);
  return executable;
}
void launch_graph(CUgraphExec_st* graph, CUstream_st* stream) { SHARDMAT_CUDA_CHECK(cudaGraphLaunch(graph, stream)); }
void destroy_graph(CUgraphExec_st* graph) noexcept {
  if (graph != nullptr) warn(cudaGraphExecDestroy(graph), "destroying a graph");
}

}  // namespace shardmat::cuda
