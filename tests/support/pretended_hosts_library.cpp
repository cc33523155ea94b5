// Pretended hosts for any program: LD_PRELOAD=libpretended_hosts.so with PRETENDED_HOSTS_OF=2 (pretended_hosts.h). The
// program refuses variables that begin with its own name and that it does not know.
#include <mpi.h>

#include "tests/support/pretended_hosts.h"

/// In place of MPI's, which it calls.
extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = PMPI_Init_thread(argc, argv, required, provided);
  if (result == MPI_SUCCESS) shardmat::pretend_hosts("PRETENDED_HOSTS_OF");
  return result;
}
