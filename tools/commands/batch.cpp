#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/long_wait.h"
#include "kernels/base/error.h"
#include "kernels/base/print_error.h"
#include "partition/batched/batch_file.h"
#include "partition/batched/batch_source.h"
#include "partition/files/atomic_file.h"
#include "partition/readers/replaceable.h"
#include "runtime/batched/batched_multiply.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/environment.h"
#include "tools/cli/help_text.h"
#include "tools/cli/print_report.h"
#include "tools/cli/progress_bar.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_owners.h"

namespace shardmat::tools {
namespace {

struct Options {
  BatchedOptions run;
  std::string type = "f32", format = "csr", backend = "auto", save, json;
  bool no_measure = false, force = false;
  double timeout = 60;
  RankSharing sharing;
};

std::string kernel_names() {
  std::string names;
  for (const BatchedKernel& kernel : batched_kernels())
    names += fmt::format("\n  {:<15} {} ({})", kernel.name, kernel.help, name(kernel.format));
  return names;
}

std::string sources() {
  std::string kinds;
  for (const BatchKind& kind : batch_kinds()) kinds += fmt::format("\n  {:<15} {}", kind.name, kind.help);
  return kinds;
}

void add_product_options(const CommandLine& app, Options& o) {
  BatchedOptions& b = o.run;
  app.in(Topic::input)
      .add_option("--rhs", b.columns,
                  "number of columns of X and Y, the same for all matrices; 1 makes the product a batched SpMV")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--type", o.type, "type of the values of the matrices and X; with f16 and bf16 sums and Y are f32")
      ->check(one_of({"f32", "f64", "f16", "bf16"}))
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--format", o.format, "how the matrices are stored. csr: compressed rows; coo: coordinates")
      ->check(one_of({"csr", "coo"}))
      ->capture_default_str();
  app.in(Topic::input)
      .add_option("--edge-attribute", b.edges.attribute,
                  "in a TUDataset: which attribute of an edge is its value, counted from 1 (default: the only one)")
      ->check(whole_number(1, 1 << 20));
  app.in(Topic::input)
      .add_flag("--unweighted", b.edges.unweighted,
                "take 1 as the value of every edge, even if a TUDataset or .npz has weights")
      ->excludes("--edge-attribute");
  app.in(Topic::computation)
      .add_flag("--self-loops", b.graphs.self_loops, "put a 1 on the diagonal where a matrix has no entry");
  app.in(Topic::computation)
      .add_flag(
          "--gcn-normalise,--gcn-normalize", b.graphs.gcn_normalise,
          "multiply with D^-1/2 (A+I) D^-1/2 instead of A. D holds the row sums of A+I, weights included, and each must be "
          "above 0 (Kipf, Welling: Semi-Supervised Classification with GCNs, 2017, eq. 2)")
      ->excludes("--self-loops")
      ->common();
  app.in(Topic::computation).add_flag("--transpose", b.transpose, "multiply with the transposed matrices");
  app.in(Topic::computation)
      .add_option("--alpha", b.alpha, "alpha in Y = alpha A X")
      ->check(finite_number())
      ->capture_default_str();
  app.in(Topic::computation)
      .add_option("--bias", b.bias, "add this row to every row of Y: ones, random, or a file (dataset /bias)");
  app.in(Topic::computation).add_flag("--relu", b.relu, "set negative results to 0");
  app.in(Topic::input)
      .add_option(
          "--x", b.x,
          "the X of all matrices, stacked: ones, zeros, random, or a file: FILE.h5 (dataset /x), FILE.h5:/DATASET, FILE.npy "
          "or FILE.mtx (an array)")
      ->capture_default_str()
      ->common();
  add_seed_option(app, b.seed, "seed of random X and bias");
}

void add_run_options(const CommandLine& app, Options& o) {
  BatchedOptions& b = o.run;
  app.in(Topic::computation)
      .add_option("--kernel", b.plan.kernel, "kernel by name (see below), or auto: measure several and take the fastest")
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--policy", b.plan.policy, "tunables of the kernel that --kernel names, e.g. columns=64");
  app.in(Topic::computation)
      .add_flag("--no-measure", o.no_measure,
                "with --kernel auto: measure nothing, take the kernel that is expected to be the fastest");
  app.in(Topic::computation)
      .add_flag("--reproducible", b.plan.reproducible, "use only kernels whose results are bit-identical from run to run");
  app.in(Topic::computation)
      .add_option("--iterations", b.iterations, "number of products to time after the first one")
      ->check(whole_number(0, 100'000))
      ->capture_default_str()
      ->common();
  app.in(Topic::computation).add_flag("--verify", b.verify, "compare every row with a sequential f64 product")->common();
  app.in(Topic::machine)
      .add_flag("--stream", b.stream,
                "read, multiply and write the batch in chunks, and read one chunk ahead. This is the default if the batch "
                "does not fit "
                "the memory")
      ->common();
  app.in(Topic::machine)
      .add_option("--chunk", b.chunk_bytes,
                  "use --stream, with chunks of SIZE bytes including their X and Y, e.g. 512MB (default 256 MB)")
      ->option_text("SIZE")
      ->transform(bytes_with_unit())
      ->check(whole_number(1, std::numeric_limits<std::int64_t>::max()));
  app.in(Topic::output)
      .add_option("--output", b.output,
                  "write the stacked Y to FILE.h5 (dataset /y), FILE.h5:/DATASET, FILE.npy or FILE.mtx")
      ->check(output_name())
      ->type_name("FILE")
      ->common();
  app.in(Topic::output)
      .add_option(
          "--save", o.save,
          "write the batch to a batch file (.h5). --self-loops and --gcn-normalise change what is written, --transpose "
          "does not")
      ->check(output_name())
      ->type_name("FILE")
      ->common();
  app.in(Topic::output)
      .add_flag("--force", o.force, "replace the files of --output and --save even if they are of another kind");
  add_json_option(app, o.json);
  add_backend_option(app, o.backend);
  app.in(Topic::machine)
      .add_option("--timeout", o.timeout, "stop if a rank has not answered for X seconds")
      ->check(positive_number())
      ->capture_default_str();
  add_sharing_options(app, o.sharing);
  app.footer("\nThe batch is one of:" + sources() + "\n\nKernels:" + kernel_names() +
             "\n\nExamples:\n  shardmat batch MUTAG --rhs 64 --gcn-normalise --verify\n"
             "  shardmat batch molecules:count=16384 --rhs 64 --save molecules.h5\n"
             "  mpirun -n 4 shardmat batch molecules.h5 --rhs 64 --x x.h5 --output y.h5 --stream\n"
             "  shardmat batch batch:count=100,dim=32-256,row_nnz=1-5 --rhs 128 --kernel csr_host --backend host\n");
}

void finish_options(Options& o) {
  BatchedOptions& b = o.run;
  b.type = parse_value_type(o.type);
  b.format = o.format == "coo" ? BatchFormat::coo : BatchFormat::csr;
  b.plan.measure = !o.no_measure;
  b.stream |= b.chunk_bytes > 0;
  if (!o.save.empty() && !o.save.ends_with(".h5") && !o.save.ends_with(".hdf5"))
    throw Error(ErrorKind::usage, fmt::format("{}: the name of a batch file ends with .h5", o.save), "save");
  b.progress = make_progress_bar();
}

/// No file that is written may be one that is read, or another that is written.
void check_files(const Options& o) {
  const std::string &y = o.run.output, json = o.json == "-" ? "" : o.json;
  require_spared({{o.run.batch, "the batch"}, {o.run.x, "X"}, {o.run.bias, "the bias"}}, {o.save, y, json});
  check_report_file(json);
  if (!o.save.empty()) check_writable(o.save);
  if (o.force) return;
  if (!o.save.empty()) require_replaceable(o.save, Output::batch);
  if (!y.empty()) require_replaceable(y, Output::vector);
}

void save(const Options& o, Communicator& communicator) {
  const LongWait wait(communicator);
  communicator.run_agreed([&] {
    if (communicator.rank() != 0 || o.save.empty()) return;
    BatchWriteOptions options;
    options.how = command_line();
    options.f32 = o.run.type != ValueType::f64;
    options.progress = o.run.progress;
    write_batch_file(o.save, *transformed(open_batch(o.run.batch, o.run.edges), o.run.graphs), options);
  });
}

int run(const Options& o, Communicator& communicator) {
  communicator.run_agreed([&] {
    if (communicator.rank() == 0) check_files(o);
  });
  Context context(communicator, parse_backend_choice(o.backend));
  const BatchedReport report = multiply_batched(context, o.run);
  save(o, communicator);
  print_report(report, o.json, communicator);
  if (!report.verification || report.verification->passed) return 0;
  if (communicator.rank() == 0)
    print_error("shardmat: {}: {} of {} rows are wrong, the worst in matrix {}, row {}\n", report.batch,
                report.verification->wrong_rows, report.verification->rows_checked, report.verification->worst_matrix,
                report.verification->worst_row);
  return static_cast<int>(ErrorKind::verification);
}

}  // namespace

std::function<int()> add_batch(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("batch", "Compute Y = A X for a batch of many small matrices at once, and time it");
  auto options = std::make_shared<Options>();
  options->run.columns = 32;
  app.add_option("batch", options->run.batch, "batch file, data set, folder, list or generator; see below")->required();
  add_product_options(app, *options);
  add_run_options(app, *options);
  return [app, options] {
    finish_options(*options);
    return run_owners(app, options->timeout, options->sharing, options->backend,
                      [&](Communicator& communicator) { return run(*options, communicator); });
  };
}

}  // namespace shardmat::tools
