// Another process of this host: is it still there, and does it run?
//
// Threads: any thread, several at a time; there is no shared state.
#pragma once

#include <cstdint>

namespace shardmat {

/// A process, as it is recognised later: numbers of processes are given anew, but not with the same start.
struct PeerProcess {
  std::int32_t number = 0;    ///< as getpid() returns it
  std::uint64_t started = 0;  ///< clock ticks since the host was started
};

PeerProcess this_process();

enum class PeerState {
  runs,
  stopped,  ///< by a signal or a debugger
  gone,     ///< ended, also if nobody has asked for its exit status yet
};
PeerState state_of(const PeerProcess& process);

}  // namespace shardmat
