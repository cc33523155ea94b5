// The tables and figures of the papers that the formats come from, measured on this machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/print_error.h"
#include "kernels/matrix/symmetry.h"
#include "tools/bench/bench.h"
#include "tools/bench/machine.h"
#include "tools/bench/options.h"
#include "tools/bench/outputs.h"
#include "tools/bench/papers/batches.h"
#include "tools/bench/papers/formats.h"
#include "tools/bench/papers/gmres.h"
#include "tools/bench/papers/locality.h"
#include "tools/bench/papers/packing.h"
#include "tools/bench/papers/threads.h"
#include "tools/bench/result_table.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/plot.h"
#include "tools/cli/progress_bar.h"
#include "tools/cli/run_ranks.h"

namespace shardmat::tools {
namespace {

constexpr double kTimeout = 60;
constexpr const char* kPlotScript = "plot_papers.py";
constexpr const char* kHtmlScript = "papers_html.py";

struct Options : BenchOptions {
  std::vector<std::string> names{"1", "2", "3", "4", "5"};
  std::vector<int> papers;  ///< numbers of `names`
  GmresSettings gmres_settings;
  std::string fold_width = "0";
  bool stored_triangle = false;
  LocalitySettings locality;
  std::string plot, html;

  bool asks_for(int paper) const { return std::find(papers.begin(), papers.end(), paper) != papers.end(); }
  bool gmres() const { return asks_for(5) && gmres_settings.most_iterations > 0; }
};

/// True for a matrix that is named, and for the classes that come from finite elements and stencils, as the paper's.
bool suits_gmres(const NamedMatrix& matrix) {
  if (matrix.name == matrix.argument) return true;
  return matrix.name == "blocks" || matrix.name == "stencil";
}

/// The lower triangle with the diagonal.
HostCsr lower_triangle(const HostCsr& m) {
  HostCsr lower;
  lower.rows = m.rows;
  lower.cols = m.cols;
  for (std::size_t i = 0; i < static_cast<std::size_t>(m.rows); ++i) {
    for (auto k = static_cast<std::size_t>(m.row_ptr[i]); k < static_cast<std::size_t>(m.row_ptr[i + 1]); ++k)
      if (m.col_idx[k] <= static_cast<std::int64_t>(i))
        lower.col_idx.push_back(m.col_idx[k]), lower.values.push_back(m.values[k]);
    lower.row_ptr.push_back(std::ssize(lower.values));
  }
  return lower;
}

/// True if the matrix equals its transpose, so that a file may store one triangle.
bool is_symmetric(const HostCsr& m) {
  if (m.rows != m.cols) return false;
  const Symmetry found = symmetry(m.view());
  return found.equal == found.off_diagonal;
}

/// A number from 1 to 5, or from 000 to 004.
ValueCheck paper_number() {
  return ValueCheck([](std::string& text) -> std::string {
    const bool three = text.size() == 3 && text.starts_with("00") && text[2] >= '0' && text[2] <= '4';
    if (three || (text.size() == 1 && text[0] >= '1' && text[0] <= '5')) return {};
    return fmt::format("\"{}\" is no paper; give a whole number from 1 to 5, or 000 to 004", text);
  });
}

ValueCheck fold_width() {
  return ValueCheck([](std::string& text) -> std::string {
    const bool digits = !text.empty() && text.size() <= 7 && text.find_first_not_of("0123456789") == std::string::npos;
    if (text == "longest" || (digits && std::stoll(text) <= 1'000'000)) return {};
    return fmt::format("\"{}\" is no width; give a whole number from 0 to 1000000, or longest", text);
  });
}

/// What the texts of the options mean.
void finish(Options& o) {
  o.papers.clear();
  for (const std::string& name : o.names) o.papers.push_back(name.size() == 3 ? name[2] - '0' + 1 : name[0] - '0');
  o.locality.fold_width = o.fold_width == "longest" ? LocalitySettings::kLongest : std::stoll(o.fold_width);
}

std::unique_ptr<Paper> make_paper(int number, const Options& options, Device device) {
  switch (number) {
    case 2:
      return std::make_unique<Formats>();
    case 3:
      return std::make_unique<ThreadsPerRow>();
    case 4:
      return std::make_unique<LocalityPaper>(options.locality, options.stored_triangle, device);
    default:
      return std::make_unique<RowBlockPacking>(options.stored_triangle);
  }
}

/// A matrix, and the papers that measure it.
struct Work {
  NamedMatrix matrix;
  std::set<int> papers;
};

/// The named matrices for all papers; else the course text's classes, and for paper 4 its own.
std::vector<Work> work_of(const Options& options, Size size) {
  std::vector<Work> all;
  std::set<int> with_classes(options.papers.begin(), options.papers.end());
  with_classes.erase(1);
  if (options.matrices.empty()) with_classes.erase(4);
  if (!with_classes.empty())
    for (const NamedMatrix& one : matrices_from(options.matrices, course_classes(), size))
      all.push_back({one, with_classes});
  if (options.matrices.empty() && options.asks_for(4))
    for (const NamedMatrix& one : locality_matrices(size)) all.push_back({one, {4}});
  return all;
}

/// {"tables": {name: …}, "printed": {name: {"headings", "rows"}}}: figures, and the same as in text.
void add_tables(nlohmann::ordered_json& json, const Paper::Tables& tables) {
  json["tables"] = nlohmann::ordered_json::object();
  json["printed"] = nlohmann::ordered_json::object();
  for (const auto& [key, table] : tables) {
    json["tables"][key] = table.json();
    nlohmann::ordered_json headings = nlohmann::ordered_json::array(), rows = nlohmann::ordered_json::array();
    for (const Column& column : table.columns)
      if (column.in_text) headings.push_back(column.heading);
    for (const auto& row : table.rows) {
      nlohmann::ordered_json cells = nlohmann::ordered_json::array();
      for (std::size_t c = 0; c < row.size(); ++c)
        if (table.columns[c].in_text) cells.push_back(row[c].text);
      rows.push_back(std::move(cells));
    }
    json["printed"][key] = {{"headings", headings}, {"rows", rows}};
  }
}

void require_files(const Options& o) {
  require_outputs({o.json, o.plot}, kPlotScript, o.matrices, {o.html});
  if (o.html.empty()) return;
  check_report_file(o.html);
  require_plot_script(kHtmlScript, "--html");
}

/// What --html asks for; the other files are those of GrowingReport.
void write_page(const Options& o, const nlohmann::ordered_json& report) {
  if (!o.html.empty()) plot(kHtmlScript, document(report, true), o.html, "--html");
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
    for (const int number : options.papers)
      if (number == 1) batches_.emplace(options.matrix_size(machine_.device.backend) != Size::full, bench_.options());
      else papers_.emplace_back(number, make_paper(number, options, machine_.device));
    if (communicator != nullptr) gmres_.emplace(*communicator, machine_.device.backend, options.gmres_settings);
    matrices_.title = "Matrices";
    matrices_.columns = {{"matrix", "matrix"}, {"source", "source"}, {"rows", "rows"},
                         {"cols", "columns"},  {"nnz", "nonzeros"},  {"papers", "papers"}};
  }

