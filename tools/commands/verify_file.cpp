#include <fmt/format.h>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "partition/input_kind.h"
#include "partition/readers/reader.h"
#include "partition/shard/shard_file.h"
#include "tools/cli/command.h"
#include "tools/cli/environment.h"
#include "tools/cli/node_options.h"
#include "tools/cli/progress_bar.h"

namespace shardmat::tools {
namespace {

/// Throws Error(input) for what has no checksums to compare.
void require_shard_file(const std::string& path) {
  const InputKind kind = kind_of_input(path);
  if (kind == InputKind::hdf5) return;
  if (kind == InputKind::generated)
    throw Error(ErrorKind::input, fmt::format("{} is a generator, not a file; there is nothing to verify", path));
  throw Error(
      ErrorKind::input,
      fmt::format("{} is a {} file, which has no checksums; shardmat info {} reads and checks all of it, and shardmat "
                  "partition {} MATRIX.h5 makes a shard file of it",
                  path, reader_of(path).name, path, path));
}

}  // namespace

std::function<int()> add_verify_file(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("verify-file", "Check everything in a shard file: structure, tables, checksums, rows");
  auto path = std::make_shared<std::string>();
  app.add_option("file", *path, "shard file (.h5)")->required();
  app.footer("\nExample:\n  shardmat verify-file bar.h5\n");
  return [path] {
    require_single_process("verify-file");
    require_shard_file(*path);
    const auto file = ShardFile::open(*path);
    file->verify(make_progress_bar());
    const std::string nodes = nodes_text(counts_of(*file));
    fmt::print("{}: all right ({} × {}, {}, {}{}{})\n", *path, human_count(file->rows()), human_count(file->cols()),
               human_count(file->nnz(), "nonzero"), human_count(std::ssize(file->partitions()), "partition"),
               nodes.empty() ? "" : ", ", nodes);
    return 0;
  };
}

}  // namespace shardmat::tools
