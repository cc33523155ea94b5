// The CUDA side of device.h, and the only functions that differ between a build with CUDA (device_cuda.cpp) and without
// (device_stub.cpp). What names no ordinal works on the calling thread's current device, which device.cpp sets to that of
// the object. Internal to kernels/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "kernels/base/device.h"

namespace shardmat::cuda {

bool available();
int device_count(std::string* why_none);
/// device_count() or set_device() was called. Only in builds with CUDA.
bool has_started();
DeviceProperties properties(int ordinal);
std::int64_t available_memory();
/// Makes `ordinal` current. Returns the previous device, or -1 if there is none to go back to: `ordinal` was current
/// already, or this process does not use the previous device. (Going back would make a context there, which takes memory.)
int set_device(int ordinal);
/// Forgets an error that nobody will report, so that the next launch is not blamed for it.
void forget_error() noexcept;

CUstream_st* create_stream(bool high_priority);
void destroy_stream(CUstream_st* stream) noexcept;
bool stream_finished(CUstream_st* stream);
void synchronize_stream(CUstream_st* stream);
/// A graph is recorded on it.
bool stream_records(CUstream_st* stream);

CUevent_st* create_event();
void destroy_event(CUevent_st* event) noexcept;
void stream_waits(CUstream_st* stream, CUevent_st* event);
void record_event(CUevent_st* event, CUstream_st* stream);
void synchronize_event(CUevent_st* event);
double seconds_between(CUevent_st* earlier, CUevent_st* later);

/// nullptr if there is not enough memory.
void* allocate(std::size_t bytes);
void release(void* memory) noexcept;
/// nullptr if there is not enough memory.
void* allocate_page_locked(std::size_t bytes);
void release_page_locked(void* memory) noexcept;
/// Page-locks memory that was allocated otherwise. Returns why it cannot be, or nothing.
std::string lock_pages(void* memory, std::size_t bytes);
void unlock_pages(void* memory) noexcept;
void copy(void* to, const void* from, std::size_t bytes, CUstream_st* stream);
void fill(void* memory, unsigned char byte, std::size_t bytes, CUstream_st* stream);
/// Returns when it is done, whatever other streams do.
void fill_now(void* memory, unsigned char byte, std::size_t bytes);

CUgraphExec_st* record_graph(CUstream_st* stream, const std::function<void()>& work);
void launch_graph(CUgraphExec_st* graph, CUstream_st* stream);
void destroy_graph(CUgraphExec_st* graph) noexcept;

}  // namespace shardmat::cuda
