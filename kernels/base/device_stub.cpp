// A build without CUDA: no devices, and anything that would need one says so.
#include "kernels/base/device_cuda.h"
#include "kernels/base/error.h"

namespace shardmat::cuda {
namespace {

[[noreturn]] void absent() {
  throw Error(ErrorKind::resources,
              "this build has no CUDA support; rebuild where nvcc is installed, or use the host backend");
}

}  // namespace

bool available() { return false; }
int device_count(std::string* why_none) {
  if (why_none != nullptr) *why_none = "this build has no CUDA support";
  return 0;
}
DeviceProperties properties(int) { absent(); }
std::int64_t available_memory() { absent(); }
int set_device(int) { absent(); }
void forget_error() noexcept {}
CUstream_st* create_stream(bool) { absent(); }
void destroy_stream(CUstream_st*) noexcept {}
bool stream_finished(CUstream_st*) { absent(); }
void synchronize_stream(CUstream_st*) { absent(); }
bool stream_records(CUstream_st*) { absent(); }
CUevent_st* create_event() { absent(); }
void destroy_event(CUevent_st*) noexcept {}
void stream_waits(CUstream_st*, CUevent_st*) { absent(); }
void record_event(CUevent_st*, CUstream_st*) { absent(); }
void synchronize_event(CUevent_st*) { absent(); }
double seconds_between(CUevent_st*, CUevent_st*) { absent(); }
void* allocate(std::size_t) { absent(); }
void release(void*) noexcept {}
void* allocate_page_locked(std::size_t) { absent(); }
void release_page_locked(void*) noexcept {}
std::string lock_pages(void*, std::size_t) { absent(); }
void unlock_pages(void*) noexcept {}
void copy(void*, const void*, std::size_t, CUstream_st*) { absent(); }
void fill(void*, unsigned char, std::size_t, CUstream_st*) { absent(); }
void fill_now(void*, unsigned char, std::size_t) { absent(); }
CUgraphExec_st* record_graph(CUstream_st*, const std::function<void()>&) { absent(); }
void launch_graph(CUgraphExec_st*, CUstream_st*) { absent(); }
void destroy_graph(CUgraphExec_st*) noexcept {}

}  // namespace shardmat::cuda
