// Whether any rank wants to end a loop that all ranks are in.
//
// Threads: the thread of the communicator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

#include "comm/communicator.h"
#include "kernels/base/timer.h"

namespace shardmat {

class StopVote {
 public:
  /// `stop` may be empty, on some ranks only, too. Both outlive this object.
  StopVote(Communicator& ranks, const std::function<bool()>& stop) : ranks_(ranks), stop_(stop) {}

  /// Call it once an iteration; collective. Asks the ranks about every 10 ms: they agree in how many iterations the next
  /// vote comes, so the other calls send nothing. True, the same on all ranks, from the vote on at which `stop` was true
  /// somewhere.
  bool operator()() {
    if (ended_ || --left_ > 0) return ended_;
    constexpr double kSecondsBetweenVotes = 0.01;
    constexpr std::int64_t kMost = 10'000;
    const double each = since_.seconds() / static_cast<double>(last_);
    const auto wanted = static_cast<std::int64_t>(std::min(kSecondsBetweenVotes / std::max(each, 1e-9), double{kMost}));
    std::int64_t votes[2] = {stop_ && stop_() ? -1 : 0, std::clamp<std::int64_t>(wanted, 1, kMost)};
    ranks_.all_reduce(std::span<std::int64_t>(votes), Reduction::min);
    ended_ = votes[0] < 0;
    left_ = last_ = votes[1];
    since_ = Timer();
    return ended_;
  }

 private:
  Communicator& ranks_;
  const std::function<bool()>& stop_;
  Timer since_;
  std::int64_t left_ = 1, last_ = 1;  ///< iterations to the next vote; between the last two
  bool ended_ = false;
};

}  // namespace shardmat
