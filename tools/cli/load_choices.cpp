#include "tools/cli/load_choices.h"

#include "comm/exchange/exchange.h"
#include "kernels/base/error.h"
#include "kernels/choose/registry.h"
#include "kernels/choose/spmm_registry.h"
#include "partition/source/partitioner.h"
#include "runtime/matrix/plan_cache.h"
#include "tools/cli/checks.h"
#include "tools/cli/help_text.h"

namespace shardmat::tools {

void add_kernel_options(const CommandLine& command, LoadChoices& o) {
  const CommandLine app = command.in(Topic::computation);
  PlanRequest& plan = o.load.plan;
  app.add_option("--kernel", plan.kernel,
                 "name of the kernel, or auto. Products with --rhs have kernels of their own" + kernel_choices(kernels()) +
                     kernel_choices(spmm_kernels(), ", with --rhs"))
      ->capture_default_str();
  app.add_option("--policy", plan.policy, "tunables of the kernel that --kernel names, e.g. threads_per_row=16");
  app.add_flag(
      "--tune,--measure", plan.tune,
      "measure every kernel, layout and policy that other options leave open, and take the fastest. Without this option, "
      "auto measures only the few that the model expects to be the fastest; on the host it measures only for 300 iterations "
      "or more. Prefer the name --measure: Open MPI's mpirun takes --tune for its own option and prints a complaint");
  app.add_flag("--no-measure", o.no_measure, "with --kernel auto: measure nothing, take the model's choice");
  app.add_option("--tune-budget", plan.budget_seconds,
                 "start no measurement after X seconds (default: the time of 150 products; with --measure 5 s)")
      ->check(positive_number());
  app.add_flag("--reproducible", plan.reproducible,
               "use only kernels whose results are bit-identical from run to run. With --no-measure, every run also takes "
               "the same kernel");
  app.add_flag("--same-bits", plan.same_bits,
               "use only kernels that give a column of y the same bits, whatever the number of right-hand sides (--rhs). "
               "The device must be of the same kind, and the ranks, --type and --exchange must be the same. No row is "
               "multiplied while x moves, unless --overlap is given for every product");
  app.add_option(
         "--storage", o.storage,
         "symmetric: store one of two equal entries a_ij and a_ji, on the host. This takes about half the memory. If two "
         "entries differ by rounding alone, their mean is stored: by 1e-10 of their size or of their rows' largest entries "
         "(f32: 1e-5). Any other matrix is refused. The last bits of results depend on the number of threads")
      ->check(one_of({"full", "symmetric"}))
      ->capture_default_str();
  app.add_flag("--no-cache", o.no_cache, "neither use nor store measured choices. They are stored in SHARDMAT_CACHE_DIR");
}

void add_rank_options(const CommandLine& app, LoadChoices& o, const std::string& partition_option) {
  LoadOptions& load = o.load;
  app.in(Topic::computation)
      .add_option("--exchange", load.exchange,
                  "how x moves between ranks. auto measures the exchanges that may be the fastest" +
                      choices("Choices", names_of(exchanges(), {"auto"})))
      ->capture_default_str();
  app.in(Topic::computation)
      .add_option(partition_option, load.method,
                  "give each part the same number of nonzeros (nnz) or rows. This counts if the file stores no partition "
                  "for this number of ranks" +
                      choices("Choices", names_of(partitioners())))
      ->capture_default_str();
  app.in(Topic::computation)
      .add_option("--sort", o.sort,
                  "order of the rows of a part. local: by descending length. none: as stored. auto: as the file says")
      ->check(one_of({"auto", "none", "local"}))
      ->capture_default_str();
  const Option overlap = app.in(Topic::computation)
                             .add_flag("--overlap", o.overlap,
                                       "multiply rows that need no x of other ranks while x moves. Without --rhs this is "
                                       "the default. With --rhs it takes two products");
  app.in(Topic::computation)
      .add_flag("--no-overlap", o.no_overlap, "multiply no row before x has arrived")
      ->excludes(overlap);
  app.in(Topic::computation)
      .add_option("--column-block", load.column_block,
                  "with --rhs on several ranks: number of right-hand sides that are moved and multiplied at a time. It is "
                  "at least 2 and divides --rhs. A smaller number needs less memory for x of other ranks, and more time "
                  "(default: all, or as many as fit)")
      ->check(whole_number(2, 1 << 20))
      ->excludes(overlap);
  app.in(Topic::computation)
      .add_flag("--no-graph", o.no_graph, "launch the kernels in every iteration instead of replaying a CUDA graph");
  app.in(Topic::machine)
      .add_option("--timeout", o.timeout,
                  "stop if a rank has not answered for X seconds. To start, ranks have at least 30 seconds")
      ->check(positive_number())
      ->capture_default_str();
  add_sharing_options(app, o.sharing);
}

void add_node_option(const CommandLine& app, std::int64_t& node_block_size) {
  app.in(Topic::input)
      .add_option("--node-block-size", node_block_size,
                  "number of unknowns of a node. Their rows follow each other and lie in one part. block_jacobi takes "
                  "blocks of this size (1 to 6). The number must divide the number of rows (default: as the file says, else "
                  "found in the pattern)")
      ->check(whole_number(1, 1'000'000));
}

void finish_load_choices(LoadChoices& o) {
  LoadOptions& load = o.load;
  load.type = parse_value_type(o.type);
  load.sort = parse_local_sort(o.sort);
  load.right_hand_sides = o.rhs;
  require_column_block(o.rhs, load.column_block);
  // Rows that are stored apart are summed in another order, and by default only products of one column store them so.
  load.overlap = o.overlap ? Overlap::yes : o.no_overlap || load.plan.same_bits ? Overlap::no : Overlap::automatic;
  if (o.no_measure && load.plan.tune)
    throw Error(ErrorKind::usage, "measuring everything and measuring nothing exclude each other", "tune");
  load.plan.measure = !o.no_measure;
  load.plan.storage = o.storage == "symmetric" ? StoredEntries::half : StoredEntries::all;
  load.cache_directory = o.no_cache ? "" : default_cache_directory();
}

}  // namespace shardmat::tools
