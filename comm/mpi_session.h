// MPI's start and end in a program of its own.
// Ownership: one MpiSession, the program's, ends what it started. Collective: its start and its end.
// Threads: one thread of each rank. MpiSession and MpiSession::leave() are called by all ranks.
#pragma once

#include <string>

namespace shardmat {

/// Owns MPI_Init_thread / MPI_Finalize of a program. A program that starts MPI itself needs no MpiSession.
class MpiSession {
 public:
  /// Asks for MPI_THREAD_MULTIPLE; mpi_takes_threads() says whether MPI provides it.
  MpiSession(int* argc, char*** argv);
  ~MpiSession();  ///< MPI_Finalize. Blocks for ever if a rank is gone: then call leave() instead
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// Flushes the standard streams and ends this process at once with `exit_code`, without MPI_Finalize, static destructors
  /// or any wait for other ranks. Calls the functions given to std::at_quick_exit().
  [[noreturn]] static void leave(int exit_code);
  /// Calls leave() after `seconds`, unless the process has ended by then; prints `message` to stderr first. Use it in
  /// on_broken(): freeing device memory while a kernel waits for a lost rank can block for ever.
  static void leave_after(double seconds, int exit_code, std::string message);
};

/// True if MPI was started with MPI_THREAD_MULTIPLE. LongWait and run_while_checking_ranks() need it to communicate on two
/// threads.
bool mpi_takes_threads();
/// Throws Error(resources) if mpi_takes_threads() is false.
void require_mpi_threads();

}  // namespace shardmat
