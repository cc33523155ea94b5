#include "kernels/base/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "kernels/base/device_cuda.h"
#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/huge_pages.h"
#include "kernels/base/isa.h"
#include "kernels/base/kept_memory.h"
#include "kernels/base/memory_error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "kernels/base/zeros.h"

namespace shardmat {
namespace {

constexpr std::size_t kHostAlignment = 256;

/// Null if there is none.
void* allocate_on_host(std::size_t bytes) {
  if (bytes < kLargeHostArray) return allocate_pages(bytes, kHostAlignment);
  try {
    return allocate_host_array(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void free_on_host(void* memory, std::size_t bytes) noexcept {
  if (bytes < kLargeHostArray) free_pages(memory, bytes);
  else free_host_array(memory, bytes);
}

/// The streams that this process made. (To wait for a device instead would end the recording of graphs by other threads.)
class LiveStreams {
 public:
  static LiveStreams& all() {
    static LiveStreams* const streams = new LiveStreams;  // never destroyed: static objects may hold streams
    return *streams;
  }
  void add(Device device, CUstream_st* native) {
    const std::lock_guard lock(mutex_);
    streams_.emplace(native, device.ordinal);
  }
  void remove(CUstream_st* native) noexcept {
    const std::lock_guard lock(mutex_);
    streams_.erase(native);
  }
  /// Waits for those on the device that do not record a graph: what they record, nothing runs.
  void synchronize(Device device) {
    const std::lock_guard lock(mutex_);
    for (const auto& [native, ordinal] : streams_)
      if (ordinal == device.ordinal && !cuda::stream_records(native)) cuda::synchronize_stream(native);
  }

 private:
  std::mutex mutex_;
  std::map<CUstream_st*, int> streams_;
};

/// Of one GPU. Freeing it to the system would wait for the device, and so does using it again.
class DeviceMemory final : public KeptMemory {
 public:
  explicit DeviceMemory(int ordinal) : ordinal_(ordinal) {}

  static DeviceMemory& of(int ordinal) {
    static std::mutex* const mutex = new std::mutex;  // never destroyed: static objects may hold buffers
    static auto* const devices = new std::map<int, DeviceMemory>;
    const std::lock_guard lock(*mutex);
    return devices->try_emplace(ordinal, ordinal).first->second;
  }

 private:
  std::size_t rounded(std::size_t bytes) const override { return (bytes + 511) / 512 * 512; }
  /// Sizes differ from level to level: without it, blocks were freed that the next pass could use.
  std::size_t slack(std::size_t most_in_use) const override { return most_in_use / 2; }
  void* fresh(std::size_t bytes, Block&) override { return cuda::allocate(bytes); }
  void release(void* memory, Block&) noexcept override {
    const DeviceGuard guard({Backend::cuda, ordinal_}, std::nothrow);
    cuda::release(memory);
  }
  void settle() override { LiveStreams::all().synchronize({Backend::cuda, ordinal_}); }

  int ordinal_;
};

/// Page-locked memory of the host. Its owners wait for their copies.
class PageLockedMemory final : public KeptMemory {
 public:
  static PageLockedMemory& all() {
    static PageLockedMemory* const memory = new PageLockedMemory;
    return *memory;
  }

 private:
  void* fresh(std::size_t bytes, Block&) override { return cuda::allocate_page_locked(bytes); }
  void release(void* memory, Block&) noexcept override { cuda::release_page_locked(memory); }
};

bool on_host(Device device) { return device.backend == Backend::host; }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "CPU";
}

}  // namespace

int cuda_device_count() { return cuda::device_count(nullptr); }
std::string why_no_cuda_device() {
  std::string why;
  cuda::device_count(&why);
  return why;
}

DeviceProperties properties(Device device) {
  if (!on_host(device)) {                             // some of it takes the driver milliseconds
    static std::mutex* const mutex = new std::mutex;  // never destroyed: static objects may ask
    static auto* const known = new std::map<int, DeviceProperties>;
    const std::lock_guard lock(*mutex);
    const auto found = known->find(device.ordinal);
    return found != known->end() ? found->second
                                 : known->emplace(device.ordinal, cuda::properties(device.ordinal)).first->second;
  }
  DeviceProperties result;
  result.name = fmt::format("{}, {}", cpu_model(), shardmat::name(instruction_set()));
  result.memory_bytes = available_host_memory();
  result.multiprocessors = thread_count();
  return result;
}

std::int64_t available_memory(Device device) {
  const DeviceGuard guard(device);
  if (on_host(device)) return share_of_host_memory();
  return cuda::available_memory() + static_cast<std::int64_t>(DeviceMemory::of(device.ordinal).kept_bytes());
}

void require_memory(Device device, std::int64_t bytes, const std::string& what) {
  if (on_host(device)) return require_host_memory(bytes, what.c_str());
  const std::int64_t available = available_memory(device);
  if (bytes > available)
    throw MemoryError(
        fmt::format("{} needs {} on GPU {} but only {} is free; end other programs on this GPU, use more GPUs, or a "
                    "smaller type of values",
                    what, human_bytes(static_cast<double>(bytes)), device.ordinal,
                    human_bytes(static_cast<double>(available))),
        bytes - available, "type");
}

Stream::Stream(Device device, Priority priority) : device_(device) {
  if (on_host(device)) return;
  const DeviceGuard guard(device);
  native_ = cuda::create_stream(priority == Priority::high);
  LiveStreams::all().add(device, native_);
}

Stream::~Stream() {
  if (!owned_ || native_ == nullptr) return;
  LiveStreams::all().remove(native_);
  const DeviceGuard guard(device_, std::nothrow);
  cuda::destroy_stream(native_);
}
Stream::Stream(Stream&& other) noexcept
    : device_(other.device_), native_(std::exchange(other.native_, nullptr)), owned_(other.owned_) {}
Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(native_, other.native_);
  std::swap(owned_, other.owned_);
  return *this;
}
bool Stream::finished() const {
  const DeviceGuard guard(device_);
  return on_host(device_) || cuda::stream_finished(native_);
}
void Stream::synchronize() const {
  const DeviceGuard guard(device_);
  if (!on_host(device_)) cuda::synchronize_stream(native_);
}
void Stream::wait_for(const Event& event) {
  const DeviceGuard guard(device_);
  let_next_begin(false);
  if (!on_host(device_)) cuda::stream_waits(native_, event.native());
}

Event::Event(Device device) : device_(device) {
  const DeviceGuard guard(device);
  if (!on_host(device)) native_ = cuda::create_event();
}
Event::~Event() {
  if (native_ == nullptr) return;
  const DeviceGuard guard(device_, std::nothrow);
  cuda::destroy_event(native_);
}
Event::Event(Event&& other) noexcept
    : device_(other.device_), native_(std::exchange(other.native_, nullptr)), host_seconds_(other.host_seconds_) {}
Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(native_, other.native_);
  std::swap(host_seconds_, other.host_seconds_);
  return *this;
}
void Event::record(const Stream& stream) {
  const DeviceGuard guard(device_);
  if (on_host(device_)) host_seconds_ = now();
  else cuda::record_event(native_, stream.native());
}
void Event::synchronize() const {
  const DeviceGuard guard(device_);
  if (!on_host(device_)) cuda::synchronize_event(native_);
}
double Event::seconds_since(const Event& earlier) const {
  const DeviceGuard guard(device_);
  return on_host(device_) ? host_seconds_ - earlier.host_seconds_ : cuda::seconds_between(earlier.native_, native_);
}

Buffer::Buffer(Device device, std::size_t bytes) : device_(device), bytes_(bytes) {
  if (bytes == 0) return;
  const DeviceGuard guard(device);
  constexpr std::size_t kMost = std::size_t{1} << 62;  // more overflows where sizes are rounded up
  if (bytes < kMost) data_ = on_host(device) ? allocate_on_host(bytes) : DeviceMemory::of(device.ordinal).allocate(bytes);
  if (data_ != nullptr) return;
  const std::int64_t available = available_memory(device);
  throw MemoryError(fmt::format("cannot allocate {} on the {}; {} is available", human_bytes(static_cast<double>(bytes)),
                                on_host(device) ? std::string("host") : fmt::format("GPU {}", device.ordinal),
                                human_bytes(static_cast<double>(available))),
                    std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(bytes, kMost)) - available));
}
Buffer Buffer::shared(std::shared_ptr<const void> owner, const void* data, std::size_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  buffer.data_ = const_cast<void*>(data);
  buffer.bytes_ = bytes;
  buffer.owner_ = std::move(owner);
  return buffer;
}
Buffer::~Buffer() {
  if (data_ == nullptr || owner_ != nullptr) return;
  const DeviceGuard guard(device_, std::nothrow);
  if (on_host(device_)) free_on_host(data_, bytes_);
  else DeviceMemory::of(device_.ordinal).free(data_);
}
Buffer::Buffer(Buffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      owner_(std::move(other.owner_)) {}
Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(owner_, other.owner_);
  return *this;
}

