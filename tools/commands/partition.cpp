#include <algorithm>
#include <memory>

#include "comm/placement.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "partition/source/ordered_source.h"
#include "runtime/order/distributed_order.h"
#include "runtime/order/placed_rows.h"
#include "runtime/order/rows_on_rank_0.h"
#include "runtime/source/matrix_source.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/environment.h"
#include "tools/cli/input_matrix.h"
#include "tools/cli/node_options.h"
#include "tools/cli/progress_bar.h"
#include "tools/cli/run_ranks.h"
#include "tools/commands/write_file.h"

namespace shardmat::tools {
namespace {

struct Options {
  std::string input;
  FileOptions file;
  bool allow_nonfinite = false;
  InputChoices choices;
  std::string near_null_space;
  double timeout = 60;
};

/// Each rank reads, orders and holds a share of the rows; rank 0 writes.
int order_on_ranks(const Options& o, Communicator& communicator) {
  const PeakMemory peak;
  const ThreadCount threads(place_ranks(communicator, BackendChoice::host).threads);  // of the cores and memory of the host
  communicator.run_agreed([&] {
    if (communicator.rank() == 0) check_file_options(o.file);
  });
  const MatrixSource source =
      open_matrix(o.input, communicator, {o.allow_nonfinite, "rows", make_progress_bar(), false, o.choices, true, 1});
  const int parts = o.file.parts.empty() ? 0 : *std::max_element(o.file.parts.begin(), o.file.parts.end());
  communicator.run_agreed([&] { require_order(*source.rows, RowOrder::graph, parts); });
  const RowShare share = take_share(*source.rows, communicator);
  const PlacedRows placed = place_rows(share, order_by_graph(share, communicator, parts), communicator);
  FileOptions file = o.file;
  file.reorder = "none";  // any more
  read_all_on_rank_0(placed, source.rows->name(), communicator,
                     [&](const RowSource& rows) { write_file(rows, file, o.allow_nonfinite, peak, source.rows.get()); });
  return 0;
}

}  // namespace

std::function<int()> add_partition(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("partition", "Turn a matrix file into a shard file with balanced row partitions");
  auto options = std::make_shared<Options>();
  app.add_option("input", options->input, "matrix file (" + known_suffixes() + ")")->required();
  add_file_options(app, options->file);
  add_input_options(app, options->choices);
  add_node_options(app, options->file.nodes).common();
  app.in(Topic::input)
      .add_option(
          "--near-null-space", options->near_null_space,
          "file:NAME: vectors that the matrix maps to almost 0, for --preconditioner multigrid: a row for each row of "
          "the matrix, a column for each vector, in a file that --b of solve takes (dataset /near_null_vectors)")
      ->type_name("file:NAME")
      ->common();
  app.in(Topic::input)
      .add_flag("--allow-nonfinite", options->allow_nonfinite, "accept NaN and infinity among the values")
      ->common();
  app.in(Topic::machine)
      .add_option("--timeout", options->timeout,
                  "with --reorder graph on several ranks: stop if a rank has not answered for X seconds")
      ->check(positive_number())
      ->capture_default_str();
  app.footer(
      "\nExamples:\n  shardmat partition bar.mtx.gz bar.h5 --parts 2,4,8\n"
      "  shardmat partition bar.mtx bar.h5 --parts 4 --sort local\n"
      "  shardmat partition bar.h5 sorted.h5 --parts 4 --sort global\n"
      "  shardmat partition bar.mtx near.h5 --parts 4 --reorder graph\n"
      "  shardmat partition bar.mtx best.h5 --parts 2,4,8 --reorder auto\n"
      "  shardmat partition job.sti job.h5 --coordinates job.inp  # multigrid then knows where the nodes lie\n"
      "  shardmat partition bar.mtx --parts 4,8 --compare\n"
      "  mpirun -n 8 shardmat partition big.h5 near.h5 --parts 64 --reorder graph  # more than one host can hold\n");
  return [app, options] {
    options->file.nodes.near_null_vectors = vectors_file(options->near_null_space);
    if (options->file.nodes.near_null_vectors.empty() && !options->near_null_space.empty())
      throw Error(ErrorKind::usage, "a shard file keeps vectors of a file: write file:NAME", "near_null_space");
    if (launch().size > 1 && options->file.reorder == "graph")
      return run_ranks(app, options->timeout,
                       [&](Communicator& communicator) { return order_on_ranks(*options, communicator); });
    require_single_process("partition");
    const PeakMemory peak;
    check_file_options(options->file);
    const auto source = open_input(options->input, options->allow_nonfinite, true, options->choices).rows;
    write_file(*source, options->file, options->allow_nonfinite, peak);
    return 0;
  };
}

}  // namespace shardmat::tools
