// The tables of the papers that the formats come from, measured on this machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/formats/csr.h"
#include "kernels/matrix/locality.h"
#include "kernels/matrix/ordering.h"
#include "tools/bench/bench.h"
#include "tools/bench/cache_model.h"
#include "tools/bench/machine.h"
#include "tools/bench/options.h"
#include "tools/bench/outputs.h"
#include "tools/bench/papers_gmres.h"
#include "tools/bench/result_table.h"
#include "tools/bench/trial.h"
#include "tools/checks.h"
#include "tools/environment.h"
#include "tools/progress_bar.h"
#include "tools/run_ranks.h"

namespace shardmat::tools {
namespace {

/// A class of matrices of the course text, and the format that it advises for them.
struct PaperClass {
  MatrixClass matrices;
  std::string_view advice;
};
constexpr PaperClass kClasses[] = {
    {{"random", {"random:n=2000", "random:n=200000", "random:n=4194304"}}, "ell"},
    {{"uneven rows", {"rmat:scale=11", "rmat:scale=17", "rmat:scale=22"}}, "hyb"},
    {{"very sparse",
      {"rmat:scale=12,edge_factor=1,a=0.25,b=0.25,c=0.25", "rmat:scale=18,edge_factor=1,a=0.25,b=0.25,c=0.25",
       "rmat:scale=23,edge_factor=1,a=0.25,b=0.25,c=0.25"}},
     "coo"},
    {{"triangular",
      {"random:n=2000,row_nnz=40,triangular", "random:n=100000,row_nnz=100,triangular",
       "random:n=2000000,row_nnz=200,triangular"}},
     "jds"},
    {{"banded", {"banded:n=3000", "banded:n=200000", "banded:n=4000000"}}, "ell"},
    {{"diagonal", {"diagonals:n=5000,spacing=70", "diagonals:n=1000000,spacing=1000", "diagonals:n=16777216,spacing=4096"}},
     "dia"},
    {{"blocks", {"elasticity:n=8", "elasticity:n=32", "elasticity:n=96"}}, "bcsr"},
    {{"stencil", {"poisson27:n=12", "poisson27:n=64", "poisson27:n=192"}}, "–"},
};
constexpr std::string_view kCourseFormats[] = {"csr", "csc",   "coo", "ell",  "ell_r", "hyb",
                                               "jds", "jds_t", "dia", "bcsr", "pkt"};
constexpr std::string_view kPackedPairs[][2] = {{"rbp_csr", "csr_scalar"}, {"rbp_ell", "ell"}, {"rbp_ell_r", "ell_r"}};

/// The kernel of that name; on the host NAME_host. csr_scalar there is csr_host. Null if there is none.
const Kernel* find(std::string_view name, Backend backend) {
  const std::string host = name == "csr_scalar" ? "csr_host" : std::string(name) + "_host";
  for (const Kernel& kernel : kernels())
    if (kernel.backend == backend && (kernel.name == name || (backend == Backend::host && kernel.name == host)))
      return &kernel;
  return nullptr;
}

/// Rows in descending order of their lengths.
HostCsr sort_rows(const CsrView& m) {
  const HostVector<std::int64_t> order = order_by_row_length(m.row_ptr);
  HostCsr sorted;
  sorted.rows = m.rows;
  sorted.cols = m.cols;
  sorted.col_idx.reserve(m.col_idx.size());
  sorted.values.reserve(m.values.size());
  for (const std::int64_t old : order) {
    const auto row = static_cast<std::size_t>(old);
    const std::int64_t begin = m.row_ptr[row] - m.row_ptr[0], end = m.row_ptr[row + 1] - m.row_ptr[0];
    sorted.col_idx.insert(sorted.col_idx.end(), m.col_idx.begin() + begin, m.col_idx.begin() + end);
    sorted.values.insert(sorted.values.end(), m.values.begin() + begin, m.values.begin() + end);
    sorted.row_ptr.push_back(static_cast<std::int64_t>(sorted.values.size()));
  }
  return sorted;
}

/// The cells of a matrix that all tables begin with.
struct Subject {
  const NamedMatrix& matrix;
  CsrView csr;
  ValueType type;

