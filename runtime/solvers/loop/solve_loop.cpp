#include "runtime/solvers/loop/solve_loop.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "comm/communicator.h"
#include "comm/exchange/sum_over_ranks.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/timer.h"
#include "kernels/krylov/residual.h"
#include "kernels/vector.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/null_space.h"
#include "runtime/solvers/loop/square_underflow.h"

namespace shardmat {
namespace {

using krylov::Reason;

constexpr std::int64_t kIterationsAGraph = 8;
constexpr std::int64_t kHostIterationsBetweenLooks = 16;  // a look costs a message between ranks
/// Seconds between looks; later a share of the time so far. During a look the device is idle; after the last iteration it
/// works in vain until the next one.
constexpr double kSecondsBetweenLooks = 1e-3, kShareBetweenLooks = 0.05;
/// Of the iterations that are left at least, so many run without a look, but for no longer than this.
constexpr double kShareOfLeft = 0.7, kSecondsAhead = 10e-3;
constexpr std::int64_t kMostBreakdowns = 10;
constexpr std::int64_t kMostLaunches = 64;  // a device's queue must never fill behind a lost rank

SolveReason reason_of(Reason reason) {
  switch (reason) {
    case Reason::diverged_tolerance:
      return SolveReason::diverged_tolerance;
    case Reason::diverged_breakdown:
      return SolveReason::diverged_breakdown;
    case Reason::diverged_indefinite_matrix:
      return SolveReason::diverged_indefinite_matrix;
    case Reason::diverged_indefinite_preconditioner:
      return SolveReason::diverged_indefinite_preconditioner;
    case Reason::diverged_nan:
      return SolveReason::diverged_nan;
    default:
      return SolveReason::diverged_iterations;
  }
}

}  // namespace

SolveLoop::SolveLoop(const SolveParts& parts, const SolverOptions& options, const SolveControl& control)
    : method_(parts.method),
      preconditioner_(parts.preconditioner),
      product_(parts.product),
      passes_(parts.passes),
      sum_(parts.sum),
      monitor_(parts.monitor),
      projector_(parts.projector),
      options_(options),
      control_(control),
      stream_(parts.product.matrix().context().stream()),
      columns_(static_cast<std::size_t>(options.columns)),
      next_pauses_(parts.preconditioner.usual_iterations()),
      penalty_(parts.penalty),
      exact_(parts.exact),
      floor_(parts.floor),
      coefficients_(parts.coefficients),
      norm_(parts.norm),
      pauses_(options.residual_norm == ResidualNorm::unpreconditioned) {
  result_.columns.resize(columns_.size());
  monitor_.allow(options.max_iterations);
  for (Column& column : columns_) column.ritz = RitzValues(coefficients_);
}

SolveResult SolveLoop::operator()(const DistributedVector& b, DistributedVector& x) {
  const Timer timer;
  b_ = &b;
  x_ = &x;
  if (penalty_ != nullptr) take_known_values(b, x);
  if (projector_ != nullptr) remove_null_space(*b_, x);
  measure(*b_, x);
  clear_where_b_is_zero(x);
  if (control_.true_residuals) true_residual_.emplace(product_, passes_, sum_);
  method_.begin();
  while (start()) iterate();
  if (projector_ != nullptr) {  // what rounding left
    (*projector_)(x.view(), stream_);
    product_.wait(stream_);
  }
  estimate_errors();
  if (known_x_) {
    axpy({1}, *known_x_, x, stream_);
    product_.wait(stream_);
  }
  result_.seconds = timer.seconds();
  result_.iterations = iterations_done();
  return std::move(result_);
}

std::vector<double> SolveLoop::to_host(const double* values) const {
  product_.wait(stream_);
  std::vector<double> copy(columns_.size());
  copy_to_host(copy.data(), values, copy.size() * sizeof(double), stream_);
  return copy;
}

void SolveLoop::remove_null_space(const DistributedVector& b, DistributedVector& x) {
  const NullSpaceProjector& project = *projector_;
  project(x.view(), stream_);
  NullSpaceProjector::Measures before = project.measure(product_, b, stream_);
  std::vector<double> squares;
  for (const double norm : before.norms) squares.push_back(norm * norm);
  refuse_tiny(b, squares);
  DistributedVector& without = projected_b_.emplace(b.map(), b.type(), b.columns());
  copy_on_device(without.view().data, b.view().data, product_.y_bytes(), stream_);
  project(without.view(), stream_);
  const NullSpaceProjector::Measures after = project.measure(product_, without, stream_);
  std::vector<double> factors;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    result_.columns[j].removed_from_b = before.removed[j];
    const double roundoffs = 8.0 * project.count();  // what is left of a b that lies in the null space
    factors.push_back(after.norms[j] <= roundoffs * unit_roundoff(b.type()) * before.norms[j] ? 0 : 1);
  }
  scale(without, factors);
  b_ = &without;
}

