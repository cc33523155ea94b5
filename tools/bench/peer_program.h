// The programs that multiply with other libraries while the host backend rests: started as children, asked over a socket,
// given the operands in shared memory. tools/bench/peers/peer.h describes the dialogue.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/types.h"
#include "kernels/matrix/csr.h"
#include "kernels/spmm_plan.h"
#include "tools/bench/peers/operands.h"

namespace shardmat::tools {

/// One way of a library to multiply.
struct PeerName {
  std::string name, heading;  ///< "petsc_baij", "PETSc BAIJ"
  bool symmetric = false;     ///< stores half of a symmetric matrix
  std::string parallel;       ///< serial, threads or ranks
  bool solves = false;        ///< it is for solves, not for products
};

/// Y = A·X in memory that the children map.
class SharedOperands {
 public:
  /// X is entry(i), i counted in the order in which X is stored, rounded to `type` (f64 or f32). Throws Error(resources) if
  /// the matrix has 2^31 or more rows, columns or nonzeros, or if there is no memory.
  SharedOperands(const CsrView& matrix, ValueType type, const RightHandSides& rhs,
                 const std::function<double(std::int64_t)>& entry);
  ~SharedOperands();
  SharedOperands(const SharedOperands&) = delete;
  SharedOperands& operator=(const SharedOperands&) = delete;

  /// A file name for the children, valid as long as this object.
  std::string path() const;
  /// Y as the last peer wrote it.
  const void* y() const { return block_ + header().y; }
  /// Sets every byte of Y: all entries become NaN.
  void poison_y();

 private:
  const peers::OperandsHeader& header() const { return *reinterpret_cast<const peers::OperandsHeader*>(block_); }

  int file_ = -1;
  std::byte* block_ = nullptr;
  std::size_t bytes_ = 0;
};

/// One program, running on one or more ranks.
class PeerProgram {
 public:
  /// `command` with the socket's name and the clock as its last words. `threads`: of OpenMP, in each rank. `cpu_clock`:
  /// times are CPU time of the one thread, not wall time. Throws Error(resources) if it does not start.
  PeerProgram(std::vector<std::string> command, int ranks, int threads, bool cpu_clock);
  /// Closes the connection and waits for the end.
  ~PeerProgram();
  PeerProgram(const PeerProgram&) = delete;
  PeerProgram& operator=(const PeerProgram&) = delete;

  // Each of these throws Error(resources) if the program has ended.
  std::vector<PeerName> list();
  /// Throws Error(resources) with the program's reason.
  void open(const SharedOperands& operands);

  struct Prepared {
    std::string detail, refused;  ///< refused: why the peer does not take the product; empty if it does
  };
  Prepared prepare(const std::string& peer);
  /// Seconds of so many products, of the slowest rank. Throws Error(resources) with the program's reason if one fails.
  double run(std::int64_t products);
  struct Solved {
    double seconds = 0, residual = 0;  ///< residual: over ‖b‖
    std::int64_t iterations = 0;
    std::string refused;  ///< why the peer does not solve so; empty if it does
  };
  /// Solves A·x = 1 from x = 0. Seconds of the slowest rank.
  Solved solve(const std::string& method, const std::string& preconditioner, double rtol, std::int64_t most);
  /// The peer writes its Y to the operands.
  void store_result();
  /// Frees the peer's matrix.
  void drop();
  /// CPU time of all ranks so far.
  double cpu_seconds() const;

 private:
  struct Rank {
    int socket = -1;
    pid_t process = 0;
    std::string read;  ///< and not used yet
  };
  void start(std::vector<std::string> words, int threads, bool alone);
  void accept_ranks(int listener, int ranks);
  std::string line_of(Rank& rank);
  /// The answers of all ranks to one request, without their first word. Throws if one of them says no.
  std::vector<std::string> ask(const std::string& request);
  std::vector<std::string> answers(const std::string& request);

  std::string program_;
  pid_t child_ = 0;
  std::vector<Rank> ranks_;
};

/// The program of the libraries that CMake found, beside this one; it may not be there.
std::string peer_program_path();
/// Throws Error(resources) with what to install if it is not there.
void require_peer_program();

/// Runs this program anew with OMP_WAIT_POLICY=passive, which OpenMP reads at its start. Threads that spin between parallel
/// regions would take a core from the peer that multiplies next.
void let_waiting_threads_sleep();

}  // namespace shardmat::tools
