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
void* create_stream(bool) { absent(); }
void destroy_stream(void*) noexcept {}
bool stream_finished(void*) { absent(); }
void synchronize_stream(void*) { absent(); }
bool stream_records(void*) { absent(); }
void* create_event() { absent(); }
void destroy_event(void*) noexcept {}
void stream_waits(void*, void*) { absent(); }
void record_event(void*, void*) { absent(); }
void synchronize_event(void*) { absent(); }
double seconds_between(void*, void*) { absent(); }
void* allocate(std::size_t) { absent(); }
void release(void*) noexcept {}
void* allocate_page_locked(std::size_t) { absent(); }
void release_page_locked(void*) noexcept {}
std::string lock_pages(void*, std::size_t) { absent(); }
void unlock_pages(void*) noexcept {}
void copy(void*, const void*, std::size_t, void*) { absent(); }
void fill(void*, unsigned char, std::size_t, void*) { absent(); }
void fill_now(void*, unsigned char, std::size_t) { absent(); }
void* record_graph(void*, const std::function<void()>&) { absent(); }
void launch_graph(void*, void*) { absent(); }
void destroy_graph(void*) noexcept {}

}  // namespace shardmat::cuda