  std::vector<Cell> cells() const { return {Cell::word(matrix.name), Cell::word(std::string(name(type)))}; }
};
const std::vector<Column> kSubjectColumns{{"matrix", "matrix"}, {"type", "type"}};

Cell microseconds(const std::optional<KernelResult>& r) {
  return r ? Cell::figure(1e6 * r->timing.median, 2) : Cell::none();
}
/// Time of `base` over that of `r`.
Cell speed_up(const std::optional<KernelResult>& base, const std::optional<KernelResult>& r) {
  return base && r ? Cell::figure(base->timing.median / r->timing.median, 2) : Cell::none();
}

/// Measures on one matrix, and remembers what was wrong.
class Bench {
 public:
  Bench(const Machine& machine, const TrialOptions& options, Stream& stream)
      : backend_(machine.device.backend), options_(options), stream_(stream) {}

  Backend backend() const { return backend_; }
  Trial trial(const CsrView& matrix, ValueType type) { return {matrix, type, stream_, options_}; }
  const std::set<std::string>& wrong() const { return wrong_; }
  /// Names asked for of which there is no kernel.
  const std::set<std::string>& missing() const { return missing_; }

  const Kernel* find_or_note(std::string_view kernel) {
    const Kernel* found = find(kernel, backend_);
    if (found == nullptr) missing_.emplace(kernel);
    return found;
  }

  /// Forgets what best() found for the matrix before.
  void start() { known_.clear(); }

  /// The fastest layout and policy of a kernel; nothing if it cannot take the matrix. Measured once per matrix and type,
  /// for all tables.
  std::optional<KernelResult> best(Trial& trial, const Kernel& kernel) {
    if (const auto known = known_.find(kernel.name); known != known_.end()) return known->second;
    std::optional<KernelResult>& best = known_[kernel.name];
    const Format& format = find_format(kernel.format);
    for (const Policy& layout : trial.layouts(format)) {
      const StoredMatrix stored = trial.convert(format, layout);
      for (const Policy& policy : kernel.policies(trial.input().rows())) keep(trial.measure(kernel, stored, policy), best);
    }
    return best;
  }
  std::optional<KernelResult> best(Trial& trial, std::string_view kernel) {
    const Kernel* found = find_or_note(kernel);
    return found == nullptr ? std::nullopt : best(trial, *found);
  }

  void keep(KernelResult result, std::optional<KernelResult>& best) {
    if (!result.measured()) return;
    if (!result.right()) wrong_.insert(result.kernel + " " + result.policy);
    if (result.right() && (!best || result.timing.median < best->timing.median)) best = std::move(result);
  }

 private:
  Backend backend_;
  TrialOptions options_;
  Stream& stream_;
  std::map<std::string_view, std::optional<KernelResult>> known_;
  std::set<std::string> wrong_, missing_;
};

void append(std::vector<Cell>& cells, std::vector<Cell> more) {
  for (Cell& cell : more) cells.push_back(std::move(cell));
}

std::vector<Column> columns_of(std::vector<Column> more) {
  more.insert(more.begin(), kSubjectColumns.begin(), kSubjectColumns.end());
  return more;
}

/// One of the papers: adds rows to its tables, matrix by matrix.
class Paper {
 public:
  virtual ~Paper() = default;
  virtual void measure(Bench& bench, Trial& trial, const Subject& subject) = 0;
  /// The rows so far.
  virtual ResultTable table() const { return table_; }

 protected:
  ResultTable table_;
};

/// Paper 2, course text on parallel patterns: which format for which class of matrix.
class Formats final : public Paper {
 public:
  Formats() {
    table_.title = "Paper 2: formats by class of matrix";
    table_.notes = {
        "Speed-up of each format over csr (the fastest of our kernels, layouts and policies of each); –: it does not suit",
        "the matrix, or there is no kernel. advised: by the course text for this class."};
    table_.columns = columns_of({{"advised", "advised"}, {"fastest", "fastest"}, {"csr_us", "csr µs"}});
    for (const std::string_view format : kCourseFormats)
      if (format != "csr") table_.columns.push_back({std::string(format), std::string(format)});
  }

