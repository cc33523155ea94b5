#include <fmt/format.h>

#include <algorithm>

#include "partition/files/atomic_file.h"
#include "partition/files/object_name.h"
#include "partition/input_kind.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/environment.h"
#include "tools/cli/input_matrix.h"
#include "tools/cli/progress_bar.h"
#include "tools/cli/report_option.h"
#include "tools/cli/write_report.h"
#include "tools/cli/write_text.h"
#include "tools/commands/matrix_report.h"
#include "tools/commands/spy.h"

namespace shardmat::tools {
namespace {

struct Options {
  std::string input, spy, json;
  std::int64_t spy_size = 800;
  std::int64_t fold_width = 0;
  double bandwidth_gb = 0;
  bool quick = false, stream = false, allow_nonfinite = false;
  InputChoices choices;
};

/// What a file holds that has several objects, or one with a name; nothing of any other input.
std::vector<FileObject> objects_of(const Options& options) {
  const InputKind kind = kind_of_input(options.input, options.choices);
  const bool hdf5 = kind == InputKind::hdf5 && options.choices.format.empty() && is_foreign_hdf5(options.input);
  if (kind != InputKind::foreign && !hdf5) return {};
  std::vector<FileObject> objects = list_objects(split_object_name(options.input).file, options.choices);
  return objects.size() == 1 && objects.front().name.empty() ? std::vector<FileObject>() : objects;
}

/// True for a file with no matrix or with several, none of which is named: then its objects are listed, and none is
/// described.
bool lists_only(const std::vector<FileObject>& objects, const Options& options) {
  return !objects.empty() && split_object_name(options.input).object.empty() && options.json.empty() &&
         std::count_if(objects.begin(), objects.end(), [](const FileObject& object) { return object.matrix; }) != 1;
}

void inform(const Options& options) {
  require_spared({{options.input, "the matrix"}}, {options.spy, options.json});
  check_report_file(options.json);
  if (!options.spy.empty()) {
    require_png();
    check_writable(options.spy);
  }
  const std::vector<FileObject> objects = objects_of(options);
  if (lists_only(objects, options)) return write_text("-", objects_text(split_object_name(options.input).file, objects));
  const InputMatrix input = open_input(options.input, options.allow_nonfinite, false, options.choices);
  std::optional<Spy> spy;
  ReportOptions report;
  report.quick = options.quick;
  report.stream = options.stream;
  report.fold_width = options.fold_width;
  report.bandwidth = 1e9 * options.bandwidth_gb;
  report.progress = make_progress_bar();
  if (!options.spy.empty()) {
    spy.emplace(input.rows->rows(), input.rows->cols(), options.spy_size);
    report.visit = [&](std::int64_t first_row, const CsrView& slice) { spy->add(first_row, slice); };
  }
  MatrixReport found = report_matrix(input, report);
  found.objects = objects;
  if (spy) spy->write_png(options.spy);
  if (options.json != "-") write_text("-", to_text(found));
  if (!options.json.empty()) write_report(options.json, to_json(found));
}

}  // namespace

std::function<int()> add_info(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("info", "Describe a matrix: row lengths, pattern, locality, storage formats, partitions");
  auto options = std::make_shared<Options>();
  app.add_option("matrix", options->input, "matrix file (" + known_suffixes() + ") or generator, e.g. elasticity:n=20")
      ->required();
  add_json_option(app, options->json);
  const Option quick = app.in(Topic::input)
                           .add_flag("--quick", options->quick, "read no entries: report only row lengths and partitions")
                           ->common();
  app.in(Topic::input)
      .add_flag("--stream", options->stream,
                "read the matrix in slices even if it fits the memory. Symmetry is then sampled, and figures that need the "
                "whole matrix are left out");
  app.in(Topic::computation)
      .add_option("--bandwidth", options->bandwidth_gb,
                  "predict times for a memory of X GB/s (default: the measured copy bandwidth)")
      ->check(positive_number())
      ->common();
  app.in(Topic::computation)
      .add_option("--fold-width", options->fold_width,
                  "fold rows into pieces of N nonzeros for the figures of locality (default: the mean row length)")
      ->check(whole_number(1, 1'000'000));
  app.in(Topic::output)
      .add_option("--spy", options->spy,
                  "draw the pattern of nonzeros to FILE (.png): the darker a pixel, the more nonzeros")
      ->type_name("FILE")
      ->check(picture_name())
      ->excludes(quick)
      ->common();
  app.in(Topic::output)
      .add_option("--spy-size", options->spy_size, "pixels of the picture's longer side")
      ->check(whole_number(16, 8192))
      ->capture_default_str();
  add_input_options(app, options->choices);
  app.in(Topic::input).add_flag("--allow-nonfinite", options->allow_nonfinite, "accept NaN and infinity among the values");
  app.footer(
      "Predicted times assume that a product moves the stored matrix, x and y once each. plot_matrix.py draws charts of row "
      "and run lengths from the JSON report.\n"
      "\nExamples:\n  shardmat info bar.h5\n  shardmat info bar.mtx.gz --spy bar.png\n"
      "  shardmat info elasticity:n=20 --bandwidth 4200\n  shardmat info bar.h5 --quick --json | jq .partitions\n");
  return [options] {
    require_single_process("info");
    inform(*options);
    return 0;
  };
}

}  // namespace shardmat::tools