void SolveLoop::take_known_values(const DistributedVector& b, DistributedVector& x) {
  Context& context = product_.matrix().context();
  DistributedVector& known = known_x_.emplace(b.map(), b.type(), b.columns());
  DistributedVector& reduced = reduced_b_.emplace(b.map(), b.type(), b.columns());
  product_.wait(stream_);
  context.communicator().run_agreed([&] {
    const auto width = static_cast<std::size_t>(b.columns());
    const std::int64_t entries = b.local_rows() * b.columns();
    require_host_memory(16 * entries, "the known values of penalty rows");
    const HostVector<double> right = shardmat::to_host(b.view().data, entries, b.type(), stream_);
    HostVector<double> values(right.size());
    std::fill(values.begin(), values.end(), 0.0);
    for (std::size_t i = 0; i < penalty_->rows.size(); ++i) {
      const auto first = static_cast<std::size_t>(penalty_->rows[i]) * width;
      for (std::size_t at = first; at < first + width; ++at) values[at] = right[at] / penalty_->diagonal[i];
    }
    if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); }))
      throw Error(ErrorKind::input, "b holds NaN or infinity in a row that states a known value", "b");
    to_device(known.view().data, values, b.type(), stream_);
  });
  copy_on_device(reduced.view().data, b.view().data, product_.y_bytes(), stream_);
  product_.multiply(-1, known.view(), 1, reduced.view(), stream_);
  product_.clear_held(x.view(), stream_);
  product_.wait(stream_);
  b_ = &reduced;
}

void SolveLoop::scale(DistributedVector& vector, const std::vector<double>& factors) {
  if (std::all_of(factors.begin(), factors.end(), [](double factor) { return factor == 1; })) return;
  Context& context = product_.matrix().context();
  Buffer on_device;
  context.communicator().run_agreed([&] { on_device = Buffer(context.device(), factors.size() * sizeof(double)); });
  copy_to_device(on_device.data(), factors.data(), factors.size() * sizeof(double), stream_);
  combine(vector.type(), vector.local_rows(), vector.columns(), {}, nullptr, {1, on_device.as<double>()}, vector.view().data,
          stream_);
  stream_.synchronize();
}

void SolveLoop::refuse_tiny(const DistributedVector& b, const std::vector<double>& squares) const {
  const bool tiny = squares_underflow(b, squares, product_, stream_);
  product_.matrix().context().communicator().run_agreed([&] {
    if (tiny)
      throw Error(ErrorKind::input,
                  "b is not zero, but the sum of its squares (with this preconditioner and norm) is too small for f64; "
                  "multiply b by a number that brings its entries near 1, and divide x by it",
                  "b");
  });
}

void SolveLoop::measure(const DistributedVector& b, const DistributedVector& x) {
  const DistributedMatrix& matrix = product_.matrix();
  Context& context = matrix.context();
  const bool needs_z = options_.residual_norm != ResidualNorm::unpreconditioned;
  std::optional<DistributedVector> z;
  if (needs_z) {
    z.emplace(matrix, VectorLayout::rows, b.type(), b.columns());
    preconditioner_.apply(b.view(), z->view(), stream_);
  }
  std::vector<double> squares;
  for (const Dots& of_b : dots(b, z ? *z : b, options_.residual_norm)) squares.push_back(of_b.square);
  refuse_tiny(b, squares);
  const std::vector<Dots> of_x = dots(x, x, ResidualNorm::unpreconditioned);
  if (std::all_of(of_x.begin(), of_x.end(), [](const Dots& dots) { return dots.square == 0; })) guess_ = Guess::zero;
  context.communicator().run_agreed([&] {
    for (std::size_t j = 0; j < columns_.size(); ++j) {
      const double norm = std::sqrt(squares[j]);
      if (!std::isfinite(norm))
        throw Error(ErrorKind::input,
                    "b holds NaN or infinity, or the sum of its squares (with this preconditioner and norm) leaves the "
                    "range of f64; multiply b by a number that brings its entries near 1, and divide x by it",
                    "b");
      result_.columns[j].norm_of_b = norm;
      columns_[j].target = columns_[j].pause = std::max(*options_.rtol * norm, options_.atol);
    }
  });
  double most = 0;
  for (const SolvedColumn& column : result_.columns) most = std::max(most, column.norm_of_b);
  preconditioner_.expect(most);
}

