// Room in the arena for the body of a request. It is held as the body arrives: a client that announces much and sends little
// holds little.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "tools/serve/handlers/request_space.h"

namespace shardmat::serve {

/// How much is held once so many bytes of a body have come, and a further one is due.
std::uint64_t bytes_to_hold(std::uint64_t arrived, std::uint64_t all);

class ArrivingBody {
 public:
  /// A body of `bytes`, for which `room` was reserved. REQUIRES: service and room outlive it.
  ArrivingBody(Service& service, Room& room, std::uint64_t bytes) : service_(service), room_(room), bytes_(bytes) {}

  /// As Job::body() and Job::rest(). Empty before the first byte has come.
  std::span<std::byte> piece() const {
    return held_ == arrived_ ? std::span<std::byte>() : service_.arena().at(room_->offset() + arrived_, held_ - arrived_);
  }
  std::uint64_t rest() const { return bytes_ - held_; }
  /// The piece is complete: makes room for the next one, or says why there is none.
  std::optional<Problem> take_piece();
  /// All of it. REQUIRES: it is complete.
  std::span<std::byte> whole() const { return service_.arena().at(room_->offset(), bytes_); }

 private:
  Service& service_;
  Room& room_;
  std::uint64_t bytes_, arrived_ = 0, held_ = 0;
};

}  // namespace shardmat::serve
