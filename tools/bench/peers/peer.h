// What the peer program is made of: one file for each library, one line for each of its ways to multiply or to solve.
//
// The dialogue, lines of text over a socket. The bench asks, every rank of the program answers:
//   list                     ok N, then N lines: name, heading, full|symmetric, serial|threads|ranks, product or the
//                            preconditioner of ours that the peer's solver is compared with, separated by tabs
//   open PATH                ok: takes the operands in this file of shared memory (operands.h)
//   prepare NAME             ok DETAIL, or no REASON: the peer does not take this product or system
//   run N                    ok SECONDS: of N products, after one that is not timed
//   set_up METHOD RTOL N     ok SECONDS BYTES: makes a solver of A that ends at ‖X − A·Y‖ ≤ RTOL·‖X‖ or after N iterations;
//                            BYTES of memory that it keeps
//   solve                    ok SECONDS ITERATIONS: solves A·Y = X from Y = 0
//   history                  ok, then |X - A·Y| before the last solve and after each of its iterations
//   refresh                  ok SECONDS: doubles the values of A and sets the solver up again
//   result                   ok: Y lies in the shared memory
//   drop                     ok: the peer's matrix is freed
// The program first says `hello PID`. It ends when the bench closes the socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "tools/bench/peers/operands.h"

namespace shardmat::peers {

/// A mapped block of operands.
class Operands {
 public:
  explicit Operands(std::byte* block) : block_(block) {}

  const OperandsHeader& sizes() const { return *reinterpret_cast<const OperandsHeader*>(block_); }
  bool is_f64() const { return sizes().value_bytes == 8; }
  int rows() const { return static_cast<int>(sizes().rows); }
  int cols() const { return static_cast<int>(sizes().cols); }
  int nnz() const { return static_cast<int>(sizes().nnz); }
  int columns() const { return static_cast<int>(sizes().columns); }
  bool column_major() const { return sizes().column_major != 0; }
  /// Entries between the beginnings of two rows of X and Y, or of two columns.
  int ldx() const { return column_major() ? cols() : columns(); }
  int ldy() const { return column_major() ? rows() : columns(); }
  std::span<const int> row_ptr() const { return array<int>(sizes().row_ptr, sizes().rows + 1); }
  std::span<const int> col_idx() const { return array<int>(sizes().col_idx, sizes().nnz); }
  template <class T>
  std::span<const T> values() const {
    return array<T>(sizes().values, sizes().nnz);
  }
  template <class T>
  std::span<const T> x() const {
    return array<T>(sizes().x, sizes().cols * sizes().columns);
  }
  template <class T>
  std::span<T> y() const {
    return array<T>(sizes().y, sizes().rows * sizes().columns);
  }
  int node_size() const { return static_cast<int>(sizes().node_size); }
  int dimensions() const { return static_cast<int>(sizes().dimensions); }
  /// Of all nodes; empty if they are not known.
  std::span<const double> coordinates() const {
    if (dimensions() == 0) return {};
    return array<double>(sizes().coordinates, sizes().rows / sizes().node_size * sizes().dimensions);
  }

 private:
  template <class T>
  std::span<T> array(std::int64_t place, std::int64_t count) const {
    return {reinterpret_cast<T*>(block_ + place), static_cast<std::size_t>(count)};
  }

  std::byte* block_;
};

/// Why a peer does not take a product.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SolveRequest {
  std::string method;  ///< cg, or gmres with 30 vectors, preconditioned from the right
  double rtol = 1e-8;  ///< of ‖X‖, for ‖X − A·Y‖
  int most = 0;        ///< iterations
};

/// A matrix stored by a library, with its X and Y. It keeps its own arrays: shared memory has small pages.
class Peer {
 public:
  virtual ~Peer() = default;
  /// Y = A·X.
  virtual void multiply() = 0;
  /// Writes Y, or this rank's rows of it, to the operands.
  virtual void store_result() = 0;

  // Of solvers alone; each throws Refused.
  /// Waits for all ranks of the program, so that they begin together.
  virtual void meet() {}
  /// Makes a solver of the matrix as it was given, in place of the one before.
  virtual void set_up(const SolveRequest&) { throw Refused("it does not solve"); }
  /// Solves A·Y = X from Y = 0. Returns the iterations.
  virtual int solve() { throw Refused("it does not solve"); }
  /// ‖X − A·Y‖ as the last solve updated it: at its start and after each iteration. REQUIRES: solve() comes before.
  virtual std::span<const double> history() { throw Refused("it does not solve"); }
  /// Doubles the values of the matrix and takes them into the solver. REQUIRES: set_up() comes before.
  virtual void refresh() { throw Refused("it does not solve"); }
  /// Frees the solver, and undoes refresh().
  virtual void forget() {}

  std::string detail;  ///< block size and the like, for the report
};

enum class Parallel { serial, threads, ranks };

struct PeerKind {
  const char* name;
  const char* heading;     ///< of columns, and in pictures
  bool symmetric = false;  ///< stores half of a symmetric matrix
  Parallel parallel;
  /// The preconditioner of ours that its solver is compared with; null: it multiplies.
  const char* preconditioner = nullptr;
  /// Throws Refused.
  std::unique_ptr<Peer> (*make)(const Operands& operands);
};

/// Throws Refused unless A is equal to its transpose, bit for bit.
void require_symmetric(const Operands& operands);
/// Throws Refused unless X has one column.
void require_one_column(const Operands& operands);

// The libraries that CMake found. Each returns its ways to multiply.
std::span<const PeerKind> dune_peers();
std::span<const PeerKind> eigen_peers();
std::span<const PeerKind> librsb_peers();
std::span<const PeerKind> mkl_peers();
std::span<const PeerKind> petsc_peers();
/// Ends MPI if a peer has started it. Called once, at the end.
void end_petsc();

}  // namespace shardmat::peers
