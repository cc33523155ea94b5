#include "tools/commands/write_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "partition/files/atomic_file.h"
#include "partition/hdf5/shard_file_format.h"
#include "partition/readers/replaceable.h"
#include "partition/source/node_blocks.h"
#include "partition/source/ordered_source.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/load_choices.h"
#include "tools/cli/node_options.h"
#include "tools/cli/order_choice.h"
#include "tools/cli/peak_memory.h"
#include "tools/cli/progress_bar.h"
#include "tools/commands/quality_table.h"

namespace shardmat::tools {
namespace {

constexpr std::int64_t kMostParts = 1'000'000;

/// Where others call a graph partitioner a method.
ValueCheck no_order() {
  return ValueCheck([](std::string& text) {
    if (text != "graph" && text != "rcm") return std::string();
    std::string command = command_line();
    if (const auto at = command.find("--method"); at != std::string::npos) command.replace(at, 8, "--reorder");
    return fmt::format("{} is an order of rows, not what parts balance; type: {}", text, command);
  });
}

std::vector<std::string> partitioner_names() {
  std::vector<std::string> names;
  for (const Partitioner& p : partitioners()) names.emplace_back(p.name);
  return names;
}

RowOrder order_named(const FileOptions& options) {
  return options.reorder == "rcm"     ? RowOrder::rcm
         : options.reorder == "graph" ? RowOrder::graph
         : options.sort == "global"   ? RowOrder::by_length
                                      : RowOrder::as_source;
}

std::string method_of(const FileOptions& options) {
  return !options.method.empty() ? options.method : options.reorder == "auto" ? "auto" : "nnz";
}

bool chooses(const FileOptions& options) { return options.reorder == "auto" || options.method == "auto"; }

OrderChoices choices_of(const RowSource& source, const FileOptions& options, bool allow_nonfinite) {
  OrderChoices choices;
  choices.orders = options.reorder == "auto" ? possible_orders(source) : std::vector{order_named(options)};
  choices.methods = method_of(options) == "auto" ? partitioner_names() : std::vector{method_of(options)};
  choices.parts = options.parts;
  std::sort(choices.parts.begin(), choices.parts.end());
  choices.parts.erase(std::unique(choices.parts.begin(), choices.parts.end()), choices.parts.end());
  choices.model = options.model;
  choices.allow_nonfinite = allow_nonfinite;
  return choices;
}

}  // namespace

void add_file_options(const CommandLine& app, FileOptions& options) {
  const Option output =
      app.add_option("output", options.output, "shard file to write (.h5)")->required()->check(shard_file_name());
  app.in(Topic::output)
      .add_option(
          "--parts", options.parts,
          "store a partition for each of these numbers of ranks, e.g. 2,4,8. For any other number, it is computed when the "
          "file is loaded")
      ->delimiter(',')
      ->check(whole_number(1, kMostParts))
      ->common();
  std::vector<std::string> methods = partitioner_names();
  methods.emplace_back("auto");
  app.in(Topic::computation)
      .add_option("--method", options.method,
                  "give each part the same number of nonzeros (nnz) or rows. auto: the method that is predicted to be "
                  "faster (default nnz, with --reorder auto: auto)")
      ->check(no_order())
      ->check(one_of(methods))
      ->common();
  add_node_option(app, options.node_block_size);
  app.in(Topic::computation)
      .add_option(
          "--sort", options.sort,
          "sort rows by descending length. local: each rank sorts its part when it loads the file; global: the whole "
          "matrix is sorted, and the permutation is stored")
      ->check(one_of({"none", "local", "global"}))
      ->capture_default_str();
  const Option reorder =
      app.in(Topic::computation)
          .add_option(
              "--reorder", options.reorder,
              "reorder the rows and columns of a square matrix, so that parts need less x of each other. The permutation is "
              "stored. rcm: reverse Cuthill-McKee, which moves nonzeros near the diagonal; graph: METIS, which puts rows "
              "with "
              "the same columns into one part, for the largest of --parts, its half, its quarter and so on; auto: print a "
              "table of all orders, and take the one that is predicted to be the fastest on the largest of --parts. auto "
              "also tries --sort global, and takes any matrix")
          ->check(one_of({"none", "rcm", "graph", "auto"}))
          ->capture_default_str()
          ->common();
  const auto compare = [&options, output] {
    options.compare = true;
    options.reorder = "auto";
    output->required(false);
  };
  app.in(Topic::output)
      .add_flag_callback("--compare", compare, "print the table of --reorder auto and write no file")
      ->excludes(output)
      ->excludes(reorder)
      ->common();
  app.in(Topic::output)
      .add_flag("--force", options.force, "replace the output file even if it holds something other than a matrix");
  app.in(Topic::input)
      .add_option("--model", options.model,
                  "JSON report of shardmat bench scaling: the machine's speed, which auto and --compare predict with "
                  "(default: figures "
                  "of NVIDIA H200)")
      ->type_name("FILE");
}

void check_file_options(const FileOptions& options) {
  std::vector<std::int64_t> parts(options.parts.begin(), options.parts.end());
  std::sort(parts.begin(), parts.end());
  if (const auto twice = std::adjacent_find(parts.begin(), parts.end()); twice != parts.end())
    throw Error(ErrorKind::usage, fmt::format("{} parts are named twice", *twice), "parts");
  if (options.reorder != "none" && options.sort == "global")
    throw Error(
        ErrorKind::usage,
        fmt::format("the order {} and the global sort both order the whole matrix; choose one of them", options.reorder),
        "order");
  if (chooses(options) && options.parts.empty())
    throw Error(ErrorKind::usage, "what is fastest depends on how many parts there are; give their numbers", "parts");
  if (!chooses(options) && !options.model.empty())
    throw Error(ErrorKind::usage, "a model is only for choosing an order or a method; leave it out, or ask for that choice",
                "order=auto");
  if (options.compare) return;
  check_writable(options.output);
  if (!options.force) require_replaceable(options.output, Output::matrix);
}

void write_file(const RowSource& source, const FileOptions& options, bool allow_nonfinite, const PeakMemory& peak,
                const RowSource* original) {
  OrderChoice choice;
  if (chooses(options)) {
    choice = choose_order(source, choices_of(source, options, allow_nonfinite));
    fmt::print("{}", choice.table);
    if (options.compare) return;
    fmt::print("\n");
  }
  const Timer timer;
  const NodeFacts* nodes = original != nullptr ? original : &source;
  std::unique_ptr<NodeFacts> given;
  if (!options.nodes.empty()) {
    const std::int64_t size = options.node_block_size > 0 ? options.node_block_size : find_node_block_size(source);
    given = open_node_files(options.nodes, original != nullptr ? *original : source, size);
    nodes = given.get();
  }
  WriteOptions write;
  write.nodes = nodes;
  write.how = command_line();
  write.parts = options.parts;
  write.method = chooses(options) ? choice.method : method_of(options);
  if (!chooses(options)) write.order = order_named(options);
  write.node_block_size = options.node_block_size;
  write.sort_local = options.sort == "local";
  write.allow_nonfinite = allow_nonfinite;
  write.progress = make_progress_bar();
  const std::vector<StoredPartition> partitions =
      write_shard_file(options.output, choice.rows ? *choice.rows : source, write);
  const double seconds = timer.seconds();
  const auto bytes = static_cast<double>(std::filesystem::file_size(options.output));
  fmt::print("{}: {} × {}, {} in {}, {} peak memory (mapped files not counted)\n", options.output,
             human_count(source.rows()), human_count(source.cols()), human_bytes(bytes), human_seconds(seconds),
             human_bytes(static_cast<double>(peak.bytes())));
  if (const std::string known = nodes_text(counts_of(*nodes)); !known.empty())
    fmt::print("{}: with {}\n", options.output, known);
  if (nodes->unknowns() != nullptr)
    fmt::print("{}:{}: node and degree of freedom of each row\n", options.output, shard_format::kUnknowns);
  const std::string table = quality_table(partitions);
  if (!table.empty()) fmt::print("\n{}", table);
}

}  // namespace shardmat::tools