  /// Saves what there is after every matrix in each table.
  void measure_all(const GrowingReport& file) {
    if (batches_) batches_->measure(stream_, progress_, [&] { file.save([&] { return json(); }); });
    for (const Work& work : work_of(options_, options_.matrix_size(machine_.device.backend))) {
      const auto rows = std::make_shared<const HostCsr>(load_matrix(work.matrix.argument, progress_));
      matrices_.rows.push_back({Cell::word(work.matrix.name), Cell::word(work.matrix.argument), Cell::count(rows->rows),
                                Cell::count(rows->cols), Cell::count(rows->nnz()),
                                Cell::word(fmt::format("{}", fmt::join(work.papers, ", ")))});
      std::set<int> whole = work.papers, triangle;
      if (options_.stored_triangle)
        for (const int paper : {4, 5})
          if (whole.erase(paper) > 0) triangle.insert(paper);
      measure(work.matrix, rows, rows->nnz(), whole, file);
      if (triangle.empty()) continue;
      const auto lower = is_symmetric(*rows) ? std::make_shared<const HostCsr>(lower_triangle(*rows)) : rows;
      measure(work.matrix, lower, rows->nnz(), triangle, file);
    }
  }

  std::string text() const {
    std::string text = fmt::format("{}Medians of {} products, caches {} between them.\n", machine_.text(), repetitions_,
                                   options_.warm ? "left warm" : "flushed");
    for (const std::string& kernel : bench_.missing())
      text += fmt::format("Note: there is no kernel {} on the {} backend.\n", kernel, name(machine_.device.backend));
    for (const auto& [key, table] : tables()) text += "\n" + table.text();
    return text;
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json json{{"machine", machine_.json()},
                                {"repetitions", repetitions_},
                                {"missing_kernels", bench_.missing()},
                                {"wrong", wrong()}};
    add_tables(json, tables());
    return json;
  }

