// Where work runs and what it runs on: devices, ordered streams, events, buffers, replayable graphs. The same types serve
// both backends, so that code above kernels/ has one path: on the host a stream executes at once and a buffer is aligned
// memory. device_cuda.cpp holds the only cudaMalloc (comm's window memory aside); device_stub.cpp stands in for it in a
// build without CUDA.
// Ownership: one owner each; streams, events, buffers and graphs are move-only. Nothing is collective.
// Threads: any thread may use an object, one at a time; two threads may use two objects at once. Each call sets the object's
// device for the calling thread and restores the thread's own, so that no thread has to set a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>

#include "kernels/base/types.h"

/// Of the CUDA driver: cudaStream_t, cudaEvent_t and cudaGraphExec_t point to these.
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace shardmat {

/// Names a place to run: the host, or CUDA device `ordinal` as this process numbers them. A value, owns nothing.
struct Device {
  Backend backend = Backend::host;
  int ordinal = 0;
  bool operator==(const Device&) const = default;
};

/// CUDA devices this process can use; 0 without CUDA, without a driver, or without a device.
int cuda_device_count();
/// Why cuda_device_count() is 0, for error messages and reports; empty if it is not.
std::string why_no_cuda_device();

struct DeviceProperties {
  std::string name;  ///< "NVIDIA H200", or the CPU's model and the instruction set: "AMD EPYC, avx2"
  std::string id;    ///< PCI bus id "0000:3b:00.0"; empty on the host
  std::string uuid;  ///< unique across hosts; empty on the host
  std::int64_t memory_bytes = 0;
  int multiprocessors = 0;    ///< SMs, or threads of this rank on the host
  std::int64_t l2_bytes = 0;  ///< of the cache that all SMs share; 0 on the host
  std::string software;       ///< "CUDA 13.0, driver for 13.0, cuSPARSE 12.6.3"; empty on the host
};
DeviceProperties properties(Device device);
/// Bytes that this process can allocate on the device now.
std::int64_t available_memory(Device device);
/// Throws Error(resources) with the bytes needed and available if `bytes` do not fit; `what` needs them.
void require_memory(Device device, std::int64_t bytes, const std::string& what);

class Event;

/// An ordered queue of work. Never the default stream. Move-only.
class Stream {
 public:
  enum class Priority { normal, high };  ///< thread blocks of a high-priority stream start first

  explicit Stream(Device device, Priority priority = Priority::normal);
  /// Wraps a stream of the caller (a cudaStream_t), which is not destroyed.
  static Stream borrowed(Device device, CUstream_st* native) { return Stream(device, native); }
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  Device device() const { return device_; }
  /// A cudaStream_t; null on the host.
  CUstream_st* native() const { return native_; }
  /// True when all work given so far is done. Throws Error(internal) if it failed.
  bool finished() const;
  /// Blocks until all work given so far is done. Code between ranks polls finished() with a deadline instead.
  void synchronize() const;
  /// Later work on this stream waits for the event. May be recorded into a Graph, where it joins the two streams.
  void wait_for(const Event& event);

  /// True if the last kernel allows programmatic dependent launch: it lets the next kernel begin before it ends, once all
  /// earlier work is done. Cleared by our next launch or copy, not by library calls.
  bool next_may_begin() const { return next_may_begin_; }
  void let_next_begin(bool may) const { next_may_begin_ = may; }

 private:
  Stream(Device device, CUstream_st* native) : device_(device), native_(native), owned_(false) {}

  Device device_;
  CUstream_st* native_ = nullptr;
  bool owned_ = true;
  mutable bool next_may_begin_ = false;
};

/// A point in a stream, for timing and for other streams to wait for.
class Event {
 public:
  explicit Event(Device device);
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  void record(const Stream& stream);
  /// Blocks until the work before the event is done.
  void synchronize() const;
  /// Seconds from `earlier` to this event. REQUIRES: both are recorded and done.
  double seconds_since(const Event& earlier) const;
  /// A cudaEvent_t; null on the host.
  CUevent_st* native() const { return native_; }

 private:
  Device device_;
  CUevent_st* native_ = nullptr;
  double host_seconds_ = 0;
};

/// Owns bytes on a device, 256-byte aligned, uninitialised. Or shares bytes of the host with other buffers; nobody may
/// change shared bytes. Move-only; zero bytes need no allocation.
class Buffer {
 public:
  Buffer() = default;
  /// Throws Error(resources) with the bytes needed and available.
  Buffer(Device device, std::size_t bytes);
  /// Shares `bytes` of host memory at `data`, of any alignment, which `owner` keeps alive.
  static Buffer shared(std::shared_ptr<const void> owner, const void* data, std::size_t bytes);
  ~Buffer();
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;

  Device device() const { return device_; }
  std::size_t bytes() const { return bytes_; }
  bool is_shared() const { return owner_ != nullptr; }
  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Device device_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::shared_ptr<const void> owner_;  ///< null: this buffer owns the bytes
};

/// Reusable host memory for copies to and from a device. Page-locked on request for a GPU: copies then overlap other work,
/// but allocation takes long. Move-only.
class HostBuffer {
 public:
  HostBuffer() = default;
  ~HostBuffer();
  HostBuffer(HostBuffer&&) noexcept;
  HostBuffer& operator=(HostBuffer&&) noexcept;

  /// Makes room for `bytes`, 256-byte aligned. If the buffer must grow, its contents are lost. Throws Error(resources).
  void reserve(std::size_t bytes, Device device, bool page_locked);
  std::size_t bytes() const { return bytes_; }
  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void release() noexcept;

  Device device_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool page_locked_ = false;
};

/// Copies between host memory and the stream's device, in stream order; returns when `host` may be reused.
void copy_to_device(void* device_memory, const void* host, std::size_t bytes, Stream& stream);
void copy_to_host(void* host, const void* device_memory, std::size_t bytes, Stream& stream);
/// The same without waiting: `host` must stay valid until the stream has passed the copy. Copies of page-locked memory
/// overlap other work; with other memory the call may block.
void copy_to_device_async(void* device_memory, const void* host, std::size_t bytes, Stream& stream);
void copy_to_host_async(void* host, const void* device_memory, std::size_t bytes, Stream& stream);
/// Copies within the stream's device, in stream order.
void copy_on_device(void* to, const void* from, std::size_t bytes, Stream& stream);
/// Sets every byte, in stream order.
void fill_bytes(void* device_memory, unsigned char byte, std::size_t bytes, Stream& stream);

/// Work recorded once and launched many times: a CUDA graph, or on the host the function itself.
class Graph {
 public:
  /// Records what `work` puts on `stream` (nothing runs). `work` must not synchronise or allocate.
  Graph(Stream& stream, std::function<void()> work);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(Stream& stream);

 private:
  Device device_;
  std::function<void()> host_work_;
  CUgraphExec_st* executable_ = nullptr;
};

/// Makes the device current for this thread while in scope, then restores the previous one if the process uses that. Does
/// nothing for the host.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  /// For destructors: does nothing if the device cannot be set.
  DeviceGuard(Device device, const std::nothrow_t&) noexcept;
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = -1;
};

}  // namespace shardmat