  void measure(Bench& bench, Trial& trial, const Subject& subject) override {
    std::vector<Cell> cells = subject.cells(), speed_ups;
    std::optional<KernelResult> csr, fastest;
    for (const std::string_view format : kCourseFormats) {
      std::optional<KernelResult> best;
      for (const Kernel& kernel : kernels())
        if (kernel.backend == bench.backend() && kernel.format == format && !kernel.name.ends_with("_cusparse"))
          if (auto result = bench.best(trial, kernel)) bench.keep(std::move(*result), best);
      if (format == "csr") csr = best;
      else speed_ups.push_back(speed_up(csr, best));
      if (best) bench.keep(*best, fastest);
    }
    std::string_view advice = "–";
    for (const PaperClass& one : kClasses)
      if (one.matrices.name == subject.matrix.name) advice = one.advice;
    append(cells,
           {Cell::word(std::string(advice)), fastest ? Cell::word(fastest->format) : Cell::none(), microseconds(csr)});
    append(cells, std::move(speed_ups));
    table_.rows.push_back(std::move(cells));
  }
};

/// Paper 3, Okada, Okamoto and Imamura: threads a row by formula and by measuring, rows as they are and sorted.
class ThreadsPerRow final : public Paper {
 public:
  ThreadsPerRow() {
    table_.title = "Paper 3: threads a row (NT) of csr_vector, by the formula and by measuring 1 … 32";
    table_.notes = {
        "loss: time that the formula costs over the best NT. sorted: rows by descending length, y left in that order.",
        "Two GPUs, with the exchange: mpirun -n 2 shardmat multiply MATRIX --measure --sort local"};
    table_.columns = columns_of({{"mean_row", "mean row"},
                                 {"max_row", "max row"},
                                 {"formula", "formula"},
                                 {"best", "best"},
                                 {"formula_us", "formula µs"},
                                 {"best_us", "best µs"},
                                 {"loss", "loss"},
                                 {"sorted_best", "sorted best"},
                                 {"sorted_us", "sorted µs"},
                                 {"sorted_loss", "sorted loss"},
                                 {"sorting", "sorting gains"},
                                 {"cusparse_us", "cuSPARSE µs"}});
  }

  void measure(Bench& bench, Trial& trial, const Subject& subject) override {
    const Kernel* kernel = bench.find_or_note("csr_vector");
    if (kernel == nullptr) return;
    const Sweep usual = sweep(bench, trial, *kernel);
    const HostCsr rows = sort_rows(subject.csr);
    Trial sorted_trial = bench.trial(rows.view(), subject.type);
    const Sweep sorted = sweep(bench, sorted_trial, *kernel);
    const RowStatistics& lengths = trial.input().rows();
    std::vector<Cell> cells = subject.cells();
    append(cells, {Cell::figure(lengths.mean_row, 1), Cell::count(lengths.max_row), Cell::count(usual.formula_threads),
                   Cell::count(usual.best_threads), microseconds(usual.formula), microseconds(usual.best), usual.loss(),
                   Cell::count(sorted.best_threads), microseconds(sorted.best), sorted.loss(),
                   speed_up(usual.best, sorted.best), microseconds(bench.best(trial, "csr_cusparse"))});
    table_.rows.push_back(std::move(cells));
  }

 private:
  struct Sweep {
    std::optional<KernelResult> formula, best;
    int formula_threads = 0, best_threads = 0;
    Cell loss() const {
      return formula && best ? Cell::percent(formula->timing.median / best->timing.median - 1) : Cell::none();
    }
  };

  static Sweep sweep(Bench& bench, Trial& trial, const Kernel& kernel) {
    Sweep result;
    const StoredMatrix stored = trial.convert(find_format(kernel.format), {});
    const std::vector<Policy> policies = kernel.policies(trial.input().rows());
    result.formula_threads = threads_per_row_by_formula(trial.input().rows());
    for (const Policy& policy : policies) {
      const int threads = policy.at("threads_per_row");
      const KernelResult one = trial.measure(kernel, stored, policy);
      const double before = result.best ? result.best->timing.median : HUGE_VAL;
      bench.keep(one, result.best);
      if (result.best && result.best->timing.median < before) result.best_threads = threads;
      if (threads == result.formula_threads && one.measured() && one.right()) result.formula = one;
    }
    return result;
  }
};

/// Paper 4, Tomimori, Tanabe, Takata and Joe: spatial locality of the columns against what a cache makes of it, and Fold.
class Locality final : public Paper {
 public:
  Locality() {
    table_.title = "Paper 4: spatial locality of the column sequence, and the Fold method";
    table_.notes = {
        "locality: mean number of consecutive columns in one 128-byte line of x; one line: 1 - 1/locality, the hit rate of",
        "a cache of one line; L1 model: of 192 KB, 4 ways, least recently used out, for one of 132 SMs (no measurement).",
        "fold: speed-up over csr_scalar."};
    table_.columns = columns_of({{"rows", "rows"},
                                 {"locality", "locality"},
                                 {"one_line_hit_rate", "one line"},
                                 {"l1_hit_rate", "L1 model"},
                                 {"csr_scalar_us", "csr_scalar µs"},
                                 {"fold_us", "fold µs"},
                                 {"fold", "fold"}});
  }