  std::set<std::string> wrong() const {
    std::set<std::string> all = bench_.wrong();
    if (batches_) all.insert(batches_->wrong().begin(), batches_->wrong().end());
    return all;
  }

 private:
  void measure(const NamedMatrix& matrix, const std::shared_ptr<const HostCsr>& rows, std::int64_t whole_nnz,
               const std::set<int>& papers, const GrowingReport& file) {
    if (papers.empty()) return;
    const CsrView csr = rows->view();
    for (const ValueType type : options_.value_types()) {
      Trial trial = bench_.trial(csr, type);
      bench_.start();
      for (const auto& [number, paper] : papers_) {
        if (!papers.contains(number)) continue;
        report(progress_, fmt::format("paper {} {} {}", number, matrix.name, name(type)), 0, 1);
        paper->measure(bench_, trial, {matrix, csr, type, whole_nnz});
        file.save([&] { return json(); });
      }
      if (!gmres_ || type != ValueType::f64 || !papers.contains(5) || !suits_gmres(matrix)) continue;
      gmres_->measure(matrix.name, rows, trial);
      file.save([&] { return json(); });
    }
  }

  Paper::Tables tables() const {
    Paper::Tables all;
    if (!papers_.empty()) all.emplace_back("matrices", matrices_);
    if (batches_)
      for (auto& table : batches_->tables()) all.push_back(std::move(table));
    for (const auto& [number, paper] : papers_)
      for (auto& table : paper->tables()) all.push_back(std::move(table));
    if (gmres_)
      for (auto& table : gmres_->tables()) all.push_back(std::move(table));
    return all;
  }

  Options options_;
  Machine machine_;
  DeviceGuard guard_;
  Stream stream_;
  std::unique_ptr<CacheFlush> flush_;
  int repetitions_;
  PaperBench bench_;
  const Progress progress_ = make_progress_bar();
  ResultTable matrices_;
  std::vector<std::pair<int, std::unique_ptr<Paper>>> papers_;
  std::optional<BatchesPaper> batches_;
  std::optional<GmresTable> gmres_;
};

int code_of(const std::set<std::string>& wrong) {
  if (wrong.empty()) return 0;
  print_error("shardmat: wrong results of: {}\n", fmt::join(wrong, "; "));
  return static_cast<int>(ErrorKind::verification);
}

int run(const Options& o, Communicator* communicator) {
  require_files(o);
  const GrowingReport file({o.json, o.plot}, kPlotScript);
  PapersBench run(o, communicator);
  run.measure_all(file);
  if (o.json != "-") fmt::print("{}", run.text());
  file.finish(run.json());
  write_page(o, run.json());
  return code_of(run.wrong());
}

void print_ranks(const Machine& machine, int ranks, int repetitions, const Paper::Tables& tables) {
  fmt::print("{}{} ranks; medians of {} products, caches warm.\n", machine.text(), ranks, repetitions);
  for (const auto& [key, table] : tables) fmt::print("\n{}", table.text());
}

/// Paper 3's procedure on the ranks that mpirun started. Collective.
int run_on_ranks(const Options& o, Communicator& all) {
  const bool speaks = all.rank() == 0;
  all.run_agreed([&] {
    if (speaks) require_files(o);
  });
  const Machine machine = all.run_agreed([&] { return examine_machine(o.backend); });
  const int repetitions = o.usual_repetitions(machine.device.backend);
  SortedOnRanks sorted;
  const auto json = [&] {
    nlohmann::ordered_json report{{"machine", machine.json()},
                                  {"repetitions", repetitions},
                                  {"missing_kernels", nlohmann::ordered_json::array()},
                                  {"wrong", sorted.wrong()}};
    add_tables(report, sorted.tables());
    return report;
  };
  const GrowingReport file({o.json, o.plot}, kPlotScript, all);
  for (const NamedMatrix& matrix : matrices_from(o.matrices, course_classes(), o.matrix_size(machine.device.backend))) {
    const HostCsr rows = all.run_agreed([&] { return load_matrix(matrix.argument, {}); });
    for (const ValueType type : o.value_types()) {
      sorted.measure(all, machine.device.backend, repetitions, matrix, rows, type);
      if (speaks) all.run_agreed([&] { file.save(json); });
      else all.run_agreed([] {});
    }
  }
  all.run_agreed([&] {
    if (!speaks) return;
    if (o.json != "-") print_ranks(machine, all.size(), repetitions, sorted.tables());
    file.finish(json());
    write_page(o, json());
  });
  const int wrong = all.all_reduce(static_cast<int>(sorted.wrong().size()), Reduction::max);
  if (wrong == 0) return 0;
  return speaks ? code_of(sorted.wrong()) : static_cast<int>(ErrorKind::verification);
}

}  // namespace

