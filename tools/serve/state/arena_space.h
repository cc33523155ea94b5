// Which bytes of the arena are taken. Vectors are placed as low as they fit, so that pages which were used before are used
// again.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace shardmat::serve {

class ArenaSpace {
 public:
  explicit ArenaSpace(std::uint64_t bytes) : bytes_(bytes), free_{{0, bytes}} {}
  ArenaSpace(const ArenaSpace&) = delete;
  ArenaSpace& operator=(const ArenaSpace&) = delete;

  /// A taken range; it is given back with the object. REQUIRES: the space outlives it.
  class Lease {
   public:
    Lease(ArenaSpace& space, std::uint64_t offset, std::uint64_t bytes) : space_(&space), offset_(offset), bytes_(bytes) {}
    ~Lease() { space_->give_back(offset_, bytes_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    std::uint64_t offset() const { return offset_; }

   private:
    ArenaSpace* space_;
    std::uint64_t offset_, bytes_;
  };

  /// Nothing if no range of so many bytes is free. Ranges begin at multiples of 64 bytes.
  std::unique_ptr<Lease> take(std::uint64_t bytes);

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t used() const { return used_; }

 private:
  void give_back(std::uint64_t offset, std::uint64_t bytes);

  std::uint64_t bytes_, used_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_;  ///< bytes of each free range by its offset
};

}  // namespace shardmat::serve
