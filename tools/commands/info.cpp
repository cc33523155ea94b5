#include <fmt/format.h>

#include "partition/atomic_file.h"
#include "tools/checks.h"
#include "tools/command.h"
#include "tools/commands/input_matrix.h"
#include "tools/commands/matrix_report.h"
#include "tools/environment.h"
#include "tools/progress_bar.h"
#include "tools/spy.h"
#include "tools/write_text.h"

namespace shardmat::tools {
namespace {

struct Options {
  std::string input, spy;
  std::int64_t spy_size = 800;
  double bandwidth_gb = 0;
  bool json = false, quick = false, stream = false, allow_nonfinite = false;
};

void inform(const Options& options) {
  if (!options.spy.empty()) {
    require_png();
    check_writable(options.spy);
  }
  const InputMatrix input = open_input(options.input, options.allow_nonfinite, false);
  std::optional<Spy> spy;
  ReportOptions report;
  report.quick = options.quick;
  report.stream = options.stream;
  report.bandwidth = 1e9 * options.bandwidth_gb;
  report.progress = make_progress_bar();
  if (!options.spy.empty()) {
    spy.emplace(input.rows->rows(), input.rows->cols(), options.spy_size);
    report.visit = [&](std::int64_t first_row, const CsrView& slice) { spy->add(first_row, slice); };
  }
  const MatrixReport found = report_matrix(input, report);
  if (spy) spy->write_png(options.spy);
  write_text("-", options.json ? to_json(found) : to_text(found));
}

}  // namespace

std::function<int()> add_info(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("info", "What a matrix is like: row lengths, pattern, locality, storage formats, partitions");
  auto options = std::make_shared<Options>();
  app->add_option("matrix", options->input, "matrix file (" + known_suffixes() + ") or generator, e.g. elasticity:n=20")
      ->required();
  app->add_flag("--json", options->json, "print JSON instead of text");
  auto* quick = app->add_flag("--quick", options->quick, "only what the row lengths tell, and partitions: no entry is read");
  app->add_flag(
      "--stream", options->stream,
      "read the matrix in slices even if it fits into memory; what needs all of it is left out, symmetry is sampled");
  app->add_option("--bandwidth", options->bandwidth_gb,
                  "GB/s for predicted times (default: the copy bandwidth measured here)")
      ->check(positive_number());
  app->add_option("--spy", options->spy, "picture of the pattern to write (.png): the darker, the more nonzeros in a pixel")
      ->check(picture_name())
      ->excludes(quick);
  app->add_option("--spy-size", options->spy_size, "pixels of its longer side")
      ->check(whole_number(16, 8192))
      ->capture_default_str();
  app->add_flag("--allow-nonfinite", options->allow_nonfinite, "accept NaN and infinity among the values");
  app->footer(
      "\nPredicted times are those of the bytes that the product moves at least: the stored matrix, x and y once.\n"
      "Charts of row and run lengths: tools/plot_matrix.py draws them from the JSON.\n"
      "\nExamples:\n  shardmat info bar.h5\n  shardmat info bar.mtx.gz --spy bar.png\n"
      "  shardmat info elasticity:n=20 --bandwidth 4200\n  shardmat info bar.h5 --quick --json | jq .partitions\n");
  return [options] {
    require_single_process("info");
    inform(*options);
    return 0;
  };
}

}  // namespace shardmat::tools
