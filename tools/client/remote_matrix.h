// `--remote` of `shardmat solve` and `multiply`: where the service is, and the matrix of the command in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/client/client_service.h"

namespace shardmat::tools {

/// Where a command is carried out.
struct RemoteChoice {
  std::string where, token_file, authorities;
  double timeout = 0;  ///< of each step, in seconds; 0: none

  bool is_remote() const { return !where.empty() && where != "here"; }
};
/// --remote, --remote-token-file, --remote-ca, with the defaults of the environment.
void add_remote_options(const CommandLine& app, RemoteChoice& choice);

HttpClient connect(const RemoteChoice& choice);

/// Throws Error(usage) for an option that was given and is not among `taken` nor --remote…: the service does not do what it
/// asks for. `command` as "solve". Also throws if a launcher has started several ranks: those of the service work.
void require_remote_options(const CommandLine& app, const std::string& command, const std::vector<std::string>& taken);

/// What the command says of its matrix, and how the service must have loaded it.
struct WantedMatrix {
  std::string matrix;                                             ///< name in the service, or file of its library
  std::string type;                                               ///< empty: as the service has it, else f64
  std::string kernel = "auto", exchange = "auto", sort = "auto";  ///< auto: as the service has it
  bool solvable = false;
  bool transposable = false;  ///< products with the transpose follow
};
struct RemoteMatrix {
  std::string path;  ///< /v1/matrices/NAME
  std::string name, source;
  std::string note;  ///< for the user, at the end; empty: none
  bool f32 = false, transposable = true;
  std::int64_t rows = 0, cols = 0, nnz = 0, widest = 1, ranks = 1;
};
/// The matrix that the service has under this name or of this file as it is wanted; else it is loaded, as solvable if the
/// service can multiply with its transpose in no other way. Throws Error with what the service says.
RemoteMatrix find_or_load(HttpClient& client, const WantedMatrix& wanted);

}  // namespace shardmat::tools
