// The whole of `shardmat multiply` as one call: open, load, multiply, verify, iterate, write, report.
//
// Threads: one thread of each rank; multiply() is collective.
#pragma once

#include <cstdint>
#include <string>

#include "comm/placement.h"
#include "kernels/base/progress.h"
#include "partition/readers/input_choices.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/run/report.h"
#include "runtime/run/verify.h"
#include "runtime/timing/iteration_times.h"

namespace shardmat {

class Context;

struct MultiplyOptions {
  std::string matrix;            ///< matrix file or generator specification, see open_matrix()
  bool allow_nonfinite = false;  ///< accept NaN and infinity among its values
  InputChoices choices{};        ///< what the user says about its file
  LoadOptions load;
  BackendChoice backend = BackendChoice::automatic;
  int threads = 0;           ///< host threads of each rank; 0: its share of the cores of its host
  std::string x = "random";  ///< ones, zeros, random or a file
  std::string y0 = "zeros";  ///< used if beta is not 0
  std::uint64_t seed = 1;
  double alpha = 1, beta = 0;
  bool transpose = false;  ///< with Aᵀ: x has the rows of A, y its columns. For Mode::repeat alone
  Mode mode = Mode::repeat;
  std::int64_t iterations = 10;
  bool graph = true;
  bool verify = false;
  VerifyMode verify_mode = VerifyMode::automatic;
  std::string output;      ///< file for y (power: for the last x), in original row order; empty = none
  std::int64_t files = 1;  ///< how many files of hypre the output becomes (partition/files/atomic_files.h)
  Progress progress;
};

/// Collective; the report is the same on all ranks. A failed verification does not throw: the report says so, and no output
/// is written. Any other failure throws the same Error on all ranks.
MultiplyReport multiply(Communicator& communicator, const MultiplyOptions& options);
/// The same on an existing context, which saves most of a second for starting NCCL. Ignores `options.backend` and
/// `options.threads`.
MultiplyReport multiply(Context& context, const MultiplyOptions& options);

/// Throws Error(usage) for options that exclude each other and for unknown names. Call it before loading, which may take an
/// hour.
void require_consistent(const MultiplyOptions& options, Backend backend);

}  // namespace shardmat