std::function<int()> add_bench_papers(const CommandLine& bench) {
  const CommandLine app =
      bench.add_subcommand("papers", "The tables of the papers that introduced the formats, measured on this machine");
  auto options = std::make_shared<Options>();
  add_bench_options(app, *options);
  app.in(Topic::input)
      .add_option("--paper", options->names,
                  "numbers of the tables to make. 1: batches of small matrices; 2: formats by class of matrix; 3: threads "
                  "per row; 4: locality and Fold; "
                  "5: row block packing, alone and in GMRES. 000 … 004 name the same. With mpirun on several ranks 3 alone: "
                  "sorted rows on 1, 2, 4 … ranks")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(paper_number())
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_flag("--stored-triangle", options->stored_triangle,
                "papers 4 and 5: take the lower triangle of each matrix that equals its transpose, as the papers do of "
                "symmetric files");
  app.in(Topic::computation)
      .add_option("--fold-width", options->fold_width,
                  "paper 4: nonzeros of a folded piece; 0: the mean length of the rows that are not empty; longest: the "
                  "longest row")
      ->check(fold_width())
      ->capture_default_str();
  app.in(Topic::computation)
      .add_flag("--fold-sorted", options->locality.fold_sorted, "paper 4: fold the rows in the order of descending length");
  app.in(Topic::machine)
      .add_option("--l1", options->locality.l1_bytes,
                  "paper 4: bytes of the modelled L1 cache, as 48KiB (default: that of the GPU, else 256 KiB)")
      ->transform(bytes_with_unit())
      ->type_name("BYTES");
  app.in(Topic::machine)
      .add_option("--sms", options->locality.multiprocessors,
                  "paper 4: multiprocessors of the modelled GPU (default: those of the GPU, else 132)")
      ->check(whole_number(1, 10'000));
  app.in(Topic::computation)
      .add_option("--gmres-iterations", options->gmres_settings.most_iterations,
                  "paper 5: the most iterations of each GMRES, of six for every matrix of finite elements or a stencil and "
                  "for those that are named; in f64 only. 0: no GMRES")
      ->check(whole_number(0, 1'000'000))
      ->capture_default_str();
  app.in(Topic::computation)
      .add_option("--gmres-restart", options->gmres_settings.restart, "paper 5: iterations between two restarts of GMRES")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app.in(Topic::computation)
      .add_option("--gmres-tolerance", options->gmres_settings.tolerance,
                  "paper 5: GMRES ends when |b - A x| is this share of |b|")
      ->check(positive_number())
      ->capture_default_str();
  app.in(Topic::output)
      .add_option("--plot", options->plot, "draw the papers' figures to FILE (.svg, .png or .pdf; needs python3-matplotlib)")
      ->check(plot_name())
      ->type_name("FILE")
      ->common();
  app.in(Topic::output)
      .add_option("--html", options->html, "write one page with all figures and tables to FILE (needs python3-matplotlib)")
      ->type_name("FILE")
      ->common();
  app.footer(
      "\nExamples:\n  shardmat bench papers --html papers.html\n  shardmat bench papers --paper 5 nd24k.mtx.gz "
      "elasticity:mesh=part.h5,degree=2\n"
      "  shardmat bench papers --size tiny --backend host --json papers.json\n"
      "  mpirun -n 4 shardmat bench papers --paper 3 rmat:scale=18\n");
  return [app, options] {
    finish(*options);
    const bool several = launch().size > 1;
    if (several && options->papers != std::vector<int>{3})
      throw Error(ErrorKind::usage,
                  "bench papers runs on several ranks for paper 3 only (--paper 3); start the others without mpirun");
    if (!several && !options->gmres()) return run(*options, nullptr);
    return run_ranks(app, kTimeout, [&](Communicator& communicator) {
      return several ? run_on_ranks(*options, communicator) : run(*options, &communicator);
    });
  };
}

}  // namespace shardmat::tools