  void measure(Bench& bench, Trial& trial, const Subject& subject) override {
    const double locality = column_locality(subject.csr, line_bits(subject.type));
    const auto csr = bench.best(trial, "csr_scalar"), fold = bench.best(trial, "fold");
    std::vector<Cell> cells = subject.cells();
    append(cells, {Cell::count(subject.csr.rows), Cell::figure(locality, 2),
                   locality > 0 ? Cell::percent(1 - 1 / locality) : Cell::none(),
                   Cell::percent(l1_hit_rate(subject.csr, subject.type)), microseconds(csr), microseconds(fold),
                   speed_up(csr, fold)});
    table_.rows.push_back(std::move(cells));
  }
};

/// Paper 5, Kawamura, Yoneda, Iwamura, Watanabe and Inoguchi: what packing runs of columns saves.
class RowBlockPacking final : public Paper {
 public:
  RowBlockPacking() {
    table_.title = "Paper 5: row block packing, memory and speed against the format it packs";
    table_.notes = {
        "memory: bytes of the packed format over those of the other, less one. The last line is the mean of the matrices "
        "above."};
    for (const auto& [packed, usual] : kPackedPairs)
      for (const char* what : {"memory", "speed-up"})
        table_.columns.push_back(
            {fmt::format("{}_{}", packed, what[0] == 'm' ? "memory" : "speed_up"), fmt::format("{} {}", packed, what)});
    table_.columns = columns_of(std::move(table_.columns));
  }

  void measure(Bench& bench, Trial& trial, const Subject& subject) override {
    std::vector<Cell> cells = subject.cells();
    for (std::size_t i = 0; i < std::size(kPackedPairs); ++i) {
      const auto packed = bench.best(trial, kPackedPairs[i][0]), usual = bench.best(trial, kPackedPairs[i][1]);
      const bool both = packed && usual && usual->format_bytes > 0;
      append(cells,
             {both ? Cell::percent(static_cast<double>(packed->format_bytes) / static_cast<double>(usual->format_bytes) - 1)
                   : Cell::none(),
              speed_up(usual, packed)});
    }
    table_.rows.push_back(std::move(cells));
  }

  ResultTable table() const override {
    ResultTable result = Paper::table();
    std::vector<Cell> means{Cell::word("mean"), Cell::word("")};
    for (std::size_t c = means.size(); c < result.columns.size(); ++c) {
      double sum = 0;
      int count = 0;
      for (const auto& row : result.rows)
        if (row[c].value.is_number()) sum += row[c].value.get<double>(), ++count;
      const bool memory = result.columns[c].key.ends_with("memory");
      means.push_back(count == 0 ? Cell::none() : memory ? Cell::percent(sum / count) : Cell::figure(sum / count, 2));
    }
    result.rows.push_back(std::move(means));
    return result;
  }
};

std::unique_ptr<Paper> make_paper(int number) {
  switch (number) {
    case 2:
      return std::make_unique<Formats>();
    case 3:
      return std::make_unique<ThreadsPerRow>();
    case 4:
      return std::make_unique<Locality>();
    default:
      return std::make_unique<RowBlockPacking>();
  }
}

struct Options : BenchOptions {
  std::vector<int> papers{2, 3, 4, 5};
  std::int64_t gmres_iterations = 1000;

  bool gmres() const { return std::find(papers.begin(), papers.end(), 5) != papers.end() && gmres_iterations > 0; }
};

/// True for a matrix that is named, and for the classes that come from finite elements and stencils, as the paper's.
bool suits_gmres(const NamedMatrix& matrix) {
  if (matrix.name == matrix.argument) return true;
  return matrix.name == "blocks" || matrix.name == "stencil";
}

class PapersBench {
 public:
  /// `communicator`: of this process alone; null without GMRES.
  PapersBench(const Options& options, Communicator* communicator)
      : options_(options),
        machine_(examine_machine(options.backend)),
        guard_(machine_.device),
        stream_(machine_.device),
        flush_(options.warm ? nullptr : std::make_unique<CacheFlush>(machine_.device)),
        repetitions_(options.usual_repetitions(machine_.device.backend)),
        bench_(machine_, {repetitions_, flush_.get(), options.verify}, stream_) {
    for (const int number : options.papers) papers_.push_back(make_paper(number));
    if (communicator != nullptr) gmres_.emplace(*communicator, machine_.device.backend, options.gmres_iterations);
  }

