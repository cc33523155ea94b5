// Pretended hosts for any program: LD_PRELOAD=libpretended_hosts.so with PRETENDED_HOSTS_OF=2 (pretended_hosts.h). The
// program refuses variables that begin with its own name and that it does not know. CUT_OFF_RANK=1: no address can be
// reached from rank 1, once MPI has begun.
#include <mpi.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "tests/support/pretended_hosts.h"

namespace {

std::atomic<bool> is_cut_off = false;

}  // namespace

/// In place of MPI's, which it calls.
extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = PMPI_Init_thread(argc, argv, required, provided);
  if (result != MPI_SUCCESS) return result;
  shardmat::pretend_hosts("PRETENDED_HOSTS_OF");
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* const cut_off = std::getenv("CUT_OFF_RANK");
  is_cut_off = cut_off != nullptr && std::atoi(cut_off) == rank;
  return result;
}

/// In place of the C library's.
extern "C" int connect(int socket, const sockaddr* address, socklen_t size) {
  const bool by_network = address->sa_family == AF_INET || address->sa_family == AF_INET6;
  if (!by_network || !is_cut_off) return static_cast<int>(syscall(SYS_connect, socket, address, size));
  errno = ENETUNREACH;
  return -1;
}
