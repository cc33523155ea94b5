#include "runtime/run/several.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/print_error.h"
#include "partition/readers/replaceable.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/environment.h"
#include "tools/cli/input_matrix.h"
#include "tools/cli/load_choices.h"
#include "tools/cli/print_report.h"
#include "tools/cli/progress_bar.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_owners.h"
#include "tools/client/remote_commands.h"

namespace shardmat::tools {
namespace {

struct Options : LoadChoices {
  MultiplyOptions multiply;
  std::vector<std::string> matrices;
  std::string batch;  ///< empty: not asked for
  std::string backend = "auto", mode = "repeat", verify = "", json;
  bool force = false;
  RemoteChoice remote;
};

void add_vector_options(const CommandLine& app, Options& o) {
  MultiplyOptions& m = o.multiply;
  app.in(Topic::input)
      .add_option(
          "--x", m.x,
          "x: ones, zeros, random, or a file: FILE.h5 (dataset /x), FILE.h5:/DATASET, FILE.npy, FILE.mtx (an array), "
          "FILE.txt, "
          "or a vector of PETSc (FILE or FILE:NUMBER), MATLAB (FILE.mat:NAME), hypre (NAME) or Harwell-Boeing (FILE:rhs)")
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--y0", m.y0,
                  "y before the product. It needs --beta, and takes the words and files that --x takes (dataset /y)")
      ->capture_default_str()
      ->common();
  add_seed_option(app, m.seed);
  const Option output =
      app.in(Topic::output)
          .add_option(
              "--output", m.output,
              "write y to FILE.h5 (dataset /y), FILE.h5:/DATASET, FILE.npy, FILE.mtx, FILE.txt, FILE.petsc, FILE.mat or "
              "NAME.00000 (hypre), in the matrix's original row "
              "order. With --mode power, write the last x (dataset /x)")
          ->check(output_name())
          ->type_name("FILE")
          ->common();
  add_files_option(app, m.files).needs(output);
  app.in(Topic::output)
      .add_flag("--force", o.force, "replace the output file even if it is of another kind, or has other datasets");
}

void add_product_options(const CommandLine& app, Options& o) {
  MultiplyOptions& m = o.multiply;
  app.in(Topic::input)
      .add_flag("--allow-nonfinite", m.allow_nonfinite, "accept NaN and infinity among the values of the matrix");
  app.in(Topic::computation)
      .add_option("--alpha", m.alpha, "alpha in y = alpha A x + beta y")
      ->check(finite_number())
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_flag("--transpose", m.transpose,
                "multiply with the transpose, y = alpha A' x + beta y, from the rows that are stored once: x has as many "
                "entries as A has rows, y as A has columns. Also times products with A")
      ->common();
  app.in(Topic::computation)
      .add_option("--beta", m.beta, "beta in y = alpha A x + beta y")
      ->check(finite_number())
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--type", o.type,
                  "type of the values of matrix and vectors. f16 and bf16 need --rhs. Matrix and x then have this type; "
                  "sums and y are f32")
      ->check(one_of({"f32", "f64", "f16", "bf16"}))
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--rhs", o.rhs,
                  "number of right-hand sides that are multiplied at once; x, y0 and the output have as many columns")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--iterations", m.iterations, "number of products to time after the first one")
      ->check(whole_number(0, 1'000'000'000))
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option(
          "--mode", o.mode,
          "what an iteration is. repeat: the same product. dots: the product, then x'y and y'y, summed over all ranks as in "
          "conjugate gradients. power: the product, then x = y / |y|. dots and power need a square matrix")
      ->check(one_of({"repeat", "dots", "power"}))
      ->capture_default_str();
  app.in(Topic::computation)
      .add_flag("--verify{auto}", o.verify,
                "compare the result with a sequential f64 product. full: every row. sampled: some rows and the column sums. "
                "auto, or no word: full for small matrices, else sampled")
      ->option_text("[=HOW]")
      ->check(one_of({"auto", "full", "sampled"}))
      ->common();
  add_json_option(app, o.json);
  add_backend_option(app, o.backend);
}

void add_options(const CommandLine& app, Options& o) {
  app.add_option("matrix", o.matrices,
                 "matrix file (" + known_suffixes() +
                     "), or a generator such as elasticity:n=40. Files other than .h5 are read and divided in memory. "
                     "Several matrices are multiplied in one run, each once an iteration")
      ->required();
  app.in(Topic::machine)
      .add_option("--batch", o.batch,
                  "how several matrices share the ranks. split: each matrix is divided among all ranks. whole: each matrix "
                  "is on one rank. auto: the way that is predicted to be faster")
      ->check(one_of({"auto", "split", "whole"}));
  add_vector_options(app, o);
  add_product_options(app, o);
  add_input_options(app, o.multiply.choices);
  add_kernel_options(app, o);
  add_rank_options(app, o);
  add_node_option(app, o.load.node_block_size);
  add_remote_options(app, o.remote);
  app.footer(
      "\nExamples:\n  mpirun -n 4 shardmat multiply bar.h5 --iterations 100 --verify --json report.json\n"
      "  mpirun -n 4 shardmat multiply bar.mtx.gz --verify\n"
      "  mpirun -n 4 shardmat multiply bar.h5 --x loads.h5:/case1/x --output y.h5\n"
      "  mpirun -n 2 shardmat multiply elasticity:n=100 --type f32 --measure\n"
      "  shardmat multiply bar.h5 --rhs 8 --iterations 100 --verify\n"
      "  mpirun -n 4 shardmat multiply bar.h5 --transpose --verify\n"
      "  mpirun -n 4 shardmat multiply bar.h5 --mode power --iterations 500\n"
      "  mpirun -n 4 shardmat multiply a.h5 b.h5 c.h5 d.h5 e.h5 --batch auto --verify\n");
}

void finish_options(const CommandLine& app, Options& o) {
  MultiplyOptions& m = o.multiply;
  if (app.count("--y0") > 0 && m.beta == 0)
    throw Error(ErrorKind::usage, "y0 counts only if beta is not 0: y = alpha A x + beta y0", "beta");
  for (const std::string& matrix : o.matrices)
    if (app.count("--verify") > 0 && (matrix == "full" || matrix == "sampled" || matrix == "auto"))
      throw Error(ErrorKind::usage, fmt::format("--verify {0} is taken for a matrix named {0}; write --verify={0}", matrix));
  if (m.transpose && (o.matrices.size() > 1 || !o.batch.empty()))
    throw Error(ErrorKind::usage, "several matrices are multiplied as they are; name one to multiply with its transpose",
                "transpose");
  m.matrix = o.matrices.front();
  m.mode = o.mode == "power" ? Mode::power : o.mode == "dots" ? Mode::dots : Mode::repeat;
  m.backend = parse_backend_choice(o.backend);
  m.verify = app.count("--verify") > 0;
  m.verify_mode = o.verify == "full"      ? VerifyMode::full
                  : o.verify == "sampled" ? VerifyMode::sampled
                                          : VerifyMode::automatic;
  m.graph = !o.no_graph;
  finish_load_choices(o);
  m.load = o.load;
  m.load.plan.products = static_cast<double>(m.iterations);
  m.progress = make_progress_bar();
}

int run_several(const Options& o, Communicator& communicator) {
  SeveralOptions several;
  several.matrices = o.matrices;
  several.placement = parse_several_placement(o.batch.empty() ? "auto" : o.batch);
  several.each = o.multiply;
  Context context(communicator, o.multiply.backend);
  const SeveralReport report = multiply_several(context, several);
  print_report(report, o.json, communicator);
  if (report.passed()) return 0;
  if (communicator.rank() == 0)
    for (const SeveralItem& item : report.items)
      if (item.verification && !item.verification->passed)
        print_error("shardmat: {}: verification {}\n", item.matrix, item.verification->text());
  return static_cast<int>(ErrorKind::verification);
}

int run(const Options& o, Communicator& communicator) {
  communicator.run_agreed([&] {
    if (communicator.rank() != 0) return;
    std::vector<InputFile> inputs{{o.multiply.x, "x"}, {o.multiply.y0, "y0"}};
    for (const std::string& matrix : o.matrices) inputs.push_back({matrix, "the matrix"});
    require_spared(inputs, {o.multiply.output, o.json});
    check_report_file(o.json);
    if (!o.force && !o.multiply.output.empty())
      require_replaceable(o.multiply.output, Output::vector, o.mode == "power" ? "x" : "y", o.multiply.files);
  });
  if (o.matrices.size() > 1 || !o.batch.empty()) return run_several(o, communicator);
  const MultiplyReport report = multiply(communicator, o.multiply);
  print_report(report, o.json, communicator);
  if (!report.verification || report.verification->passed) return 0;
  if (communicator.rank() == 0) print_error("shardmat: verification {}\n", report.verification->text());
  return static_cast<int>(ErrorKind::verification);
}

}  // namespace

std::function<int()> add_multiply(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("multiply", "Compute y = alpha A x + beta y on the ranks of mpirun, and time it");
  auto options = std::make_shared<Options>();
  add_options(app, *options);
  return [app, options] {
    finish_options(app, *options);
    if (options->remote.is_remote()) {
      if (options->matrices.size() > 1) throw Error(ErrorKind::usage, "a service multiplies one matrix at a time; name one");
      return multiply_remotely(app, options->remote, options->multiply, options->force);
    }
    return run_owners(app, options->timeout, options->sharing, options->backend,
                      [&](Communicator& communicator) { return run(*options, communicator); });
  };
}

}  // namespace shardmat::tools
