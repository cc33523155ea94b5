// Starts a helper program of Shardmat on an open file and takes what it prints, for work that may crash or never end.
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
  bool succeeded = false;  ///< it ended with 0
  bool timed_out = false;  ///< and was killed
  bool too_long = false;   ///< the output was, and it was killed
  int signal = 0;          ///< that ended it; 0 if none did, or if that is not to be known
  std::string output;
  std::string how_it_ended;  ///< "crashed (Segmentation fault)"
};

/// Runs `name` with `input` as its standard input. The program is looked for beside this one, in ../libexec/shardmat from
/// there, and where it was built or installed; the environment variable SHARDMAT_H5CHECK names another place. Uses
/// posix_spawn, which is safe in processes with MPI, CUDA or threads. Throws Error(resources) if it cannot be started.
HelperResult run_helper(const std::string& name, const std::vector<std::string>& arguments, int input,
                        const HelperLimits& limits);

}  // namespace shardmat
