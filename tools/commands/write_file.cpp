#include "tools/commands/write_file.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "tools/checks.h"
#include "tools/commands/quality_table.h"
#include "tools/progress_bar.h"

namespace shardmat::tools {
namespace {

constexpr std::int64_t kMostParts = 1'000'000;

}  // namespace

void add_file_options(CLI::App& app, FileOptions& options) {
  app.add_option("--parts", options.parts, "store partitions for these numbers of ranks, e.g. 2,4,8 (any other is computed when loading)")
      ->delimiter(',')
      ->check(whole_number(1, kMostParts));
  std::vector<std::string> methods;
  for (const Partitioner& p : partitioners()) methods.emplace_back(p.name);
  app.add_option("--method", options.method, "what the parts balance")->check(CLI::IsMember(methods))->capture_default_str();
  app.add_option("--sort", options.sort,
                 "rows by descending length: none, local (inside each part, done by each rank when it loads) or global (whole "
                 "matrix, permutation stored)")
      ->check(CLI::IsMember({"none", "local", "global"}))
      ->capture_default_str();
}

void write_file(const RowSource& source, const FileOptions& options, bool allow_nonfinite) {
  const auto start = std::chrono::steady_clock::now();
  WriteOptions write;
  write.how = source.name();
  write.parts = options.parts;
  write.method = options.method;
  write.sort_global = options.sort == "global";
  write.sort_local = options.sort == "local";
  write.allow_nonfinite = allow_nonfinite;
  write.progress = make_progress_bar();
  const std::vector<StoredPartition> partitions = write_shard_file(options.output, source, write);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto bytes = static_cast<double>(std::filesystem::file_size(options.output));
  fmt::print("{}: {} × {}, {} in {}, {} peak memory\n", options.output, human_count(source.rows()), human_count(source.cols()),
             human_bytes(bytes), human_seconds(seconds), human_bytes(static_cast<double>(peak_host_memory())));
  const std::string table = quality_table(partitions);
  if (!table.empty()) fmt::print("\n{}", table);
}

}  // namespace shardmat::tools
