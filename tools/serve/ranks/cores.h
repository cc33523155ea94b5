// The cores of the ranks, as the front end sees them.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/service/wire/command.h"

namespace shardmat::serve {

/// The numbers in "0-3,8". What is no number ends the list.
std::set<int> cpus_of(std::string_view list);

/// "rank 0 of 2 on a: AMD EPYC, avx2, 4 threads on 8 cores (0-7)".
std::string place_text(const service::Hello& hello);

/// Why the ranks may be slower than they need to be, for the log; empty if they use all `free` cores that the front end may
/// use. GPUs need no more than a core a rank.
std::string core_warning(const std::vector<service::Hello>& hellos, int free);

}  // namespace shardmat::serve
