#include "comm/shared_gpu/peer_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace shardmat {
namespace {

struct Status {
  char state = 0;  ///< 0: there is no such process
  std::uint64_t started = 0;
};

/// The fields of /proc/PID/stat after the name of the program, which may hold anything.
Status status_of(std::int32_t number) {
  std::ifstream file(fmt::format("/proc/{}/stat", number));
  std::string text;
  std::getline(file, text);
  const auto end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return {};
  std::istringstream fields(text.substr(end_of_name + 1));
  Status status;
  fields >> status.state;
  constexpr int kFieldsBetween = 18;  // the state is field 3, the start is field 22
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> status.started;
  return status;
}

}  // namespace

PeerProcess this_process() { return {getpid(), status_of(getpid()).started}; }

PeerState state_of(const PeerProcess& process) {
  const Status now = status_of(process.number);
  switch (now.state) {
    case 0:
    case 'Z':
    case 'X':
    case 'x':
      return PeerState::gone;
    default:
      break;
  }
  if (now.started != process.started) return PeerState::gone;
  return now.state == 'T' || now.state == 't' ? PeerState::stopped : PeerState::runs;
}

}  // namespace shardmat
