#include "tests/support/pretended_hosts.h"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace shardmat {
namespace {

/// Of this rank, if it is to have one of its own.
std::string& pretended_host() {
  static std::string name;
  return name;
}

}  // namespace

void pretend_hosts(const char* variable) {
  const char* asked = std::getenv(variable);
  if (asked == nullptr) return;
  const bool in_turn = *asked == 'x';
  const int number = std::atoi(asked + (in_turn ? 1 : 0));
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (number < 1) {
    std::fprintf(stderr, "%s is %s, but must be a number of ranks, or x and a number of hosts\n", variable, asked);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const auto host_of = [=](int r) { return in_turn ? r % number : r / number; };
  const int host = host_of(rank);
  int local_rank = 0, local_size = 0;
  for (int r = 0; r < ranks; ++r) local_rank += r < rank && host_of(r) == host, local_size += host_of(r) == host;
  pretended_host() = "host" + std::to_string(host);
  setenv("NCCL_HOSTID", pretended_host().c_str(), 1);
  setenv("NCCL_MNNVL_ENABLE", "0", 0);  // no NVLink between them, unless asked for
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(local_rank).c_str(), 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(local_size).c_str(), 1);
}

bool hosts_are_pretended() { return !pretended_host().empty(); }

}  // namespace shardmat

/// In place of MPI's, which it calls.
extern "C" int MPI_Get_processor_name(char* name, int* length) {
  const std::string& pretended = shardmat::pretended_host();
  if (pretended.empty()) return PMPI_Get_processor_name(name, length);
  *length = std::snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", pretended.c_str());
  return MPI_SUCCESS;
}
