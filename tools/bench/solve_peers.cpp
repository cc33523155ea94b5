#include "tools/bench/solve_peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "comm/long_wait.h"
#include "kernels/base/error.h"
#include "tools/cli/environment.h"
#include "tools/cli/other_programs.h"

namespace shardmat::tools {
namespace {

/// Tells the ranks of become_ranks() the name of the socket to which the peers connect; empty without peers. Users do not
/// set it.
constexpr const char* kSocketVariable = "_SHARDMAT_PEER_SOCKET";
constexpr const char* kNotBuilt =
    "Without peers: neither PETSc nor hypre was found when Shardmat was built (packages petsc-dev and pkg-config).";

bool is_built() { return std::filesystem::exists(peer_program_path()); }

std::vector<std::string> on_ranks(int ranks, const std::string& program) {
  return {"mpirun", "-n", std::to_string(ranks), "--bind-to", "none", program};
}

std::vector<PeerName> solvers_of(PeerProgram& process) {
  std::vector<PeerName> solvers;
  for (PeerName& peer : process.list())
    if (!peer.preconditioner.empty()) solvers.push_back(std::move(peer));
  return solvers;
}

}  // namespace

SolvePeers start_solve_peers(int ranks, bool cpu_clock) {
  SolvePeers peers;
  if (!is_built()) {
    peers.missing = kNotBuilt;
    return peers;
  }
  const std::vector<std::string> command =
      ranks > 1 ? on_ranks(ranks, peer_program_path()) : std::vector<std::string>{peer_program_path()};
  peers.process = std::make_unique<PeerProgram>(command, ranks, 1, cpu_clock);
  peers.names = solvers_of(*peers.process);
  if (peers.names.empty()) peers.missing = kNotBuilt;
  return peers;
}

void become_ranks(int ranks, int peer_ranks) {
  const bool with_peers = peer_ranks > 0 && is_built();
  const std::string socket = with_peers ? fmt::format("shardmat-bench-solve-{}", ::getpid()) : "";
  ::setenv(kSocketVariable, socket.c_str(), 1);
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  if (with_peers) {
    std::vector<std::string> command = on_ranks(peer_ranks, peer_program_path());
    command.insert(command.end(), {socket, "wall"});
    start_apart(std::move(command), 1);
  }
  std::vector<std::string> command = on_ranks(ranks, (program_folder() / "shardmat-bench").string());
  const std::vector<std::string> words = own_words();
  const bool says_bench = words.size() > 1 && words[1] == "bench";
  command.insert(command.end(), words.begin() + (says_bench ? 2 : 1), words.end());
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  throw Error(ErrorKind::resources,
              fmt::format("mpirun cannot be started: {}. Install an MPI, or measure on one rank", std::strerror(errno)),
              "ranks");
}

bool was_started_by_become_ranks() { return std::getenv(kSocketVariable) != nullptr; }

SolvePeers connect_solve_peers(int peer_ranks, Communicator& communicator) {
  SolvePeers peers;
  const std::string socket = environment(kSocketVariable, "");
  if (socket.empty()) {
    peers.missing = kNotBuilt;
    return peers;
  }
  communicator.barrier();
  const LongWait wait(communicator);
  std::string names, failure;
  communicator.run_agreed([&] {
    if (communicator.rank() != 0) return;
    try {
      peers.process = std::make_unique<PeerProgram>(socket, peer_ranks);
    } catch (const Error& error) {
      failure = fmt::format("Without peers: {}; see above.", error.what());
      return;
    }
    for (const PeerName& peer : solvers_of(*peers.process))
      names += fmt::format("{}\t{}\t{}\n", peer.name, peer.heading, peer.preconditioner);
  });
  names = communicator.broadcast(names);
  failure = communicator.broadcast(failure);
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t first = names.find('\t', at), second = names.find('\t', first + 1), end = names.find('\n', second);
    PeerName peer;
    peer.name = names.substr(at, first - at), peer.heading = names.substr(first + 1, second - first - 1);
    peer.preconditioner = names.substr(second + 1, end - second - 1);
    peers.names.push_back(std::move(peer));
    at = end + 1;
  }
  if (peers.names.empty()) peers.missing = failure.empty() ? kNotBuilt : failure;
  return peers;
}

}  // namespace shardmat::tools