  /// Saves what there is after every matrix in each table.
  void measure_all(const GrowingReport& file) {
    std::vector<MatrixClass> classes;
    for (const PaperClass& one : kClasses) classes.push_back(one.matrices);
    const Progress progress = make_progress_bar();
    for (const NamedMatrix& matrix :
         matrices_from(options_.matrices, classes, options_.matrix_size(machine_.device.backend))) {
      const auto rows = std::make_shared<const HostCsr>(load_matrix(matrix.argument, progress));
      const CsrView csr = rows->view();
      for (const ValueType type : options_.value_types()) {
        Trial trial = bench_.trial(csr, type);
        bench_.start();
        for (std::size_t i = 0; i < papers_.size(); ++i) {
          papers_[i]->measure(bench_, trial, {matrix, csr, type});
          file.save([&] { return json(); });
          report(progress, fmt::format("{} {}", matrix.name, name(type)), static_cast<std::int64_t>(i) + 1,
                 std::ssize(papers_));
        }
        if (!gmres_ || type != ValueType::f64 || !suits_gmres(matrix)) continue;
        gmres_->measure(matrix.name, rows, trial);
        file.save([&] { return json(); });
      }
    }
  }

  std::string text() const {
    std::string text = fmt::format("{}Medians of {} products, caches {} between them.\n", machine_.text(), repetitions_,
                                   options_.warm ? "left warm" : "flushed");
    for (const std::string& kernel : bench_.missing())
      text += fmt::format("Note: there is no kernel {} on the {} backend.\n", kernel, name(machine_.device.backend));
    for (const auto& paper : papers_) text += "\n" + paper->table().text();
    if (gmres_) text += "\n" + gmres_->table().text();
    return text;
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json json{{"machine", machine_.json()},
                                {"repetitions", repetitions_},
                                {"missing_kernels", bench_.missing()},
                                {"wrong", bench_.wrong()},
                                {"tables", nlohmann::ordered_json::object()}};
    for (std::size_t i = 0; i < papers_.size(); ++i)
      json["tables"][fmt::format("paper_{}", options_.papers[i])] = papers_[i]->table().json();
    if (gmres_) json["tables"]["paper_5_gmres"] = gmres_->table().json();
    return json;
  }

  const std::set<std::string>& wrong() const { return bench_.wrong(); }

 private:
  Options options_;
  Machine machine_;
  DeviceGuard guard_;
  Stream stream_;
  std::unique_ptr<CacheFlush> flush_;
  int repetitions_;
  Bench bench_;
  std::vector<std::unique_ptr<Paper>> papers_;
  std::optional<GmresTable> gmres_;
};

int run(const Options& o, Communicator* communicator) {
  const Outputs outputs{o.json, ""};
  require_outputs(outputs, "", o.matrices);
  const GrowingReport file(outputs, "");
  PapersBench run(o, communicator);
  run.measure_all(file);
  if (o.json != "-") fmt::print("{}", run.text());
  file.finish(run.json());
  if (run.wrong().empty()) return 0;
  fmt::print(stderr, "shardmat: wrong results of: {}\n", fmt::join(run.wrong(), "; "));
  return static_cast<int>(ErrorKind::verification);
}

}  // namespace

std::function<int()> add_bench_papers(const CommandLine& bench) {
  const CommandLine app =
      bench.add_subcommand("papers", "The tables of the papers that introduced the formats, measured on this machine");
  auto options = std::make_shared<Options>();
  add_bench_options(app, *options);
  app.add_option("--paper", options->papers,
                 "numbers of the tables to make. 2: formats by class of matrix; 3: threads per row; 4: locality and Fold; "
                 "5: row block packing, alone and in GMRES")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(2, 5))
      ->capture_default_str();
  app.add_option("--gmres-iterations", options->gmres_iterations,
                 "paper 5: the most iterations of each GMRES, of six for every matrix of finite elements or a stencil and "
                 "for those that are named; in f64 only. 0: no GMRES")
      ->check(whole_number(0, 1'000'000))
      ->capture_default_str();
  app.footer(
      "\nExamples:\n  shardmat bench papers\n  shardmat bench papers --paper 5 nd24k.mtx.gz "
      "elasticity:mesh=part.h5,degree=2\n"
      "  shardmat bench papers --size tiny --backend host --json papers.json\n");
  return [app, options] {
    require_single_process("bench papers");
    if (!options->gmres()) return run(*options, nullptr);
    constexpr double kTimeout = 60;
    return run_ranks(app, kTimeout, [&](Communicator& communicator) { return run(*options, &communicator); });
  };
}

}  // namespace shardmat::tools
