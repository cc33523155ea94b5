// Runs a helper program of Shardmat on an open file and returns its output, for work that may crash or never end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardmat {

struct HelperLimits {
  double seconds;
  std::int64_t output_bytes;
};

struct HelperResult {
  bool succeeded = false;  ///< the helper ended with exit code 0
  bool timed_out = false;  ///< the helper was killed after its time limit
  bool too_long = false;   ///< the helper was killed because its output was too long
  int signal = 0;          ///< the signal that ended the helper; 0 if none, or if unknown
  std::string output;
  std::string how_it_ended;  ///< "crashed (Segmentation fault)"
};

/// Runs `name` with `input` as its standard input. Looks for the program in the directory of this program, in
/// ../libexec/shardmat from there, and where it was built or installed; the environment variable SHARDMAT_H5CHECK names
/// another place. Uses posix_spawn, which is safe in processes with MPI, CUDA or threads. Throws Error(resources) if the
/// program cannot be started.
HelperResult run_helper(const std::string& name, const std::vector<std::string>& arguments, int input,
                        const HelperLimits& limits);

}  // namespace shardmat
