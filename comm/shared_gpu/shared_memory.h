// Memory that processes of one host share: a file without a name, which one process makes and grows, and which ends with the
// last of them.
//
// Threads: one thread at a time uses an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace shardmat {

class Communicator;

/// The file has a head of fixed size, whose address never changes, and a body that grows.
class SharedMemory {
 public:
  /// Makes the file with a head of zeros and no body. Throws Error(resources).
  explicit SharedMemory(std::size_t head_bytes);
  /// Opens the file that process `maker` has as `descriptor`. Throws Error(resources), naming what the system says.
  SharedMemory(std::size_t head_bytes, std::int32_t maker, int descriptor);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int descriptor() const { return descriptor_; }
  void* head() const { return head_; }

  /// In the maker: takes memory for a body of `bytes`; what lies there stays. Throws Error(resources) if there is not
  /// enough; the message names the bytes `what`.
  void reserve(std::size_t bytes, const char* what);
  /// In the maker: gives the memory of the body back; what lies there is lost.
  void release();
  /// The body, of which at least `bytes` are mapped. A later call may move it. REQUIRES: the maker reserved as much.
  std::byte* body(std::size_t bytes);

 private:
  void map_head(std::size_t head_bytes);

  int descriptor_ = -1;
  std::size_t head_bytes_ = 0;
  void* head_ = nullptr;
  std::byte* body_ = nullptr;
  std::size_t mapped_ = 0, reserved_ = 0;
};

/// Memory that rank `maker` of this host makes, on `maker` and on all ranks that name it. `prepare` makes, in the maker,
/// what the head holds, which begins with a PeerProcess: that of the maker. Collective; the same error on all ranks.
std::unique_ptr<SharedMemory> share_memory(Communicator& communicator, int maker, std::size_t head_bytes,
                                           const std::function<void(void* head)>& prepare);

}  // namespace shardmat
