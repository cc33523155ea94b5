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

namespace shardmat::tools {
namespace {

constexpr int kMoreSolves = 2;
constexpr double kMoreSeconds = 0.5;

/// What section 4.4 of the text prints of a format, on a V100 and a CPU: means over 15 matrices.
struct Published {
  double gain, transfer_saved, best_transfer_saved, over_host;  ///< 0: not printed
};
constexpr Published kPublished[] = {{0, 0, 0, 14.9},  {0.066, 0.136, 0.136, 27.0},
                                    {0, 0, 0, 122.1}, {0.041, 0.131, 0.258, 70.3},
                                    {0, 0, 0, 56.7},  {0.035, 0.134, 0.266, 67.7}};

/// One thread a row, as in the paper; on the host NAME_host.
std::string kernel_of(const std::string& kernel, Backend backend) {
  if (backend == Backend::cuda) return kernel;
  return kernel == "csr_scalar" ? "csr_host" : kernel + "_host";
}

std::vector<std::string> notes_for(const GmresSettings& settings) {
  return {
      fmt::format(
          "A x = 1 in f64 from x = 0 by Algorithm 1: modified Gram-Schmidt, no preconditioner; restart {}. Ends at a "
          "residual of {:g} of b, or after {} iterations (the paper: 1000; it names neither b, tolerance nor restart).",
          settings.restart, settings.tolerance, settings.most_iterations),
      "whole: convert + transfer + solve, without reading the file; of short solves the fastest of three. products: their "
      "number times one that was measured after the solve. rest: vectors and sums. transfer: a copy of the format's bytes "
      "to "
      "the GPU. convert: the rest of making the format. gain: share of the whole time that packing saves.",
      "The paper's matrices are not shipped. From SuiteSparse: cant, rma10, consph, parabolic_fem, pwtk, thermal2, "
      "af_shell9, "
      "F1, nd24k, dielFilterV2real, Cube_Coup_dt0, Bump_2911, Queen_4147. Pass them as files: bench papers --paper 5 "
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

GmresTable::GmresTable(Communicator& communicator, Backend backend, const GmresSettings& settings)
    : communicator_(communicator),
      context_(
          std::make_unique<Context>(communicator, backend == Backend::cuda ? BackendChoice::cuda : BackendChoice::host)),
      settings_(settings),
      figures_(formats().size()) {
  if (backend == Backend::cuda) host_context_ = std::make_unique<Context>(communicator, BackendChoice::host);
  table_.title = "Paper 5: GMRES with each format inside (Figs. 8 and 9)";
  table_.notes = notes_for(settings);
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
  options.solver = "gmres", options.preconditioner = "none", options.gram_schmidt = GramSchmidt::modified;
  options.rtol = settings_.tolerance, options.restart = settings_.restart,
  options.max_iterations = settings_.most_iterations;
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
    const std::int64_t products = 1 + result.iterations + (result.iterations + settings_.restart - 1) / settings_.restart;
    // Measured afterwards, they may seem to take longer than the solve that they are part of.
    solved.product =
        std::min(solved.solve, static_cast<double>(products) * time_product(solver.product(), context.stream()).product);
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
  if (!host_context_) {
    add_to_means(here, nullptr);
    return add_rows(name, *matrix, Backend::host, here, nullptr);
  }
  Trial host_trial(matrix->view(), ValueType::f64, host_context_->stream(), {1, nullptr, false});
  const std::vector<Solved> on_host = solve_all(*host_context_, matrix, host_trial);
  add_to_means(here, &on_host);
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

void GmresTable::add_to_means(const std::vector<Solved>& here, const std::vector<Solved>* on_host) {
  for (std::size_t i = 0; i < here.size(); ++i) {
    const Solved& one = here[i];
    if (one.iterations == 0) continue;
    Figures& figures = figures_[i];
    if (const auto packs = formats()[i].packs; packs && here[*packs].iterations > 0) {
      const Solved& usual = here[*packs];
      figures.gains.push_back(1 - one.whole() / usual.whole());
      if (usual.transfer > 0) figures.transfer_saved.push_back(1 - one.transfer / usual.transfer);
    }
    if (one.transfer > 0) figures.transfer_shares.push_back(one.transfer / one.whole());
    if (on_host != nullptr && (*on_host)[i].iterations > 0) figures.over_host.push_back((*on_host)[i].whole() / one.whole());
  }
}

ResultTable GmresTable::means() const {
  ResultTable table;
  table.title = fmt::format("Paper 5: means of GMRES over the matrices above on the {}, beside what the paper prints",
                            name(context_->device().backend));
  table.notes = {
      "gain: share of the whole time that packing saves. transfer: share of the whole time. transfer saved: by packing, "
      "mean "
      "and best. host / GPU: whole time on this host over that on the GPU, mean.",
      "paper: means over 15 matrices on a V100. For RBP-CSR it prints 13.6 % as mean and as best of the transfer."};
  table.columns = {{"format", "format"},
                   {"matrices", "matrices"},
                   {"gain", "gain"},
                   {"paper_gain", "paper"},
                   {"transfer_share", "transfer"},
                   {"transfer_saved", "transfer saved"},
                   {"paper_transfer_saved", "paper"},
                   {"best_transfer_saved", "best"},
                   {"paper_best_transfer_saved", "its best"},
                   {"over_host", "host / GPU"},
                   {"paper_over_host", "paper"}};
  const auto mean = [](const std::vector<double>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  };
  const auto share = [&](const std::vector<double>& all) { return all.empty() ? Cell::none() : Cell::percent(mean(all)); };
  const auto printed = [](double value) { return value == 0 ? Cell::none() : Cell::percent(value); };
  for (std::size_t i = 0; i < figures_.size(); ++i) {
    const Figures& f = figures_[i];
    const Published& p = kPublished[i];
    table.rows.push_back({Cell::word(formats()[i].name), Cell::count(std::ssize(f.gains)), share(f.gains), printed(p.gain),
                          share(f.transfer_shares), share(f.transfer_saved), printed(p.transfer_saved),
                          f.transfer_saved.empty() ? Cell::none() : Cell::percent(std::ranges::max(f.transfer_saved)),
                          printed(p.best_transfer_saved),
                          f.over_host.empty() ? Cell::none() : Cell::figure(mean(f.over_host), 1),
                          Cell::figure(p.over_host, 1)});
  }
  return table;
}

}  // namespace shardmat::tools