/// The answer there is 0, whatever the first guess was, NaN included.
void SolveLoop::clear_where_b_is_zero(DistributedVector& x) {
  const auto is_zero = [](const SolvedColumn& column) { return column.norm_of_b == 0; };
  const auto zeros = std::count_if(result_.columns.begin(), result_.columns.end(), is_zero);
  if (zeros == 0) return;
  if (zeros == std::ssize(result_.columns)) return x.fill(0, stream_);
  const std::size_t entry = size_of(x.type());
  for (std::size_t j = 0; j < result_.columns.size(); ++j)
    if (is_zero(result_.columns[j])) {
      const Buffer column(stream_.device(), static_cast<std::size_t>(x.local_rows()) * entry);
      fill_bytes(column.data(), 0, column.bytes(), stream_);
      copy_rows(entry, x.local_rows(), column.data(), entry, static_cast<std::byte*>(x.view().data) + j * entry,
                result_.columns.size() * entry, stream_);
      stream_.synchronize();
    }
}

void SolveLoop::judge(int j, double true_residual) {
  Column& column = columns_[static_cast<std::size_t>(j)];
  SolvedColumn& solved = result_.columns[static_cast<std::size_t>(j)];
  solved.true_residual = true_residual;
  if (column.done) return;
  if (first_) {
    solved.residual = true_residual;
    solved.history = {true_residual};
    column.limit = options_.divergence_tolerance * std::max(solved.norm_of_b, true_residual);
  }
  const auto end = [&](SolveReason reason) { column.done = true, solved.reason = reason; };
  if (!std::isfinite(true_residual)) return end(SolveReason::diverged_nan);
  if (true_residual <= column.target)
    return end(true_residual <= *options_.rtol * solved.norm_of_b && solved.norm_of_b > 0 ? SolveReason::converged_rtol
                                                                                          : SolveReason::converged_atol);
  if (solved.iterations >= options_.max_iterations)  // the method's own residual may be much smaller than the true one
    return end(true_residual > column.limit ? SolveReason::diverged_tolerance : SolveReason::diverged_iterations);
  if (interrupted_) return end(SolveReason::interrupted);
  if (column.claimed == Reason::diverged_breakdown && renewed_) {
    if (solved.breakdowns == kMostBreakdowns) return end(SolveReason::diverged_breakdown);
    ++solved.breakdowns;
    column.lost = false;
    column.true_before = true_residual;
    return;
  }
  if (column.lost) return end(SolveReason::diverged_attainable_accuracy);  // the recursion broke down in rounding errors
  const bool is_least = column.claimed == Reason::least_squares;
  if (is_least && solved.normal_residual <= 10 * least_squares_tolerance(options_, b_->type()))
    return end(SolveReason::least_squares);
  if (column.claimed == Reason::converged || is_least) {
    const bool hopeless = column.target < column.pause;  // no residual so small can be relied on
    if (hopeless && true_residual <= std::min(column.floor, kAttainableMost * solved.norm_of_b))
      return end(SolveReason::converged_attainable);
    ++solved.replacements;
    if (true_residual > column.true_before / 2) ++column.small_gains;
    if (column.small_gains >= 2) return end(SolveReason::diverged_attainable_accuracy);
  } else if (column.claimed == Reason::diverged_indefinite_matrix && true_residual <= column.true_before / 2) {
    ++solved.replacements;  // perhaps by rounding errors of many iterations
  } else if (column.claimed != Reason::none) {
    return end(reason_of(column.claimed));
  }
  column.true_before = true_residual;
}

void SolveLoop::start_correction() {
  if (!correction_) {
    residual_.emplace(b_->map(), b_->type(), b_->columns());
    correction_.emplace(b_->map(), b_->type(), b_->columns());
  }
  void* const r = residual_->view().data;
  if (exact_.ready()) {
    exact_(b_->view().data, x_->view().data, r, stream_);
    product_.clear_held(residual_->view(), stream_);
  } else {
    copy_on_device(r, b_->view().data, product_.y_bytes(), stream_);
    product_.multiply(-1, x_->view(), 1, residual_->view(), stream_);
  }
  method_.start(r, correction_->view().data, Guess::zero, stream_);
}

