// The options of `shardmat serve`, which are those of shardmat-serve: one starts the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cli/options.h"

namespace shardmat::serve {

constexpr std::int64_t kLeastArena = 1 << 16;  ///< bytes

struct ServeOptions {
  std::string config;
  std::string library;
  std::int64_t upload_limit = 0;  ///< bytes of a file that a client may send into the library; 0: none
  std::string state;              ///< empty: default_state_directory()
  std::string unix_socket;        ///< empty: in the state directory
  std::string unix_group;         ///< whose members may use the Unix socket; empty: this user alone
  std::vector<std::string> listen, trusted_proxies;
  std::string tokens, tls_certificate, tls_key;
  bool no_token = false;
  std::vector<std::string> host_names, origins;
  std::int64_t connections = 1024, connections_per_address = 64;
  std::string access_log;  ///< empty: none; "-": standard output
  double header_timeout = 10, body_timeout = 10;
  int ranks = 1;
  std::string launcher;  ///< empty: mpirun
  std::string backend = "auto";
  std::int64_t arena = 0;  ///< bytes; 0: by the memory of this host
  double timeout = 5;
  int restarts = 5;
  double restart_delay = 0.5;
  double max_queue_ms = 2000;
  double drain_seconds = 0;
  bool no_merge = false;
};

void add_serve_options(const tools::CommandLine& app, ServeOptions& options);

/// Name of the default socket in a state directory.
constexpr const char* kDefaultSocket = "http.sock";
/// Name of the owner's token in a state directory.
constexpr const char* kTokenFile = "token";

/// The words of --launcher, split at spaces; without it mpirun for the given number of ranks.
std::vector<std::string> launcher_of(const ServeOptions& options);

}  // namespace shardmat::serve
