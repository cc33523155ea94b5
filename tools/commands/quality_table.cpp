#include "tools/commands/quality_table.h"

#include <fmt/format.h>

#include "kernels/base/text.h"

namespace shardmat::tools {

std::string quality_table(std::span<const StoredPartition> partitions) {
  if (partitions.empty()) return {};
  const auto known = [](std::int64_t count) { return count < 0 ? std::string("-") : human_count(count); };
  std::string text =
      "Partitions            nonzeros a part                     rows a part             entries of x received by a part\n"
      "  method  parts         mean          max  imbalance       min        max    halo max of all-gather  from parts  "
      "boundary\n";
  for (const StoredPartition& p : partitions) {
    const PartitionQuality& q = p.quality;
    text += fmt::format(
        "  {:<6} {:>6} {:>12} {:>12} {:>10.4f} {:>9} {:>10} {:>11} {:>13} {:>11} {:>9}\n", p.partition.method,
        p.partition.parts(), human_count(static_cast<std::int64_t>(q.nnz_mean + 0.5)), human_count(q.nnz_max), q.imbalance,
        human_count(q.rows_min), human_count(q.rows_max), human_count(q.halo_max),
        q.allgather_max > 0
            ? fmt::format("{:.1f} %", 100 * static_cast<double>(q.halo_max) / static_cast<double>(q.allgather_max))
            : "-",
        known(q.neighbours_max),
        q.boundary_nnz_max < 0 || q.nnz_max == 0
            ? "-"
            : fmt::format("{:.1f} %", 100 * static_cast<double>(q.boundary_nnz_max) / static_cast<double>(q.nnz_max)));
  }
  return text;
}

}  // namespace shardmat::tools