void SolveLoop::take_correction() {
  copy_on_device(residual_->view().data, x_->view().data, product_.y_bytes(), stream_);
  axpy({1}, *correction_, *x_, stream_);
  correction_->fill(0, stream_);
}

void SolveLoop::keep_better(std::vector<double>& norms) {
  const std::size_t entry = size_of(x_->type()), row = columns_.size() * entry;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    Column& column = columns_[j];
    if (column.done || norms[j] <= column.true_before) continue;  // NaN is not kept
    const auto at = [&](const DistributedVector& vector) { return static_cast<std::byte*>(vector.view().data) + j * entry; };
    copy_rows(entry, x_->local_rows(), at(*residual_), row, at(*x_), row, stream_);
    norms[j] = column.true_before;
    column.lost = true;
  }
}

void SolveLoop::find_floors() {
  const auto claims = [](const Column& column) {
    return !column.done && column.claimed == Reason::converged && column.target < column.pause;
  };
  if (std::none_of(columns_.begin(), columns_.end(), claims)) return;
  const std::vector<double> norms = floor_.norms(*x_, stream_);
  for (std::size_t j = 0; j < columns_.size(); ++j)
    if (claims(columns_[j])) columns_[j].floor = attainable_share(b_->type()) * norms[j];
}

std::int64_t SolveLoop::iterations_done() const {
  std::int64_t iterations = 0;
  for (const SolvedColumn& solved : result_.columns) iterations = std::max(iterations, solved.iterations);
  return iterations;
}

std::int64_t SolveLoop::launches_until_pauses(std::int64_t iterations_a_launch) const {
  if (!pauses_) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(1, (next_pauses_ - iterations_done() + iterations_a_launch - 1) / iterations_a_launch);
}

void SolveLoop::find_pauses() {
  constexpr double kGrowth = 1.6, kShare = 0.5;
  constexpr std::int64_t kFew = 100;
  const std::int64_t iterations = iterations_done();
  if (iterations < next_pauses_ || !pauses_ || !goes_on()) return;
  next_pauses_ = static_cast<std::int64_t>(kGrowth * static_cast<double>(iterations));
  DistributedVector now(x_->map(), x_->type(), x_->columns()), slot(x_->map(), x_->type(), x_->columns());
  copy_on_device(slot.view().data, product_.x().data, product_.y_bytes(), stream_);  // methods keep a vector there
  copy_on_device(now.view().data, x_->view().data, product_.y_bytes(), stream_);
  if (correction_) axpy({1}, *correction_, now, stream_);
  // Of few iterations each takes long: a pass over the rows is cheap, and ends them sooner than a lower bound.
  const bool few = preconditioner_.usual_iterations() < kFew && stream_.device().backend == Backend::host;
  const std::vector<double> norms = few ? floor_.norms(now, stream_) : floor_.lower_bounds(now, 1, stream_);
  copy_on_device(product_.x().data, slot.view().data, product_.y_bytes(), stream_);
  std::vector<Reason> reasons;
  std::vector<double> pauses, limits;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    Column& column = columns_[j];
    const double pause = kShare * attainable_share(b_->type()) * norms[j];
    const bool has_tolerance = *options_.rtol > 0 || options_.atol > 0;
    if (has_tolerance && std::isfinite(pause) && pause <= kAttainableMost * result_.columns[j].norm_of_b)
      column.pause = std::max(column.target, pause);
    reasons.push_back(monitor_.reason(static_cast<int>(j)));
    pauses.push_back(column.pause);
    limits.push_back(column.limit);
  }
  monitor_.set(reasons, pauses, limits, false, stream_);
}

