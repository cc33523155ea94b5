// Work for some of the ranks, while the others wait.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "comm/long_wait.h"

namespace shardmat::tools {

/// Why something did not happen, the same on every rank: message, setting and exit code of an Error.
struct Refusal {
  std::string why, setting;
  int kind = 0;
};

/// Collective: calls f(ranks) on the first so many of `all`. An AgreedError of theirs is what it returns; else nothing.
template <class F>
Refusal on_first_ranks(Communicator& all, int count, double timeout, const F& f) {
  all.barrier();
  const LongWait wait(all);
  Refusal refused;
  if (std::optional<Communicator> some = all.first_ranks(count, timeout)) {
    some->on_broken([&all](const Error& why) { all.mark_broken(why.what(), std::string(why.setting())); });
    try {
      f(*some);
    } catch (const AgreedError& error) {
      refused = {error.what(), error.setting(), error.exit_code()};
    }
  }
  refused.why = all.broadcast(all.rank() == 0 ? refused.why : std::string());
  refused.setting = all.broadcast(all.rank() == 0 ? refused.setting : std::string());
  refused.kind = all.all_reduce(refused.kind, Reduction::max);
  return refused;
}

}  // namespace shardmat::tools
