#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/base/text.h"
#include "kernels/matrix/statistics.h"
#include "partition/shard_file.h"
#include "tools/command.h"
#include "tools/commands/quality_table.h"
#include "tools/environment.h"

namespace shardmat::tools {
namespace {

struct Options {
  std::string path;
  bool json = false;
};

RowStatistics statistics_of(const RowSource& source) {
  const HostVector<std::int64_t> lengths = source.row_lengths(0, source.rows());
  HostVector<std::int64_t> row_ptr(lengths.size() + 1);
  row_ptr[0] = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) row_ptr[i + 1] = row_ptr[i] + lengths[i];
  return row_statistics(row_ptr);
}

std::string to_json(const ShardFile& file, const RowStatistics& rows) {
  nlohmann::ordered_json partitions = nlohmann::ordered_json::array();
  for (const StoredPartition& p : file.partitions()) {
    const PartitionQuality& q = p.quality;
    partitions.push_back({{"method", p.partition.method},
                          {"parts", p.partition.parts()},
                          {"row_starts", p.partition.row_starts},
                          {"nnz_min", q.nnz_min},
                          {"nnz_max", q.nnz_max},
                          {"rows_min", q.rows_min},
                          {"rows_max", q.rows_max},
                          {"imbalance", q.imbalance},
                          {"halo_max", q.halo_max},
                          {"halo_total", q.halo_total},
                          {"allgather_max", q.allgather_max},
                          {"allgather_total", q.allgather_total}});
  }
  const nlohmann::ordered_json json{{"name", file.name()},
                                    {"how", file.how()},
                                    {"fingerprint", fmt::format("{:016x}", file.fingerprint())},
                                    {"rows", file.rows()},
                                    {"cols", file.cols()},
                                    {"nnz", file.nnz()},
                                    {"permuted", file.permuted()},
                                    {"sort_local", file.wants_local_sort()},
                                    {"row_lengths",
                                     {{"min", rows.min_row}, {"mean", rows.mean_row}, {"max", rows.max_row},
                                      {"stddev", rows.stddev_row}, {"empty", rows.empty_rows}}},
                                    {"partitions", partitions}};
  return json.dump(2) + "\n";
}

std::string to_text(const ShardFile& file, const RowStatistics& rows) {
  std::string text = fmt::format("{}\n", file.name());
  text += fmt::format("  shape        {} × {}, {} nonzeros\n", human_count(file.rows()), human_count(file.cols()), human_count(file.nnz()));
  text += fmt::format("  row lengths  {} … {}, mean {:.2f}, standard deviation {:.2f}, {} empty\n", rows.min_row, rows.max_row,
                      rows.mean_row, rows.stddev_row, human_count(rows.empty_rows));
  text += fmt::format("  row order    {}{}\n", file.permuted() ? "sorted by length, permutation stored" : "original",
                      file.wants_local_sort() ? "; each rank sorts its part by length when it loads" : "");
  if (!file.how().empty()) text += fmt::format("  made by      {}\n", file.how());
  text += fmt::format("  fingerprint  {:016x}\n", file.fingerprint());
  const std::string table = quality_table(file.partitions());
  return text + (table.empty() ? "  partitions   none stored; any number of parts is computed when loading\n" : "\n" + table);
}

}  // namespace

std::function<int()> add_info(CLI::App& program) {
  CLI::App* app = program.add_subcommand("info", "What a shard file holds: shape, row lengths, partitions and their quality");
  auto options = std::make_shared<Options>();
  app->add_option("file", options->path, "shard file (.h5)")->required();
  app->add_flag("--json", options->json, "print JSON instead of text");
  app->footer("\nExamples:\n  shardmat info bar.h5\n  shardmat info bar.h5 --json | jq .partitions\n");
  return [options] {
    require_single_process("info");
    const auto file = ShardFile::open(options->path);
    const RowStatistics rows = statistics_of(*file);
    fmt::print("{}", options->json ? to_json(*file, rows) : to_text(*file, rows));
    return 0;
  };
}

}  // namespace shardmat::tools