bool SolveLoop::start() {
  if (correction_) take_correction();
  find_floors();
  const auto broke_down = [](const Column& c) { return !c.done && c.claimed == Reason::diverged_breakdown; };
  renewed_ = std::any_of(columns_.begin(), columns_.end(), broke_down) && method_.renew(stream_);
  method_.start(b_->view().data, x_->view().data, std::exchange(guess_, Guess::any), stream_);
  std::vector<double> norms = to_host(method_.squares());
  for (double& norm : norms) norm = std::sqrt(norm);
  if (correction_) keep_better(norms);
  look_at_least_squares();
  for (std::size_t j = 0; j < columns_.size(); ++j) judge(static_cast<int>(j), norms[j]);
  note_natural_norms();
  if (true_residual_ && first_) {
    const std::vector<double> true_norms = (*true_residual_)(method_, 0, *b_, *x_, stream_);
    for (std::size_t j = 0; j < columns_.size(); ++j) result_.columns[j].true_history = {true_norms[j]};
  }
  const bool goes_on = std::any_of(columns_.begin(), columns_.end(), [](const Column& column) { return !column.done; });
  if (goes_on && !first_) start_correction();
  std::vector<Reason> reasons;
  std::vector<double> targets, limits;
  for (Column& column : columns_) {
    reasons.push_back(column.done ? Reason::converged : Reason::none);
    targets.push_back(column.pause);
    limits.push_back(column.limit);
    column.claimed = Reason::none;
    column.ritz.begin_anew();
  }
  monitor_.set(reasons, targets, limits, first_, stream_);
  first_ = false;
  return goes_on;
}

bool SolveLoop::goes_on() const {
  for (int j = 0; j < static_cast<int>(columns_.size()); ++j)
    if (monitor_.reason(j) == Reason::none) return true;
  return false;
}

void SolveLoop::look() {
  product_.wait(stream_);
  monitor_.look(stream_);
  take_history();
}

void SolveLoop::note_true_residuals(std::int64_t taken) {
  const std::vector<double> norms =
      (*true_residual_)(method_, taken, residual_ ? *residual_ : *b_, correction_ ? *correction_ : *x_, stream_);
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    std::vector<double>& history = result_.columns[j].true_history;
    const bool iterated = monitor_.iterations(static_cast<int>(j)) == std::ssize(history);
    if (!columns_[j].done && iterated) history.push_back(norms[j]);
  }
  if (!control_.watch) return;
  DistributedVector& x = true_residual_->x();
  if (correction_) axpy({1}, *x_, x, stream_);
  if (known_x_) axpy({1}, *known_x_, x, stream_);
  product_.wait(stream_);
  std::int64_t iterations = 0;
  for (int j = 0; j < product_.columns(); ++j) iterations = std::max(iterations, monitor_.iterations(j));
  control_.watch(iterations, x);
}

void SolveLoop::iterate() {
  const bool on_host = stream_.device().backend == Backend::host;
  const bool looks_often = on_host || true_residual_;  // after every iteration
  const std::int64_t cycle = method_.cycle();
  const auto run_cycle = [&] {
    std::int64_t taken = 0;
    while (taken < cycle) {
      method_.iterate(taken++, stream_);
      if (!looks_often) continue;
      if (true_residual_) product_.wait(stream_);
      monitor_.look_without_history(stream_);  // on the host a small copy within it
      if (true_residual_) note_true_residuals(taken);
      if (!goes_on()) break;
      pause();
      if (interrupted_) break;
    }
    method_.finish_cycle(taken, stream_);
  };
  run_cycle();  // libraries allocate and connect on first use, which a recording forbids
  const bool records = !looks_often && options_.graph && product_.exchange().capturable() && preconditioner_.capturable();
  std::optional<Graph> graph;
  // A graph runs all its iterations, also those behind the last one that is needed. Where a solve needs few, each has so
  // many kernels that a graph of one is long enough.
  const std::int64_t usual = preconditioner_.usual_iterations();
  const std::int64_t at_once = usual > 0 && usual <= kFewIterations ? 1 : kIterationsAGraph;
  const std::int64_t cycles = records ? std::max<std::int64_t>(1, at_once / cycle) : 1;
  const auto record = [&] {
    graph.emplace(stream_, [&] {
      for (std::int64_t i = 0; i < cycles; ++i) run_cycle();
    });
  };
  const bool is_short = cycles * cycle == 1;
  if (records && is_short) record();  // while the device works on the first one
  look();
  if (records && !is_short && goes_on() && !interrupted_) record();
  result_.graph = result_.graph || (graph && goes_on());
  std::int64_t launches = looks_often ? std::max<std::int64_t>(1, kHostIterationsBetweenLooks / cycle) : 1;
  const Timer since_start;
  while (goes_on() && !interrupted_) {
    const Timer timer;
    std::int64_t launched = 0;
    const std::int64_t most = std::min(launches, launches_until_pauses(cycles * cycle));
    while (launched < most && !interrupted_ && (!looks_often || goes_on())) {
      if (graph) graph->launch(stream_);
      else run_cycle();
      ++launched;
      if (!looks_often) pause();
    }
    look();
    find_pauses();
    const std::int64_t wanted =
        launches_until_look(timer.seconds() / static_cast<double>(launched), since_start.seconds(),
                            looks_often ? 0 : iterations_left() / static_cast<double>(cycles * cycle));
    if (!looks_often) launches = wanted;
    report_progress();
  }
  for (std::size_t j = 0; j < columns_.size(); ++j)
    if (!columns_[j].done) columns_[j].claimed = monitor_.reason(static_cast<int>(j));
}

