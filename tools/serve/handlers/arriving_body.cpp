#include "tools/serve/handlers/arriving_body.h"

#include <algorithm>

namespace shardmat::serve {

std::uint64_t bytes_to_hold(std::uint64_t arrived, std::uint64_t all) {
  constexpr std::uint64_t kFirst = 64 << 10, kGrowth = 4;
  return std::min(all, std::max(kFirst, arrived > all / kGrowth ? all : kGrowth * arrived));
}

std::optional<Problem> ArrivingBody::take_piece() {
  const std::uint64_t next = bytes_to_hold(held_, bytes_);
  if (auto problem = hold_room(service_, room_, bytes_, next, held_)) return problem;
  arrived_ = held_, held_ = next;
  return std::nullopt;
}

}  // namespace shardmat::serve
