#include "tools/bench/papers/threads.h"

#include <fmt/format.h>

#include "kernels/choose/registry.h"
#include "kernels/formats/csr.h"
#include "kernels/matrix/ordering.h"

namespace shardmat::tools {
namespace {

constexpr std::string_view kPaperKernel = "crs_paper";

/// Every NT on one matrix.
struct Sweep {
  Best formula, best;
  int formula_threads = 0, best_threads = 0;
  std::vector<Best> all;

  Cell loss() const { return formula && best ? Cell::percent(formula.seconds() / best.seconds() - 1) : Cell::none(); }
};

Sweep sweep(PaperBench& bench, Trial& trial, const Kernel& kernel) {
  Sweep result;
  const StoredMatrix stored = trial.convert(find_format(kernel.format), {});
  const RowStatistics& rows = trial.input().rows();
  const Policy usual = kernel.policies(rows).front();
  result.formula_threads = threads_per_row_by_formula(rows);
  for (const int threads : kThreadsPerRow) {
    Best& one = result.all.emplace_back();
    bench.keep(trial.measure(kernel, stored, usual.with(fmt::format("threads_per_row={}", threads))), one);
    if (threads == result.formula_threads) result.formula = one;
    if (one && (!result.best || one.seconds() < result.best.seconds())) result.best = one, result.best_threads = threads;
  }
  return result;
}

std::vector<Column> sweep_columns() {
  std::vector<Column> columns{{"order", "rows are"}, {"formula", "formula"}, {"best", "best"}};
  for (const int threads : kThreadsPerRow) columns.push_back({fmt::format("us_{}", threads), fmt::format("NT {}", threads)});
  return subject_columns(std::move(columns));
}

}  // namespace

HostCsr rows_in_order(const CsrView& m, std::span<const std::int64_t> order) {
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

ThreadsPerRow::ThreadsPerRow() {
  table_.title = "Paper 3: threads a row (NT) of crs_paper on one device, by the formula and by measuring 1 … 32";
  table_.notes = {
      "crs_paper: the paper's kernel as we read it: 256 threads a block, partial sums added in shared memory, no unrolling, "
      "no",
      "read-only loads; on the host NT partial sums a row. loss: time that the formula costs over the best NT. sorted: rows "
      "by",
      "descending length, y left in that order. best of ours: our fastest CSR kernel that the tuner takes. The paper, on a",
      "GTX 590, about 200 matrices: the formula often misses the best NT; even the best is at times slower than cuSPARSE.",
      "Several ranks: mpirun -n 4 shardmat bench papers --paper 3."};
  table_.columns = subject_columns({{"mean_row", "mean row"},
                                    {"max_row", "longest"},
                                    {"formula", "formula"},
                                    {"best", "best"},
                                    {"formula_us", "formula µs"},
                                    {"best_us", "best µs"},
                                    {"loss", "loss"},
                                    {"sorted_best", "sorted best"},
                                    {"sorted_us", "sorted µs"},
                                    {"sorted_loss", "sorted loss"},
                                    {"sorting", "sorting gains"},
                                    {"cusparse_us", "cuSPARSE µs"},
                                    {"ours_us", "best of ours µs"}});
  sweep_.title = "Paper 3: µs of crs_paper with every NT; * the formula's";
  sweep_.columns = sweep_columns();
}

void ThreadsPerRow::measure(PaperBench& bench, Trial& trial, const Subject& subject) {
  const Kernel& kernel = *bench.find_or_note(kPaperKernel);
  const Sweep usual = sweep(bench, trial, kernel);
  const HostCsr rows = rows_in_order(subject.csr, order_by_row_length(subject.csr.row_ptr));
  Trial sorted_trial = bench.trial(rows.view(), subject.type);
  const Sweep sorted = sweep(bench, sorted_trial, kernel);
  const RowStatistics& lengths = trial.input().rows();
  const bool on_gpu = bench.backend() == Backend::cuda;
  std::vector<Cell> cells = subject.cells();
  append(cells, {Cell::figure(lengths.mean_row, 1), Cell::count(lengths.max_row), Cell::count(usual.formula_threads),
                 Cell::count(usual.best_threads), microseconds(usual.formula), microseconds(usual.best), usual.loss(),
                 Cell::count(sorted.best_threads), microseconds(sorted.best), sorted.loss(),
                 speed_up(usual.best, sorted.best), microseconds(bench.best(trial, "csr_cusparse")),
                 microseconds(bench.best(trial, on_gpu ? "csr_vector" : "csr_host"))});
  table_.rows.push_back(std::move(cells));
  for (const auto& [name, one] : {std::pair{"as they are", &usual}, std::pair{"sorted", &sorted}}) {
    std::vector<Cell> line = subject.cells();
    append(line, {Cell::word(name), Cell::count(one->formula_threads), Cell::count(one->best_threads)});
    for (std::size_t i = 0; i < kThreadsPerRow.size(); ++i) {
      Cell cell = microseconds(one->all[i]);
      cell.text += kThreadsPerRow[i] == one->formula_threads ? "*" : " ";
      line.push_back(std::move(cell));
    }
    sweep_.rows.push_back(std::move(line));
  }
}

}  // namespace shardmat::tools
