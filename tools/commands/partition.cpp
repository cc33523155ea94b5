#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "partition/atomic_file.h"
#include "partition/generators/generator.h"
#include "partition/readers/reader.h"
#include "tools/checks.h"
#include "tools/command.h"
#include "tools/commands/write_file.h"
#include "tools/environment.h"
#include "tools/progress_bar.h"

namespace shardmat::tools {
namespace {

struct Options {
  std::string input;
  FileOptions file;
  bool allow_nonfinite = false;
};

/// A shard file is streamed; other programs' files are read whole.
std::unique_ptr<RowSource> open_source(const Options& options) {
  if (is_generator_specification(options.input) && !std::filesystem::exists(options.input))
    return make_generator(options.input);
  const std::string suffix = std::filesystem::path(options.input).extension().string();
  if (suffix == ".h5" || suffix == ".hdf5") return ShardFile::open(options.input, options.allow_nonfinite);
  ReadOptions read;
  read.allow_nonfinite = options.allow_nonfinite;
  read.progress = make_progress_bar();
  const Timer timer;
  auto matrix = std::make_shared<const HostCsr>(read_matrix(options.input, read));
  const double seconds = timer.seconds();
  const auto bytes = static_cast<double>(std::filesystem::file_size(options.input));
  fmt::print("{}: {} × {}, {} nonzeros, {} read in {} ({}/s)\n", options.input, human_count(matrix->rows), human_count(matrix->cols),
             human_count(matrix->nnz()), human_bytes(bytes), human_seconds(seconds), human_bytes(bytes / seconds));
  return make_memory_source(std::move(matrix), options.input);
}

std::string known_suffixes() {
  std::string text = ".h5";
  for (const Reader& reader : readers()) text += " " + std::string(reader.suffixes);
  return text;
}

}  // namespace

std::function<int()> add_partition(CLI::App& program) {
  CLI::App* app = program.add_subcommand("partition", "Turn a matrix file into a shard file with balanced row partitions");
  auto options = std::make_shared<Options>();
  app->add_option("input", options->input, "matrix file (" + known_suffixes() + ")")->required();
  app->add_option("output", options->file.output, "shard file to write (.h5)")->required()->check(shard_file_name());
  add_file_options(*app, options->file);
  app->add_flag("--allow-nonfinite", options->allow_nonfinite, "accept NaN and infinity among the values");
  app->footer("\nExamples:\n  shardmat partition bar.mtx.gz bar.h5 --parts 2,4,8\n"
              "  shardmat partition bar.mtx bar.h5 --parts 4 --sort local\n"
              "  shardmat partition bar.h5 sorted.h5 --parts 4 --sort global\n");
  return [options] {
    require_single_process("partition");
    const PeakMemory peak;
    check_writable(options->file.output);  // before reading for minutes
    const auto source = open_source(*options);
    write_file(*source, options->file, options->allow_nonfinite, peak);
    return 0;
  };
}

}  // namespace shardmat::tools
