#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <memory>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "kernels/choose/registry.h"
#include "partition/complex_equivalent.h"
#include "partition/files/atomic_files.h"
#include "partition/files/rank_files.h"
#include "partition/new_values.h"
#include "partition/readers/hdf5_kind.h"
#include "partition/readers/replaceable.h"
#include "partition/shard/shard_file.h"
#include "partition/source/unknowns.h"
#include "partition/vectors/vector_file.h"
#include "partition/writers/writer.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/environment.h"
#include "tools/cli/input_matrix.h"
#include "tools/cli/progress_bar.h"
#include "tools/cli/report_option.h"
#include "tools/commands/write_file.h"

namespace shardmat::tools {
namespace {

struct Options {
  std::string input, output, format, values, complex, type = "f64", backend = "auto";
  std::int64_t files = 1;
  bool allow_nonfinite = false, force = false;
  InputChoices choices;
};

std::string known_outputs() {
  std::string text = ".h5";
  for (const Writer& writer : writers()) text.append(" ").append(writer.suffix);
  return text;
}

void check_output(const Options& options) {
  check_file_count(options.output, options.files);
  check_writable(options.output);
  if (!options.force) require_replaceable(options.output, Output::matrix, "", options.files);
}

/// What was written, and how fast.
void print_written(const Options& options, const RowSource& source, double seconds) {
  const auto files = rank_file_names(options.output, options.files);
  double bytes = 0;
  std::error_code none;  // of a pipe
  for (auto file = files.begin(); file != files.end() && !none; ++file)
    bytes += static_cast<double>(std::filesystem::file_size(*file, none));
  fmt::print("{}{}: {} × {}, {}written in {}{}\n", options.output,
             files.size() == 1 ? "" : fmt::format(" to {}", files.back().string()), human_count(source.rows()),
             human_count(source.cols()), none ? "" : human_bytes(bytes) + " ", human_seconds(seconds),
             none ? "" : fmt::format(" ({}/s)", human_bytes(bytes / seconds)));
}

/// The list of unknowns takes the place of none but an older list, and never of the one that the input needs.
void check_unknowns_file(const Options& options, const std::string& list) {
  check_writable(list);
  const std::string needed = std::filesystem::path(options.input).replace_extension(".dof").string();
  require_spared({{options.input, "the matrix"}, {needed, "the list of the matrix"}}, {list});
  if (!options.force) require_replaceable(list, Output::unknowns);
}

void convert_file(const Options& options) {
  const PeakMemory peak;
  const bool shard = has_hdf5_suffix(options.output);
  if (!shard) find_writer(options.output);
  check_output(options);  // before reading for minutes
  std::unique_ptr<RowSource> source;
  if (options.complex.empty()) {
    source = open_input(options.input, options.allow_nonfinite, true, options.choices).rows;
  } else {
    ReadOptions read;
    read.allow_nonfinite = options.allow_nonfinite;
    read.progress = make_progress_bar();
    read.choices = options.choices;
    source = real_equivalent(options.input, read);
  }
  if (shard) {
    FileOptions file;
    file.output = options.output;
    return write_file(*source, file, options.allow_nonfinite, peak);
  }
  const std::string list = unknowns_file(options.output).string();
  const bool has_unknowns = source->unknowns() != nullptr;
  if (has_unknowns) check_unknowns_file(options, list);
  const Timer timer;
  write_matrix(options.output, *source, make_progress_bar(), options.files);
  print_written(options, *source, timer.seconds());
  std::error_code none;
  if (has_unknowns) fmt::print("{}: node.dof of each row, {} lines\n", list, human_count(source->rows()));
  else if (std::filesystem::exists(list, none))
    fmt::print("{}: not of this matrix, which names no nodes; remove it\n", list);
}

/// Vectors of the real equivalent of a complex system.
void convert_vector(const Options& options) {
  const bool as_real = options.complex == "as-real";
  if (!options.force) require_replaceable(options.output, Output::vector);
  if (as_real) check_vector_writable(options.output);
  else check_writable(options.output);
  const Timer timer;
  const std::int64_t n = (as_real ? write_real_vector : write_complex_vector)(options.input, options.output);
  fmt::print("{}: {} numbers a column, {}, written in {}\n", options.output, human_count(as_real ? 2 * n : n),
             as_real ? "real and imaginary parts in turn" : "complex", human_seconds(timer.seconds()));
}

void convert_complex(const Options& options) {
  if (options.complex == "from-real") return convert_vector(options);
  if (is_dense_file(options.input)) return convert_vector(options);
  convert_file(options);
}

void convert_values(const Options& options) {
  if (!has_hdf5_suffix(options.input) || !has_hdf5_suffix(options.output))
    throw Error(ErrorKind::usage,
                "new values are for a shard file: the input and the output must end in .h5. shardmat partition makes a "
                "shard file of "
                "any other",
                "values");
  check_output(options);
  NewValuesOptions values;
  values.how = command_line();
  values.allow_nonfinite = options.allow_nonfinite;
  values.progress = make_progress_bar();
  const Timer timer;
  write_new_values(options.output, options.input, options.values, values);
  fmt::print("{}: the matrix of {} with the values of {}, written in {}\n", options.output, options.input, options.values,
             human_seconds(timer.seconds()));
}

/// One line: what the matrix is in this format, or why it is not. With `must`, the reason is thrown instead.
void convert_to(const Format& format, ConversionInput& input, bool must) {
  try {
    const Policy layout = format.layouts(input).front();
    const Timer timer;
    const auto storage = store(format, input, layout);
    input.stream().synchronize();
    const double seconds = timer.seconds();
    const auto bytes = static_cast<double>(storage->bytes), nnz = static_cast<double>(storage->nnz);
    const auto entries = nnz * static_cast<double>(4 + input.value_bytes());
    fmt::print("  {:<12}  {:>10}  {:>9}  {:>12}  {:>10}  {}\n", format.name, human_bytes(bytes),
               nnz > 0 ? fmt::format("{:.2f} B", bytes / nnz) : "-", nnz > 0 ? human_change(bytes / entries - 1) : "-",
               human_seconds(seconds), layout.text());
  } catch (const Error& error) {
    if (must || error.kind() == ErrorKind::internal) throw;
    fmt::print("  {:<12}  refused: {}\n", format.name, error.what());
  }
}

const Format& named_format(const std::string& wanted) {
  std::vector<std::string> names{"all"};
  for (const Format& format : formats()) {
    if (format.name == wanted) return format;
    names.emplace_back(format.name);
  }
  const std::string near = nearest(wanted, names);
  throw Error(ErrorKind::usage,
              fmt::format("there is no format '{}'{}; choose {}", wanted,
                          near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near), join_choices(names)));
}

Device device_for(const std::string& backend) {
  if (backend == "host" || (backend == "auto" && cuda_device_count() == 0)) return {};
  if (cuda_device_count() == 0) throw Error(ErrorKind::resources, why_no_cuda_device(), "backend=host");
  return {Backend::cuda, 0};
}

void convert_storage(const Options& options) {
  const Format* const only = options.format == "all" ? nullptr : &named_format(options.format);
  const ValueType type = parse_value_type(options.type);
  Stream stream(device_for(options.backend));
  const InputMatrix matrix = open_input(options.input, options.allow_nonfinite, true, options.choices);
  const RowSource& source = *matrix.rows;
  if (!matrix.in_memory)
    require_host_memory(16 * read_row_pointers(source).back() + 8 * source.rows(), "the matrix on the host");
  if (source.cols() > std::numeric_limits<std::int32_t>::max())
    throw Error(ErrorKind::input,
                fmt::format("{}: it has {} columns; a storage format holds less than 2^31, as one rank's part of it may",
                            source.name(), human_count(source.cols())));
  source.visit_rows(0, source.rows(), [&](const CsrView& all) {
    ConversionInput input(all, type, stream);
    fmt::print("{} in {} on {}\n  {:<12}  {:>10}  {:>9}  {:>12}  {:>10}  {}\n", source.name(), options.type,
               properties(stream.device()).name, "format", "bytes", "a nonzero", "over entries", "converted", "layout");
    if (only != nullptr) return convert_to(*only, input, true);
    for (const Format& format : formats()) convert_to(format, input, false);
  });
}

/// What --help says behind the options.
std::string footer() {
  std::string names;
  for (const Format& f : formats()) names += fmt::format("  {:<12}  {}\n", f.name, f.help);
  return "\nStorage formats:\n" + names +
         "The column \"over entries\" shows the memory for pointers and padding: all bytes but a value and a 32-bit column "
         "for "
         "each nonzero.\n"
         "\n--values takes a vector (.npy, FILE.h5:/DATASET, .mtx array) with a value for each nonzero: row after row of "
         "the matrix in its original order, columns ascending. SciPy's CSR matrix with sorted indices has them in `data`. "
         "This "
         "order also holds for files made with --reorder or --sort global. Or --values takes a matrix file with the same "
         "nonzeros (.mtx, .npz, .h5). If the values of a shard file were changed on purpose, FILE.h5:/values takes them as "
         "they are.\n"
         "\nThe nodes and degrees of freedom of an Abaqus or CalculiX matrix go with it. A shard file has them as "
         "/shardmat/unknowns: two integers for each row. Beside any other output, OUTPUT.dof is written: a line node.dof "
         "for "
         "each row, as in CalculiX's .dof files.\n"
         "\n--complex as-real turns each value a + ib of a complex matrix into the block [a -b; b a], and each number of a "
         "vector "
         "into its real and imaginary part, one behind the other. Rows and columns become twice as many. Products and "
         "solvers "
         "then find nodes of two unknowns (--node-block-size 2). Matrices come from Matrix Market, .npz, Binsparse and .mat "
         "files "
         "of versions 5 to 7.\n"
         "\nExamples:\n  shardmat convert bar.mtx.gz bar.npz\n  shardmat convert bar.h5 bar.mtx\n"
         "  shardmat convert job.sti K.npz                       # and K.npz.dof\n"
         "  shardmat convert bar.h5 IJ.bar.00000 --files 4\n"
         "  shardmat convert elasticity:n=20 --format all --type f32\n"
         "  shardmat convert bar.h5 new.h5 --values new.npy\n"
         "  shardmat convert --complex as-real waves.npz waves.h5\n  shardmat convert --complex as-real b.npy b_real.npy\n"
         "  shardmat convert --complex from-real x_real.npy x.npy\n";
}

}  // namespace

