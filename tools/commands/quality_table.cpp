#include "tools/commands/quality_table.h"

#include <fmt/format.h>

#include "kernels/base/text.h"

namespace shardmat::tools {

std::string quality_table(std::span<const StoredPartition> partitions) {
  if (partitions.empty()) return {};
  std::string text =
      "Partitions            nonzeros a part                     rows a part                  entries of x received by a "
      "part\n"
      "  method  parts          min         mean          max       min       max  imbalance    halo max   all-gather  "
      "ratio\n";
  for (const StoredPartition& p : partitions) {
    const PartitionQuality& q = p.quality;
    text += fmt::format(
        "  {:<6} {:>6} {:>12} {:>12} {:>12} {:>9} {:>9} {:>10.4f} {:>11} {:>12} {:>6}\n", p.partition.method,
        p.partition.parts(), human_count(q.nnz_min), human_count(static_cast<std::int64_t>(q.nnz_mean + 0.5)),
        human_count(q.nnz_max), human_count(q.rows_min), human_count(q.rows_max), q.imbalance, human_count(q.halo_max),
        human_count(q.allgather_max),
        q.allgather_max > 0
            ? fmt::format("{:.1f} %", 100 * static_cast<double>(q.halo_max) / static_cast<double>(q.allgather_max))
            : "-");
  }
  return text;
}

}  // namespace shardmat::tools
