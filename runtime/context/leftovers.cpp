#include "runtime/context/leftovers.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace shardmat {

void Leftovers::free(Communicator& ranks) {
  if (last_ == 0) return;
  std::string mine;
  for (const auto& [number, free] : left_) mine.append(reinterpret_cast<const char*>(&number), sizeof number);
  std::map<std::uint64_t, int> ranks_that_left;
  for (const std::string& numbers : ranks.all_gather(mine))
    for (std::size_t at = 0; at < numbers.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t number = 0;
      std::memcpy(&number, numbers.data() + at, sizeof number);
      ++ranks_that_left[number];
    }
  for (const auto& [number, count] : ranks_that_left)
    if (count == ranks.size()) std::exchange(left_[number], nullptr)(), left_.erase(number);
}

}  // namespace shardmat