std::function<int()> add_convert(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("convert", "Turn a matrix file into another kind of file, or try the storage formats");
  auto options = std::make_shared<Options>();
  app.add_option("input", options->input, "matrix file (" + known_suffixes() + ") or generator, e.g. elasticity:n=20")
      ->required();
  const Option output =
      app.add_option("output", options->output, "file to write (" + known_outputs() + ")")->check(output_name());
  const Option format =
      app.in(Topic::computation)
          .add_option("--format", options->format,
                      "write no file. Convert into this storage format (see below), or into all, and print bytes and time")
          ->common();
  app.in(Topic::input)
      .add_option("--type", options->type, "type of the values, with --format")
      ->check(one_of({"f32", "f64"}))
      ->capture_default_str();
  add_backend_option(app, options->backend, "where to convert with --format; auto takes a GPU if there is one");
  add_input_options(app, options->choices);
  add_files_option(app, options->files).excludes(format);
  app.in(Topic::input)
      .add_flag("--allow-nonfinite", options->allow_nonfinite, "accept NaN and infinity among the values")
      ->common();
  app.in(Topic::output)
      .add_flag("--force", options->force, "replace the output file even if it holds something other than a matrix")
      ->common();
  app.in(Topic::input)
      .add_option(
          "--values", options->values,
          "write a shard file (.h5) with the values of FILE. Nonzeros, order, permutation and partitions are those of "
          "the input. See below")
      ->check(output_name())
      ->type_name("FILE")
      ->excludes(format)
      ->common();
  app.in(Topic::computation)
      .add_option(
          "--complex", options->complex,
          "as-real: write the real equivalent of a complex matrix, with a 2 x 2 block for each value, or of a complex "
          "vector (.npy, .mtx). from-real: write such a vector as complex numbers again")
      ->check(one_of({"as-real", "from-real"}))
      ->excludes(format)
      ->excludes("--values")
      ->common();
  output->excludes(format);
  app.footer(footer());
  return [options] {
    require_single_process("convert");
    if (options->output.empty() == options->format.empty())
      throw Error(ErrorKind::usage, "name either a file to write, or a storage format to try", "format");
    if (!options->complex.empty()) convert_complex(*options);
    else if (!options->values.empty()) convert_values(*options);
    else if (options->format.empty()) convert_file(*options);
    else convert_storage(*options);
    return 0;
  };
}

}  // namespace shardmat::tools
