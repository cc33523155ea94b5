// Loaded before a program (LD_PRELOAD): stops the process of one rank at a chosen MPI call, or some time after MPI has
// started.
//   STOP_RANK      the rank
//   STOP_AT_CALL   before its Nth MPI call after MPI_Init_thread(), counted over all threads from 1
//   STOP_AFTER_MS  so many milliseconds after MPI_Init_thread()
// Without the last two it prints "MPI calls: N" to stderr when MPI ends.
#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

std::atomic<long> calls{0};

long number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? -1 : std::atol(text);
}

bool is_victim() {
  static const bool victim = [] {
    int rank = -1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == number("STOP_RANK");
  }();
  return victim;
}

void stop() {
  std::fprintf(stderr, "stopped at call %ld\n", calls.load());
  kill(getpid(), SIGSTOP);
}

void count_call() {
  static const long at = number("STOP_AT_CALL");
  if (is_victim() && ++calls == at) stop();
}

}  // namespace

// Every function that Communicator calls, and some that libraries call.
#define STOPS(name, parameters, arguments) \
  int MPI_##name parameters {              \
    count_call();                          \
    return PMPI_##name arguments;          \
  }

extern "C" {

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = PMPI_Init_thread(argc, argv, required, provided);
  if (const long delay = number("STOP_AFTER_MS"); delay >= 0 && is_victim())
    std::thread([delay] {
      std::this_thread::sleep_for(std::chrono::milliseconds(delay));
      stop();
    }).detach();
  return result;
}

int MPI_Finalize() {
  count_call();
  if (is_victim() && number("STOP_AT_CALL") < 0 && number("STOP_AFTER_MS") < 0)
    std::fprintf(stderr, "MPI calls: %ld\n", calls.load());
  return PMPI_Finalize();
}

STOPS(Comm_idup, (MPI_Comm comm, MPI_Comm* made, MPI_Request* request), (comm, made, request))
STOPS(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made), (comm, group, tag, made))
STOPS(Comm_free, (MPI_Comm * comm), (comm))
STOPS(Ibarrier, (MPI_Comm comm, MPI_Request* request), (comm, request))
STOPS(Ibcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request),
      (data, count, type, root, comm, request))
STOPS(Iallreduce, (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request* request),
      (in, out, count, type, op, comm, request))
STOPS(Iallgather,
      (const void* in, int sent, MPI_Datatype in_type, void* out, int received, MPI_Datatype out_type, MPI_Comm comm,
       MPI_Request* request),
      (in, sent, in_type, out, received, out_type, comm, request))
STOPS(Ialltoall,
      (const void* in, int sent, MPI_Datatype in_type, void* out, int received, MPI_Datatype out_type, MPI_Comm comm,
       MPI_Request* request),
      (in, sent, in_type, out, received, out_type, comm, request))
STOPS(Isend, (const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request),
      (data, count, type, to, tag, comm, request))
STOPS(Irecv, (void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request),
      (data, count, type, from, tag, comm, request))
STOPS(Allreduce, (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (in, out, count, type, op, comm))
STOPS(Waitall, (int count, MPI_Request* requests, MPI_Status* status), (count, requests, status))

}  // extern "C"
