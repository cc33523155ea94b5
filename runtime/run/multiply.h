// The whole of `shardmat multiply` as one call: open, load, multiply, verify, iterate, write, report.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/timing/iterate.h"
#include "runtime/source/matrix_source.h"
#include "runtime/run/report.h"
#include "runtime/run/verify.h"

namespace shardmat {

struct MultiplyOptions {
  std::string matrix;            ///< matrix file or generator specification, see open_matrix()
  bool allow_nonfinite = false;  ///< accept NaN and infinity among its values
  LoadOptions load;
  BackendChoice backend = BackendChoice::automatic;
  int threads = 0;           ///< host threads of each rank; 0: its share of the cores of its host
  std::string x = "random";  ///< ones, zeros, random or a file
  std::string y0 = "zeros";  ///< used if beta is not 0
  std::uint64_t seed = 1;
  double alpha = 1, beta = 0;
  Mode mode = Mode::repeat;
  std::int64_t iterations = 10;
  bool graph = true;
  bool verify = false;
  VerifyMode verify_mode = VerifyMode::automatic;
  std::string output;  ///< file for y (power: for the last x), in original row order; empty = none
  Progress progress;
};

/// Collective; the report is the same on all ranks. A failed verification is in the report, not thrown; then nothing is
/// written. Everything else that goes wrong throws the same Error on all ranks.
MultiplyReport multiply(Communicator& communicator, const MultiplyOptions& options);
/// Likewise where ranks have their devices already; starting NCCL takes most of a second. `options.backend` and
/// `options.threads` are not looked at.
MultiplyReport multiply(Context& context, const MultiplyOptions& options);

/// Throws Error(usage) for options that exclude each other and for misspelt names, which should not be found out after an
/// hour of loading.
void require_consistent(const MultiplyOptions& options, Backend backend);

}  // namespace shardmat
