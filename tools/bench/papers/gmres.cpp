#include "tools/bench/papers/gmres.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "kernels/choose/registry.h"
#include "partition/source/row_source.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/run/time_product.h"
#include "runtime/solvers/solver.h"
#include "runtime/source/matrix_source.h"
#include "tools/bench/papers/paper.h"

namespace shardmat::tools {
namespace {

constexpr std::int64_t kRestart = 30;
constexpr double kTolerance = 1e-8;
constexpr int kMoreSolves = 2;
constexpr double kMoreSeconds = 0.5;

/// One thread a row, as in the paper; on the host NAME_host.
std::string kernel_of(const std::string& kernel, Backend backend) {
  if (backend == Backend::cuda) return kernel;
  return kernel == "csr_scalar" ? "csr_host" : kernel + "_host";
}

std::vector<std::string> notes_for(std::int64_t most_iterations) {
  return {
      fmt::format(
          "A x = 1 in f64 from x = 0 by Algorithm 1: modified Gram-Schmidt, no preconditioner; restart {}. Ends at a",
          kRestart),
      fmt::format(
          "residual of {:g} of b, or after {} iterations (the paper: 1000; it names neither b, tolerance nor restart).",
          kTolerance, most_iterations),
      "whole: convert + transfer + solve, without reading the file; of short solves the fastest of three. products: their",
      "number times one that was measured after the solve. rest: vectors and sums. transfer: a copy of the format's bytes "
      "to",
      "the GPU. convert: the rest of making the format. gain: share of the whole time that packing saves.",
      "The paper's matrices are not shipped. From SuiteSparse: cant, rma10, consph, parabolic_fem, pwtk, thermal2, "
      "af_shell9,",
      "F1, nd24k, dielFilterV2real, Cube_Coup_dt0, Bump_2911, Queen_4147. Pass them as files: bench papers --paper 5",
      "cant.mtx.gz. UT-Heart1 and 2 are the authors' own. Of symmetric files the paper multiplies the stored triangle "
      "only."};
}

Cell milliseconds(double seconds) { return Cell::figure(1e3 * seconds, 3); }

}  // namespace

const std::vector<GmresTable::Format>& GmresTable::formats() {
  static const std::vector<Format> all{{"csr", "csr_scalar", {}}, {"rbp_csr", "rbp_csr", 0}, {"ell", "ell", {}},
                                       {"rbp_ell", "rbp_ell", 2}, {"ell_r", "ell_r", {}},    {"rbp_ell_r", "rbp_ell_r", 4}};
  return all;
}

GmresTable::GmresTable(Communicator& communicator, Backend backend, std::int64_t most_iterations)
    : communicator_(communicator),
      context_(
          std::make_unique<Context>(communicator, backend == Backend::cuda ? BackendChoice::cuda : BackendChoice::host)),
      most_iterations_(most_iterations),
      gains_(formats().size()) {
  if (backend == Backend::cuda) host_context_ = std::make_unique<Context>(communicator, BackendChoice::host);
  table_.title = "Paper 5: GMRES with each format inside (Figs. 8 and 9)";
  table_.notes = notes_for(most_iterations);
  table_.columns = {{"matrix", "matrix"},        {"backend", "backend"},
                    {"format", "format"},        {"rows", "rows"},
                    {"nnz", "nonzeros"},         {"iterations", "iterations"},
                    {"reason", "reason"},        {"residual", "residual"},
                    {"whole_ms", "whole ms"},    {"convert_ms", "convert"},
                    {"transfer_ms", "transfer"}, {"products_ms", "products"},
                    {"rest_ms", "rest"},         {"gain", "gain"},
                    {"over_host", "host / GPU"}};
}

GmresTable::Solved GmresTable::solve(Context& context, const std::shared_ptr<const HostCsr>& matrix, Trial& trial,
                                     const Format& format) const {
  Solved solved;
  const shardmat::Format& stored_as = find_format(format.name);
  {
    const StoredMatrix stored = trial.convert(stored_as, trial.layouts(stored_as).front());
    if (!stored.refused.empty()) {
      solved.reason = "no memory";
      return solved;
    }
    solved.transfer = copy_seconds(stored.storage->bytes, context.stream());
    solved.convert = std::max(0.0, stored.seconds - solved.transfer);
  }
  MatrixSource source;
  source.rows = make_memory_source(matrix, format.name);
  LoadOptions load;
  load.type = ValueType::f64;
  load.plan.kernel = kernel_of(format.kernel, context.device().backend);
  SolverOptions options;
  options.solver = "gmres", options.gram_schmidt = GramSchmidt::modified;
  options.rtol = kTolerance, options.restart = kRestart, options.max_iterations = most_iterations_;
  try {
    DistributedMatrix a(source, context, load);
    Solver solver(a, options);
    a.drop_host_rows();
    DistributedVector b(a, VectorLayout::rows, ValueType::f64), x(a, VectorLayout::rows, ValueType::f64);
    b.fill(1, context.stream());
    SolveResult result = solver.solve(b, x);
    const Timer timer;
    for (int again = 0; again < kMoreSolves && timer.seconds() + result.seconds < kMoreSeconds; ++again) {
      x.fill(0, context.stream());
      result.seconds = std::min(result.seconds, solver.solve(b, x).seconds);  // the bits are the same
    }
    const SolvedColumn& column = result.columns[0];
    solved.reason = name(column.reason);
    solved.iterations = result.iterations;
    solved.residual = column.norm_of_b > 0 ? column.true_residual / column.norm_of_b : 0;
    solved.solve = result.seconds;
    const std::int64_t products = 1 + result.iterations + (result.iterations + kRestart - 1) / kRestart;
    solved.product = static_cast<double>(products) * time_product(solver.product(), context.stream()).product;
  } catch (const AgreedError& error) {
    if (error.kind() != ErrorKind::resources) throw;
    solved.reason = "no memory";
  }
  return solved;
}

std::vector<GmresTable::Solved> GmresTable::solve_all(Context& context, const std::shared_ptr<const HostCsr>& matrix,
                                                      Trial& trial) const {
  const ContextScope scope(context);
  std::vector<Solved> all;
  for (const Format& format : formats()) all.push_back(solve(context, matrix, trial, format));
  return all;
}

void GmresTable::measure(const std::string& name, const std::shared_ptr<const HostCsr>& matrix, Trial& trial) {
  if (matrix->rows != matrix->cols || matrix->rows == 0) return;
  const std::vector<Solved> here = solve_all(*context_, matrix, trial);
  for (std::size_t i = 0; i < here.size(); ++i)
    if (const auto packs = formats()[i].packs; packs && here[i].iterations > 0 && here[*packs].iterations > 0)
      gains_[i].push_back(1 - here[i].whole() / here[*packs].whole());
  if (!host_context_) return add_rows(name, *matrix, Backend::host, here, nullptr);
  Trial host_trial(matrix->view(), ValueType::f64, host_context_->stream(), {1, nullptr, false});
  const std::vector<Solved> on_host = solve_all(*host_context_, matrix, host_trial);
  add_rows(name, *matrix, Backend::cuda, here, &on_host);
  add_rows(name, *matrix, Backend::host, on_host, nullptr);
}

void GmresTable::add_rows(const std::string& name, const HostCsr& matrix, Backend backend, const std::vector<Solved>& solved,
                          const std::vector<Solved>* on_host) {
  for (std::size_t i = 0; i < solved.size(); ++i) {
    const Solved& one = solved[i];
    std::vector<Cell> row{Cell::word(name), Cell::word(std::string(shardmat::name(backend))), Cell::word(formats()[i].name),
                          Cell::count(matrix.rows), Cell::count(std::ssize(matrix.values))};
    const auto packs = formats()[i].packs;
    if (one.iterations == 0) {
      row.insert(row.end(), {Cell::none(), Cell::word(one.reason)});
      row.insert(row.end(), table_.columns.size() - row.size(), Cell::none());
    } else {
      const bool compares = packs && solved[*packs].iterations > 0;
      const bool has_host = on_host != nullptr && (*on_host)[i].iterations > 0;
      for (const Cell& cell :
           {Cell::count(one.iterations), Cell::word(one.reason), Cell{one.residual, fmt::format("{:.1e}", one.residual)},
            milliseconds(one.whole()), milliseconds(one.convert), milliseconds(one.transfer), milliseconds(one.product),
            milliseconds(std::max(0.0, one.solve - one.product)),
            compares ? Cell::percent(1 - one.whole() / solved[*packs].whole()) : Cell::none(),
            has_host ? Cell::figure((*on_host)[i].whole() / one.whole(), 1) : Cell::none()})
        row.push_back(cell);
    }
    table_.rows.push_back(std::move(row));
  }
}

ResultTable GmresTable::table() const {
  ResultTable result = table_;
  std::vector<std::string> means;
  for (std::size_t i = 0; i < gains_.size(); ++i)
    if (!gains_[i].empty())
      means.push_back(fmt::format(
          "{} {:.1f} %", formats()[i].name,
          100 * std::accumulate(gains_[i].begin(), gains_[i].end(), 0.0) / static_cast<double>(gains_[i].size())));
  if (!means.empty())
    result.notes.push_back(fmt::format("Mean gain on the {}: {}. In the paper, on a V100: 6.6 %, 4.1 %, 3.5 %.",
                                       name(context_->device().backend), fmt::join(means, ", ")));
  return result;
}

}  // namespace shardmat::tools
