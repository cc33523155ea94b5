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

void pretend_hosts() {
  const char* asked = std::getenv("SHARDMAT_TEST_HOSTS_OF");
  if (asked == nullptr) return;
  const int ranks_a_host = std::atoi(asked);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  pretended_host() = "host" + std::to_string(rank / ranks_a_host);
  setenv("NCCL_HOSTID", pretended_host().c_str(), 1);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank % ranks_a_host).c_str(), 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", asked, 1);
}

}  // namespace shardmat

/// In place of MPI's, which it calls.
extern "C" int MPI_Get_processor_name(char* name, int* length) {
  const std::string& pretended = shardmat::pretended_host();
  if (pretended.empty()) return PMPI_Get_processor_name(name, length);
  *length = std::snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", pretended.c_str());
  return MPI_SUCCESS;
}