Buffer zeros(Device device, std::size_t bytes) {
  Buffer buffer(device, bytes);
  if (bytes == 0) return buffer;
  const DeviceGuard guard(device);
  if (on_host(device)) std::memset(buffer.data(), 0, bytes);
  else cuda::fill_now(buffer.data(), 0, bytes);
  return buffer;
}

HostBuffer::~HostBuffer() { release(); }
HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      page_locked_(other.page_locked_) {}
HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(page_locked_, other.page_locked_);
  return *this;
}
void HostBuffer::reserve(std::size_t bytes, Device device, bool page_locked) {
  if (bytes <= bytes_) return;
  release();
  page_locked_ = page_locked && !on_host(device);
  device_ = device;
  const DeviceGuard guard(device);
  data_ = page_locked_ ? PageLockedMemory::all().allocate(bytes) : allocate_on_host(bytes);
  if (data_ == nullptr)
    throw Error(ErrorKind::resources,
                fmt::format("cannot allocate {} of {}host memory; {} is available", human_bytes(static_cast<double>(bytes)),
                            page_locked_ ? "page-locked " : "", human_bytes(static_cast<double>(available_host_memory()))));
  bytes_ = bytes;
}
void HostBuffer::release() noexcept {
  if (data_ == nullptr) return;
  const DeviceGuard guard(device_, std::nothrow);
  if (page_locked_) PageLockedMemory::all().free(data_);
  else free_on_host(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

namespace {

void copy_bytes(void* to, const void* from, std::size_t bytes, Stream& stream) {
  if (bytes == 0) return;
  const DeviceGuard guard(stream.device());
  stream.let_next_begin(false);
  if (on_host(stream.device())) std::memcpy(to, from, bytes);
  else cuda::copy(to, from, bytes, stream.native());
}

}  // namespace

void copy_to_device(void* device_memory, const void* host, std::size_t bytes, Stream& stream) {
  copy_bytes(device_memory, host, bytes, stream);
  stream.synchronize();
}
void copy_to_host(void* host, const void* device_memory, std::size_t bytes, Stream& stream) {
  copy_bytes(host, device_memory, bytes, stream);
  stream.synchronize();
}
void copy_to_device_async(void* device_memory, const void* host, std::size_t bytes, Stream& stream) {
  copy_bytes(device_memory, host, bytes, stream);
}
void copy_to_host_async(void* host, const void* device_memory, std::size_t bytes, Stream& stream) {
  copy_bytes(host, device_memory, bytes, stream);
}
void copy_on_device(void* to, const void* from, std::size_t bytes, Stream& stream) { copy_bytes(to, from, bytes, stream); }
void fill_bytes(void* device_memory, unsigned char byte, std::size_t bytes, Stream& stream) {
  if (bytes == 0) return;
  const DeviceGuard guard(stream.device());
  stream.let_next_begin(false);
  if (on_host(stream.device())) std::memset(device_memory, byte, bytes);
  else cuda::fill(device_memory, byte, bytes, stream.native());
}

Graph::Graph(Stream& stream, std::function<void()> work) : device_(stream.device()) {
  const DeviceGuard guard(device_);
  if (on_host(stream.device())) host_work_ = std::move(work);
  else executable_ = cuda::record_graph(stream.native(), work);
  stream.let_next_begin(false);  // nothing has run
}
Graph::~Graph() {
  if (executable_ == nullptr) return;
  const DeviceGuard guard(device_, std::nothrow);
  cuda::destroy_graph(executable_);
}
void Graph::launch(Stream& stream) {
  const DeviceGuard guard(device_);
  stream.let_next_begin(false);
  if (host_work_) host_work_();
  else cuda::launch_graph(executable_, stream.native());
}

DeviceGuard::DeviceGuard(Device device) : previous_(on_host(device) ? -1 : cuda::set_device(device.ordinal)) {}
DeviceGuard::DeviceGuard(Device device, const std::nothrow_t&) noexcept {
  try {
    if (!on_host(device)) previous_ = cuda::set_device(device.ordinal);
  } catch (const Error&) {  // the call that needs the device reports it
    cuda::forget_error();
  }
}
DeviceGuard::~DeviceGuard() {
  if (previous_ < 0) return;
  try {
    cuda::set_device(previous_);
  } catch (const Error&) {  // a destructor must not throw; the next call on the device reports it
    cuda::forget_error();
  }
}

}  // namespace shardmat
