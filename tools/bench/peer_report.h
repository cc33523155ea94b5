// What the benchmarks found with --peers, as text and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/types.h"
#include "kernels/spmm_plan.h"
#include "tools/bench/machine.h"
#include "tools/bench/peer_pairs.h"
#include "tools/bench/peer_program.h"

namespace shardmat::tools {

/// One of our kernels against one peer. The ratio is the peer's time over ours: above 1, ours is faster.
struct PeerRatio {
  std::string peer;                          ///< its heading
  double own_seconds = 0, peer_seconds = 0;  ///< medians of one product
  MedianInterval ratio;
  int pairs = 0, repeated = 0;
  double foreign_cores = 0;

  PeerRatio() = default;
  /// REQUIRES: at least one pair.
  PeerRatio(std::string peer, const Pairs& measured);
};

/// The rate at which a product moves the stored matrix, X and Y once, as a share of the faster of two loops over memory.
struct MemoryShare {
  std::string loop;  ///< see Streams; empty: the matrix is too small to tell
  double rate = 0;   ///< of the loop, bytes a second
  MedianInterval share;
};

struct OwnKernel {
  std::string asked, kernel, policy;  ///< asked: "auto" or a kernel
  std::int64_t wrong = 0;             ///< entries of Y beyond their rounding bound
  std::optional<PeerRatio> best;      ///< against the fastest peer that stores the whole matrix
  std::optional<PeerRatio> best_symmetric;
  MemoryShare share;
};

struct PeerResult {
  PeerName peer;
  std::string detail;   ///< block size and the like
  std::string refused;  ///< why it was not measured; empty if it was
  std::int64_t wrong = 0;
  PeerRatio first;  ///< against the first of our kernels, in the rounds in which the fastest peer is chosen
};

/// One product: a matrix or a batch, a type, a number of columns and of threads.
struct PeerCase {
  std::string name, argument;
  std::int64_t rows = 0, cols = 0, nnz = 0;
  ValueType type = ValueType::f64;
  RightHandSides rhs;
  int threads = 1;
  std::vector<OwnKernel> own;
  std::vector<PeerResult> peers;
};

struct PeerReport {
  std::string bench;  ///< "kernels", "spmm" or "batched"
  Machine machine;
  int repetitions = 0;
  bool verified = true;
  std::vector<std::string> notes;
  std::vector<PeerCase> cases;
};

std::string header_text(const PeerReport& report);
std::string case_text(const PeerCase& one);
std::string summary_text(const PeerReport& report);
nlohmann::ordered_json to_json(const PeerReport& report);
/// Our wrong results of all cases. Wrong results of peers are in the report; such a peer is compared with nothing.
std::int64_t count_wrong(const PeerReport& report);

}  // namespace shardmat::tools
