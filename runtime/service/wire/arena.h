// The memory in which the vectors of requests lie: made by the front end, mapped by it and by every rank of its host. A
// vector that arrives in the front end is copied no more until a rank takes its part of it.
//
// It is a memfd that nobody can shrink or grow, so that no access can fail. The descriptor of the service's arena goes to
// the ranks and to nobody else. A client that wants shared memory gets one of its own. Pages are taken when they are first
// written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardmat::service {

/// Owns a descriptor and a mapping. Move-only.
class Arena {
 public:
  /// `name` is for people who look into /proc. Throws Error(resources) if there is no memory for it.
  static Arena create(std::uint64_t bytes, const char* name = "shardmat-arena");
  /// Takes over a descriptor that create() made in another process. Throws Error(internal) if it is something else.
  static Arena map(int descriptor);
  ~Arena();
  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) = delete;

  /// The mapping stays.
  void close_descriptor();
  /// -1 once it is closed.
  int descriptor() const { return descriptor_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Throws Error(internal) for a range that is not inside.
  std::span<std::byte> at(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  Arena(int descriptor, std::uint64_t bytes);

  int descriptor_;
  std::uint64_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace shardmat::service