double SolveLoop::iterations_left() const {
  constexpr std::int64_t kFewSteps = 3;  // the first ones tell little
  double left = 0;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const std::vector<double>& history = result_.columns[j].history;
    if (columns_[j].done || std::ssize(history) <= kFewSteps) continue;
    double fastest = 0;
    for (std::size_t i = 1; i < history.size(); ++i) fastest = std::max(fastest, std::log(history[i - 1] / history[i]));
    const double way = std::log(history.back() / columns_[j].pause);
    if (way > 0 && fastest > 0 && std::isfinite(way)) left = std::max(left, way / fastest);
  }
  return left;
}

std::int64_t SolveLoop::launches_until_look(double seconds_a_launch, double seconds_so_far, double launches_left) {
  const std::int64_t fit = std::min(kMostLaunches, monitor_.history_length() / std::max(method_.cycle(), kIterationsAGraph));
  const double seconds = std::max(kSecondsBetweenLooks, kShareBetweenLooks * seconds_so_far);
  const double ahead = std::min(kShareOfLeft * launches_left, kSecondsAhead / std::max(seconds_a_launch, 1e-9)),
               wanted = std::max(seconds / std::max(seconds_a_launch, 1e-9), ahead);
  std::int64_t votes[2] = {control_.stop && control_.stop() ? -1 : 0,
                           static_cast<std::int64_t>(std::clamp(wanted, 1.0, static_cast<double>(fit)))};
  product_.matrix().context().communicator().all_reduce(std::span<std::int64_t>(votes), Reduction::min);
  interrupted_ = interrupted_ || votes[0] < 0;
  return votes[1];
}

void SolveLoop::pause() {
  if (control_.pause && !control_.pause()) interrupted_ = true;
}

void SolveLoop::take_history() {
  std::int64_t before = 0, now = 0;
  for (const SolvedColumn& solved : result_.columns) before = std::max(before, solved.iterations);
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    if (columns_[j].done) continue;
    SolvedColumn& solved = result_.columns[j];
    const int column = static_cast<int>(j);
    for (std::int64_t i = solved.iterations + 1; i <= monitor_.iterations(column); ++i) {
      solved.history.push_back(monitor_.history(i, column));
      if (monitor_.has_coefficients()) columns_[j].ritz.add(monitor_.alpha(i, column), monitor_.beta(i, column));
    }
    solved.iterations = monitor_.iterations(column);
    solved.residual = solved.history.back();
    now = std::max(now, solved.iterations);
  }
  if (control_.monitor) call_monitor(before, now);
}

void SolveLoop::call_monitor(std::int64_t before, std::int64_t now) const {
  const auto at = [](const std::vector<double>& history, std::int64_t i) {
    return history[std::min(static_cast<std::size_t>(i), history.size() - 1)];
  };
  for (std::int64_t i = before + 1; i <= now; ++i) {
    std::vector<double> norms, true_norms;
    for (const SolvedColumn& solved : result_.columns) {
      norms.push_back(at(solved.history, i));
      if (true_residual_) true_norms.push_back(at(solved.true_history, i));
    }
    control_.monitor(i, norms, true_norms);
  }
}

void SolveLoop::report_progress() const {
  if (!control_.progress) return;
  constexpr double kAll = 1000;
  double least = 1;  // of the way from the first residual to the tolerance, on a logarithmic scale
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const SolvedColumn& solved = result_.columns[j];
    if (columns_[j].done || !(columns_[j].target > 0) || !(solved.residual > 0)) continue;
    const double way = std::log(solved.history.front() / columns_[j].target);
    if (way > 0) least = std::min(least, std::log(solved.history.front() / solved.residual) / way);
  }
  report(control_.progress, "solving", static_cast<std::int64_t>(kAll * std::clamp(least, 0.0, 1.0)),
         static_cast<std::int64_t>(kAll));
}

}  // namespace shardmat
