// The programs that multiply and solve with other libraries while the host backend rests: started as children, asked over a
// socket, given the operands in shared memory. tools/bench/peers/peer.h describes the dialogue.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/base/types.h"
#include "kernels/matrix/csr.h"
#include "kernels/spmm_plan.h"
#include "tools/bench/peers/operands.h"

namespace shardmat::tools {

/// One way of a library to multiply or to solve.
struct PeerName {
  std::string name, heading;   ///< "petsc_baij", "PETSc BAIJ"
  bool symmetric = false;      ///< stores half of a symmetric matrix
  std::string parallel;        ///< serial, threads or ranks
  std::string preconditioner;  ///< of ours, with which its solver is compared; empty: it multiplies
};

/// The nodes of a system.
struct SystemNodes {
  std::int64_t size = 0, dimensions = 0;  ///< unknowns and coordinates of a node; 0: not known
  HostVector<double> coordinates;         ///< of all nodes
};

/// Y = A·X, or A·Y = X, in memory that the children map.
class SharedOperands {
 public:
  /// X is entry(i), i counted in the order in which X is stored, rounded to `type` (f64 or f32). Throws Error(resources) if
  /// the matrix has 2^31 or more rows, columns or nonzeros, or if there is no memory.
  SharedOperands(const CsrView& matrix, ValueType type, const RightHandSides& rhs,
                 const std::function<double(std::int64_t)>& entry, const SystemNodes& nodes = {});
  ~SharedOperands();
  SharedOperands(const SharedOperands&) = delete;
  SharedOperands& operator=(const SharedOperands&) = delete;

  /// A file name for the children, valid as long as this object.
  std::string path() const;
  /// Y as the last peer wrote it.
  const void* y() const { return block_ + header().y; }
  /// Sets every byte of Y: all entries become NaN.
  void poison_y();
  /// Writes Y. REQUIRES: one column of f64.
  void set_y(std::span<const double> y);
  /// ‖X − factor·A·Y‖ / ‖X‖. REQUIRES: one column of f64.
  double relative_residual(double factor) const;

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
  /// A program that somebody else starts on `ranks` ranks with the socket's name `name`. Throws Error(resources) if it does
  /// not connect.
  PeerProgram(const std::string& name, int ranks);
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
  /// An answer of all ranks.
  struct Timed {
    double seconds = 0;       ///< of the slowest rank
    std::int64_t number = 0;  ///< bytes of all ranks, or iterations
    std::string refused;      ///< why the peer does not do this; empty if it does
  };
  /// A solver of A·Y = X as the operands have them. number: bytes that it keeps.
  Timed set_up(const std::string& method, double rtol, std::int64_t most);
  /// Solves from Y = 0. number: iterations.
  Timed solve();
  /// ‖X − A·Y‖ at the start of the last solve and after each iteration, as the peer updates it.
  std::vector<double> history();
  /// Doubles A and sets the solver up again.
  Timed refresh();
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
  Timed timed(const std::string& request, bool sums);

  std::string program_;
  pid_t child_ = 0;
  std::vector<Rank> ranks_;
};

/// The program of the libraries that CMake found, beside this one; it may not be there.
std::string peer_program_path();
/// Throws Error(resources) with what to install if it is not there.
void require_peer_program();
/// Starts a program that nobody waits for, with its standard output on standard error; see PeerProgram for `threads`. Throws
/// Error(resources).
void start_apart(std::vector<std::string> command, int threads);

/// Runs this program anew with OMP_WAIT_POLICY=passive, which OpenMP reads at its start. Threads that spin between parallel
/// regions would take a core from the peer that multiplies next.
void let_waiting_threads_sleep();

}  // namespace shardmat::tools
