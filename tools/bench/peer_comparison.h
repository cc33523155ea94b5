// `shardmat bench kernels|spmm|batched --peers`: our products against those of other libraries, which run in processes of
// their own, in turn with ours.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/matrix/csr.h"
#include "tools/bench/options.h"
#include "tools/bench/outputs.h"
#include "tools/bench/peer_program.h"
#include "tools/bench/peer_report.h"
#include "tools/bench/product_check.h"
#include "tools/bench/repeated_table.h"
#include "tools/bench/streams.h"

namespace shardmat::tools {

struct PeerOptions {
  bool wanted = false;
  std::vector<std::int64_t> threads{1};
};

/// Adds --peers and --threads. `without`: options of the command that mean nothing with --peers.
void add_peer_options(const CommandLine& app, PeerOptions& options, const std::vector<std::string>& without);

/// One of our kernels, ready to multiply the operands of a PeerTrial.
struct OwnProduct {
  std::string asked, kernel, policy;
  std::function<void()> multiply;
  std::int64_t matrix_bytes = 0;  ///< of the matrix as it is stored
};

/// A matrix with an X, a Y, and what some columns of Y must be.
class PeerTrial {
 public:
  /// The matrix and the stream live as long as this.
  PeerTrial(const CsrView& matrix, ValueType type, const RightHandSides& rhs, Stream& stream, bool verify);

  const CsrView& matrix() const { return matrix_; }
  ValueType type() const { return type_; }
  const RightHandSides& rhs() const { return rhs_; }
  Stream& stream() { return stream_; }
  const void* x() const { return x_.data(); }
  void* y() const { return y_.data(); }
  std::int64_t leading_x() const { return rhs_.x == DenseOrder::row_major ? rhs_.count : matrix_.cols; }
  std::int64_t leading_y() const { return rhs_.y == DenseOrder::row_major ? rhs_.count : matrix_.rows; }
  /// X, as it is stored.
  double entry(std::int64_t i) const { return table_.at(i); }
  void poison_y();
  /// Entries of the columns looked at that are beyond their rounding bound.
  std::int64_t count_wrong(const void* y) const;

 private:
  CsrView matrix_;
  ValueType type_;
  RightHandSides rhs_;
  Stream& stream_;
  RepeatedTable table_;
  Buffer x_, y_;
  std::map<std::int64_t, ProductCheck> checks_;  ///< by column
};

/// What the work of a case is called, and where it comes from.
struct WorkName {
  std::string name, argument;
};

class PeerComparison {
 public:
  /// Starts the program anew if its OpenMP threads would not sleep while a peer multiplies. Throws Error(usage) for another
  /// backend than the host's, Error(resources) if no peer was built.
  PeerComparison(const std::string& bench, const RunOptions& options, const PeerOptions& peers);
  ~PeerComparison();

  /// Our products of a trial, made with the threads that they run on.
  using MakeOwn = std::function<std::vector<OwnProduct>(PeerTrial& trial)>;
  /// One case for each number of threads, printed unless JSON is.
  void compare(const WorkName& work, const CsrView& matrix, ValueType type, const RightHandSides& rhs,
               const MakeOwn& make_own, const GrowingReport& file);
  /// Prints the summary, finishes the report and returns the exit code.
  int finish(const GrowingReport& file) const;

  const std::vector<ValueType>& types() const { return types_; }

 private:
  /// The programs for one number of threads, with the peers of each.
  struct Programs;

  Programs& programs(int threads);
  void compare(PeerCase& one, PeerTrial& trial, SharedOperands& operands, const MakeOwn& make_own);
  /// Measures every peer with our first product; returns the places of the fastest peers: full, symmetric; -1 without one.
  std::pair<int, int> choose(PeerCase& one, PeerTrial& trial, Programs& programs, SharedOperands& operands,
                             const OwnProduct& own);
  /// How much of the memory's rate a product takes.
  MemoryShare share_of(const OwnProduct& own, const PeerTrial& trial, int threads);
  PairOptions pair_options(int threads, int pairs) const;
  double own_seconds() const;

  PeerReport report_;
  bool print_;
  std::vector<ValueType> types_;
  std::vector<std::int64_t> threads_;
  Stream stream_;
  std::map<int, std::unique_ptr<Programs>> programs_;
  ForeignLoad load_;
  std::unique_ptr<Streams> streams_;  ///< made for the first matrix that is large enough
};

}  // namespace shardmat::tools
