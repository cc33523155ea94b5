#include "tools/cli/input_matrix.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "kernels/base/print_error.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "partition/files/object_name.h"
#include "partition/files/rank_files.h"
#include "partition/generators/generator.h"
#include "partition/input_kind.h"
#include "partition/readers/reader.h"
#include "tools/cli/progress_bar.h"
#include "tools/cli/setting_options.h"
#include "tools/cli/value_checks.h"

namespace shardmat::tools {

std::string known_suffixes() {
  std::string text = ".h5";
  for (const Reader& reader : readers())
    if (!reader.suffixes.empty()) text.append(" ").append(reader.suffixes);
  return text;
}

void add_input_options(const CommandLine& command, InputChoices& choices) {
  const CommandLine app = command.in(Topic::input);
  std::string names = "shard";
  for (const Reader& reader : readers()) names.append(" ").append(reader.name);
  app.add_option("--input-format", choices.format,
                 "format of the matrix file: " + names + " (default: found by its first bytes, else by its suffix)")
      ->type_name("NAME");
  choices.warn = [app](const Error& what) { print_error("shardmat: warning: {}\n", message_of(what, app)); };
  const auto set_base = [&choices](const std::string& text) { choices.base = text == "0" ? 0 : 1; };
  app.add_option_function("--base", set_base, "with --input-format triplets: number of the first row and column")
      ->check(one_of({"0", "1"}))
      ->type_name("0|1");
  app.add_option("--triangle", choices.triangle,
                 "with --input-format triplets: the triangle of a symmetric matrix that the file holds. both: all entries")
      ->check(one_of({"lower", "upper", "both"}));
  app.add_option("--map", choices.map,
                 "names of the arrays in HDF5 files of ranks (A.%05d.h5, or groups /rank_00000 ...), as "
                 "rowptr=/A/ia,columns=/A/ja,values=/A/a. Triplets have rows=NAME in place of rowptr. start=NAME holds the "
                 "first row of a rank")
      ->type_name("NAMES");
  app.add_flag("--sum-duplicates", choices.sum_duplicates,
               "sum entries that come twice instead of refusing them. In HDF5 files of ranks, only entries that several "
               "ranks have are summed; in hypre's IJ files, all are");
}

Option add_files_option(const CommandLine& app, std::int64_t& files) {
  constexpr int kMost = 99'999;  // of the five digits in their names
  return app.in(Topic::output)
      .add_option("--files", files,
                  "write hypre's NAME.00000 as N files, NAME.00000, NAME.00001 ..., which N ranks of hypre read. Rows are "
                  "divided evenly")
      ->check(whole_number(1, kMost))
      ->type_name("N");
}

namespace {

/// "12.3 MB read in 1.2 s (10 MB/s)" of a file, or of the files that a name stands for.
void say_read(const std::string& input, const HostCsr& matrix, double seconds, std::string_view remark) {
  double bytes = 0;
  std::error_code none;
  const std::string file = split_object_name(input).file;
  if (std::filesystem::is_regular_file(file, none)) bytes = static_cast<double>(std::filesystem::file_size(file, none));
  else
    for (const std::filesystem::path& one : rank_files(file))
      bytes += static_cast<double>(std::filesystem::file_size(one, none));
  fmt::print("{}: {} × {}, {}, {} read in {} ({}/s){}{}\n", input, human_count(matrix.rows), human_count(matrix.cols),
             human_count(matrix.nnz(), "nonzero"), human_bytes(bytes), human_seconds(seconds), human_bytes(bytes / seconds),
             remark.empty() ? "" : ", ", remark);
}

}  // namespace

InputMatrix open_input(const std::string& input, bool allow_nonfinite, bool say, const InputChoices& choices) {
  const InputKind kind = kind_of_input(input, choices);
  if (kind == InputKind::generated) return {make_generator(input)};
  if (kind == InputKind::hdf5 && (!choices.format.empty() || !is_foreign_hdf5(input))) {
    auto file = ShardFile::open(input, allow_nonfinite);
    const ShardFile* const shown = file.get();
    return {std::move(file), shown};
  }
  ReadOptions read;
  read.allow_nonfinite = allow_nonfinite;
  read.progress = make_progress_bar();
  read.choices = choices;
  if (gives_any_rows(input, choices)) return {open_matrix_rows(input, read)};
  const Timer timer;
  MatrixWithUnknowns found = read_matrix_with_unknowns(input, read);
  if (say) say_read(input, found.matrix, timer.seconds(), remark_on(input, choices));
  auto matrix = std::make_shared<const HostCsr>(std::move(found.matrix));
  return {make_memory_source(std::move(matrix), input, std::move(found.unknowns)), nullptr, true};
}

}  // namespace shardmat::tools
