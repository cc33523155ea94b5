#include "tools/cli/load_choices.h"

#include "comm/exchange/exchange.h"
#include "kernels/base/error.h"
#include "kernels/choose/registry.h"
#include "kernels/spmm.h"
#include "partition/source/partitioner.h"
#include "runtime/matrix/plan_cache.h"
#include "tools/cli/checks.h"
#include "tools/cli/help_text.h"

namespace shardmat::tools {

void add_kernel_options(const CommandLine& command, LoadChoices& o) {
  const CommandLine app = command.in(Topic::computation);
  PlanRequest& plan = o.load.plan;
  app.add_option("--kernel", plan.kernel,
                 "kernel by name, or auto; --rhs has kernels of its own" + kernel_choices(kernels()) +
                     kernel_choices(spmm_kernels(), ", with --rhs"))
      ->capture_default_str()
      ->common();
  app.add_option("--policy", plan.policy, "tunables of the kernel that --kernel names, e.g. threads_per_row=16");
  app.add_flag(
      "--tune,--measure", plan.tune,
      "measure every kernel, layout and policy that other options leave open, and take the fastest. Without it, auto "
      "measures on a GPU, and on the host for 300 iterations or more, and only the few that the model expects to be the "
      "fastest. Prefer the name --measure: Open MPI's mpirun takes --tune for its own option and prints a complaint");
  app.add_flag("--no-measure", o.no_measure, "with --kernel auto: measure nothing, take the model's choice");
  app.add_option("--tune-budget", plan.budget_seconds,
                 "start no measurement after X seconds (default: the time of 150 products; with --measure 5 s)")
      ->check(positive_number());
  app.add_flag("--reproducible", plan.reproducible,
               "use only kernels whose results are bit-identical from run to run. With --no-measure every run also takes "
               "the same kernel");
  app.add_flag(
      "--same-bits", plan.same_bits,
      "use only kernels that give a column of y the same bits in products of any number of right-hand sides (--rhs), "
      "on the same kind of device with the same ranks, --type and --exchange. Rows are not multiplied while x moves, "
      "unless --overlap asks for it in all products");
  app.add_option("--storage", o.storage,
                 "symmetric: store one of two equal entries a_ij and a_ji, for about half the memory; on the host. If they "
                 "differ by rounding alone (1e-10 of them or of their rows' largest entries; f32: 1e-5), their mean is "
                 "stored. Any other matrix is refused. Results depend on the number of threads in the last bits")
      ->check(one_of({"full", "symmetric"}))
      ->capture_default_str();
  app.add_flag("--no-cache", o.no_cache, "neither use nor store measured choices (they are stored in SHARDMAT_CACHE_DIR)");
}

void add_rank_options(const CommandLine& app, LoadChoices& o, const std::string& partition_option) {
  LoadOptions& load = o.load;
  app.in(Topic::computation)
      .add_option("--exchange", load.exchange,
                  "how x moves between ranks; auto measures those that may be the fastest" +
                      choices("Choices", names_of(exchanges(), {"auto"})))
      ->capture_default_str();
  app.in(Topic::computation)
      .add_option(partition_option, load.method,
                  "what each part has the same number of, if the file stores no partition for this number of ranks: "
                  "nonzeros (nnz) or rows" +
                      choices("Choices", names_of(partitioners())))
      ->capture_default_str();
  app.in(Topic::computation)
      .add_option("--sort", o.sort,
                  "order of the rows of a part. local: by descending length; none: as stored; auto: as the file asks for")
      ->check(one_of({"auto", "none", "local"}))
      ->capture_default_str();
  const Option overlap =
      app.in(Topic::computation)
          .add_flag(
              "--overlap", o.overlap,
              "multiply rows that need no x of other ranks while x moves. Without --rhs this is the default; with --rhs "
              "it takes two products");
  app.in(Topic::computation)
      .add_flag("--no-overlap", o.no_overlap, "multiply no row before x has arrived")
      ->excludes(overlap);
  app.in(Topic::computation)
      .add_option(
          "--column-block", load.column_block,
          "with --rhs on several ranks: number of right-hand sides that are moved and multiplied at a time, 2 or more "
          "and a divisor of --rhs. A smaller number needs less memory for x of other ranks, and more time (default: "
          "all, or as many as fit)")
      ->check(whole_number(2, 1 << 20))
      ->excludes(overlap);
  app.in(Topic::computation)
      .add_flag("--no-graph", o.no_graph, "launch the kernels in every iteration instead of replaying a CUDA graph");
  app.in(Topic::machine)
      .add_option("--timeout", o.timeout, "stop if a rank has not answered for X seconds; to start, ranks have at least 30")
      ->check(positive_number())
      ->capture_default_str();
  add_sharing_options(app, o.sharing);
}

void add_node_option(const CommandLine& app, std::int64_t& node_block_size) {
  app.in(Topic::input)
      .add_option(
          "--node-block-size", node_block_size,
          "unknowns of a node, whose rows follow each other: each node lies in one part, and block_jacobi takes "
          "blocks of this size (1 to 6). It must divide the number of rows (default: as the file says, else found in "
          "the pattern)")
      ->check(whole_number(1, 1'000'000));
}

void finish_load_choices(LoadChoices& o) {
  LoadOptions& load = o.load;
  load.type = parse_value_type(o.type);
  load.sort = o.sort == "local" ? LocalSort::by_length : o.sort == "none" ? LocalSort::none : LocalSort::as_file;
  load.right_hand_sides = o.rhs;
  require_column_block(o.rhs, load.column_block);
  // Rows that are stored apart are summed in another order, and by default only products of one column store them so.
  load.overlap = o.overlap ? Overlap::yes : o.no_overlap || load.plan.same_bits ? Overlap::no : Overlap::automatic;
  if (o.no_measure && load.plan.tune) throw Error(ErrorKind::usage, "--measure and --no-measure exclude each other");
  load.plan.measure = !o.no_measure;
  load.plan.storage = o.storage == "symmetric" ? StoredEntries::half : StoredEntries::all;
  load.cache_directory = o.no_cache ? "" : default_cache_directory();
}

}  // namespace shardmat::tools
