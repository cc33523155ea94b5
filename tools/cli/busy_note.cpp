#include "tools/cli/busy_note.h"

#include <fmt/format.h>

#include "kernels/base/core_wait.h"

namespace shardmat::tools {

std::string busy_note(double share, double seconds, int threads, const std::string& rank) {
  if (threads < 2 || seconds < 1 || share < kBusyShare) return "";
  return fmt::format(
      "note: the {} threads of {} had no core for {:.0f} % of the time, because other processes or ranks use the cores: "
      "times say little, and fewer threads may be faster (OMP_NUM_THREADS=1)\n",
      threads, rank, 100 * share);
}

}  // namespace shardmat::tools
