#include "tools/commands/write_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "partition/atomic_file.h"
#include "tools/checks.h"
#include "tools/commands/quality_table.h"
#include "tools/peak_memory.h"
#include "tools/progress_bar.h"

namespace shardmat::tools {
namespace {

constexpr std::int64_t kMostParts = 1'000'000;

/// This process's command line as it was typed, for the people who find the file.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

}  // namespace

void add_file_options(CLI::App& app, FileOptions& options) {
  app.add_option("--parts", options.parts,
                 "store partitions for these numbers of ranks, e.g. 2,4,8 (any other is computed when loading)")
      ->delimiter(',')
      ->check(whole_number(1, kMostParts));
  std::vector<std::string> methods;
  for (const Partitioner& p : partitioners()) methods.emplace_back(p.name);
  app.add_option("--method", options.method, "what the parts balance")->check(CLI::IsMember(methods))->capture_default_str();
  app.add_option(
         "--sort", options.sort,
         "rows by descending length: none, local (inside each part, done by each rank when it loads) or global (whole "
         "matrix, permutation stored)")
      ->check(CLI::IsMember({"none", "local", "global"}))
      ->capture_default_str();
  app.add_option(
         "--reorder", options.reorder,
         "rows and columns of a square matrix so that parts need less of each other: none, rcm (reverse "
         "Cuthill-McKee: entries lie near the diagonal) or graph (METIS: rows of a part share columns, for the largest "
         "of --parts and its halves); permutation stored")
      ->check(CLI::IsMember({"none", "rcm", "graph"}))
      ->capture_default_str();
}

void check_file_options(const FileOptions& options) {
  if (options.reorder != "none" && options.sort == "global")
    throw Error(ErrorKind::usage, fmt::format("--reorder {} and --sort global both order the whole matrix; give one of them",
                                              options.reorder));
  check_writable(options.output);
}

void write_file(const RowSource& source, const FileOptions& options, bool allow_nonfinite, const PeakMemory& peak) {
  const Timer timer;
  WriteOptions write;
  write.how = command_line();
  write.parts = options.parts;
  write.method = options.method;
  write.order = options.reorder == "rcm"     ? RowOrder::rcm
                : options.reorder == "graph" ? RowOrder::graph
                : options.sort == "global"   ? RowOrder::by_length
                                             : RowOrder::as_source;
  write.sort_local = options.sort == "local";
  write.allow_nonfinite = allow_nonfinite;
  write.progress = make_progress_bar();
  const std::vector<StoredPartition> partitions = write_shard_file(options.output, source, write);
  const double seconds = timer.seconds();
  const auto bytes = static_cast<double>(std::filesystem::file_size(options.output));
  fmt::print("{}: {} × {}, {} in {}, {} peak memory (mapped files not counted)\n", options.output,
             human_count(source.rows()), human_count(source.cols()), human_bytes(bytes), human_seconds(seconds),
             human_bytes(static_cast<double>(peak.bytes())));
  const std::string table = quality_table(partitions);
  if (!table.empty()) fmt::print("\n{}", table);
}

}  // namespace shardmat::tools
