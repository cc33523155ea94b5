#include <memory>

#include "tools/command.h"
#include "tools/commands/input_matrix.h"
#include "tools/commands/write_file.h"
#include "tools/environment.h"

namespace shardmat::tools {
namespace {

struct Options {
  std::string input;
  FileOptions file;
  bool allow_nonfinite = false;
};

}  // namespace

std::function<int()> add_partition(CLI::App& program) {
  CLI::App* app = program.add_subcommand("partition", "Turn a matrix file into a shard file with balanced row partitions");
  auto options = std::make_shared<Options>();
  app->add_option("input", options->input, "matrix file (" + known_suffixes() + ")")->required();
  add_file_options(*app, options->file);
  app->add_flag("--allow-nonfinite", options->allow_nonfinite, "accept NaN and infinity among the values");
  app->footer(
      "\nExamples:\n  shardmat partition bar.mtx.gz bar.h5 --parts 2,4,8\n"
      "  shardmat partition bar.mtx bar.h5 --parts 4 --sort local\n"
      "  shardmat partition bar.h5 sorted.h5 --parts 4 --sort global\n"
      "  shardmat partition bar.mtx near.h5 --parts 4 --reorder graph\n"
      "  shardmat partition bar.mtx best.h5 --parts 2,4,8 --reorder auto\n"
      "  shardmat partition bar.mtx --parts 4,8 --compare\n");
  return [options] {
    require_single_process("partition");
    const PeakMemory peak;
    check_file_options(options->file);
    const auto source = open_input(options->input, options->allow_nonfinite, true).rows;
    write_file(*source, options->file, options->allow_nonfinite, peak);
    return 0;
  };
}

}  // namespace shardmat::tools
