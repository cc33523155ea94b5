// Which bytes of the arena are held. Ranges are placed as low as they fit, so that pages which were used before are used
// again.
//
// A request's body needs one range, but its client may announce it and send nothing. So a lease holds the first part of its
// range, and reserves the rest. A reserved part goes to others when nothing else is free. Before, `make_room` gives back
// what is only kept.
//
// Threads: one at a time.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "tools/serve/state/token_memory.h"

namespace shardmat::serve {

class ArenaSpace {
 public:
  explicit ArenaSpace(std::uint64_t bytes) : bytes_(bytes), free_{{0, bytes}} {}
  ArenaSpace(const ArenaSpace&) = delete;
  ArenaSpace& operator=(const ArenaSpace&) = delete;

  /// A range whose first part is held; both are given back with the object. REQUIRES: the space outlives it.
  class Lease : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    Lease(ArenaSpace& space, std::uint64_t offset, std::uint64_t reserved)
        : space_(&space), offset_(offset), reserved_(reserved) {}
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    std::uint64_t offset() const { return offset_; }
    std::uint64_t held() const { return held_; }
    /// Holds at least the first `bytes`. False if they are not free behind those that it holds: then another lease is
    /// needed.
    bool hold(std::uint64_t bytes);

    /// What it holds is only kept from now on: it counts neither as used nor as anybody's. Its owner gives it back when
    /// `make_room` asks for it.
    void set_aside();

    std::optional<TokenMemory::Charge> charge;  ///< whose bytes they are

   private:
    friend class ArenaSpace;
    std::uint64_t end() const { return offset_ + held_ + reserved_; }

    ArenaSpace* space_;
    std::uint64_t offset_, held_ = 0, reserved_;
    bool is_aside_ = false;
  };

  /// Reserves a range of which nothing is held yet. Null if no range of this size is free. Ranges begin at multiples of 64
  /// bytes.
  std::unique_ptr<Lease> reserve(std::uint64_t bytes);

  /// A range that is held and set aside. Null if no range is free, even if something is only reserved.
  std::unique_ptr<Lease> keep(std::uint64_t bytes);

  std::uint64_t bytes() const { return bytes_; }
  /// Bytes that are held, without those that are only kept.
  std::uint64_t used() const { return used_; }
  /// Called when no range of a size is free: gives back one that is set aside. False: there is none. May be empty.
  std::function<bool()> make_room;

 private:
  std::optional<std::uint64_t> take_range(std::uint64_t bytes);
  std::optional<std::uint64_t> take_unreserved(std::uint64_t bytes);
  std::optional<std::uint64_t> take_free(std::uint64_t bytes);
  bool take_free_at(std::uint64_t offset, std::uint64_t bytes);
  void cut(Lease& lease);
  void give_back(std::uint64_t offset, std::uint64_t bytes);

  std::uint64_t bytes_, used_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_;  ///< bytes of each free range by its offset
  /// With a reserved part; the oldest first.
  boost::intrusive::list<Lease, boost::intrusive::constant_time_size<false>> reserving_;
};

}  // namespace shardmat::serve
