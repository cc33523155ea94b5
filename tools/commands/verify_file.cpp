#include <fmt/format.h>

#include "kernels/base/text.h"
#include "partition/shard_file.h"
#include "tools/command.h"
#include "tools/environment.h"
#include "tools/progress_bar.h"

namespace shardmat::tools {

std::function<int()> add_verify_file(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("verify-file", "Check everything in a shard file: structure, tables, checksums, rows");
  auto path = std::make_shared<std::string>();
  app.add_option("file", *path, "shard file (.h5)")->required();
  app.footer("\nExample:\n  shardmat verify-file bar.h5\n");
  return [path] {
    require_single_process("verify-file");
    const auto file = ShardFile::open(*path);
    file->verify(make_progress_bar());
    fmt::print("{}: all right ({} × {}, {} nonzeros, {} partitions)\n", *path, human_count(file->rows()),
               human_count(file->cols()), human_count(file->nnz()), file->partitions().size());
    return 0;
  };
}

}  // namespace shardmat::tools
