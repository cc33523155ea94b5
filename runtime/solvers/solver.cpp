#include "runtime/solvers/solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "comm/communicator.h"
#include "comm/exchange/sum_over_ranks.h"
#include "comm/same_on_all_ranks.h"
#include "kernels/base/error.h"
#include "kernels/base/kept_arrays.h"
#include "kernels/base/text.h"
#include "kernels/formats/kept_upload.h"
#include "runtime/context/context.h"
#include "runtime/context/context_scope.h"
#include "runtime/context/leftovers.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/solvers/direct/singular.h"
#include "runtime/solvers/fields/split_rows.h"
#include "runtime/solvers/loop/attainable.h"
#include "runtime/solvers/loop/cg_variant.h"
#include "runtime/solvers/loop/error_estimate.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/monitor_memory.h"
#include "runtime/solvers/loop/null_space.h"
#include "runtime/solvers/loop/penalty_rows.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/solve_loop.h"
#include "runtime/solvers/loop/symmetry.h"
#include "runtime/solvers/method_choice.h"
#include "runtime/solvers/method_requirements.h"
#include "runtime/solvers/multigrid/free_modes.h"
#include "runtime/solvers/multigrid/known_nodes.h"
#include "runtime/solvers/multigrid/take_nodes.h"
#include "runtime/solvers/solver_settings.h"

namespace shardmat {
namespace {

void require_symmetric_enough(const MethodEntry& method, const SolverOptions& o, const Product& product) {
  if (method.demands == Demands::nothing || is_known_symmetric(product, o)) return;
  Context& context = product.matrix().context();
  const SymmetryProbe probe = probe_symmetry(product, context.stream());
  if (probe.symmetric) return;
  context.communicator().run_agreed([&] {
    throw Error(ErrorKind::usage,
                fmt::format("{} is for symmetric matrices, and this one is not: xᵀAy and yᵀAx of random vectors differ by "
                            "{:.2g}, where the magnitudes of all entries sum to {:.2g}. Take gmres or bicgstab",
                            method.name, probe.difference, probe.scale),
                "solver");
  });
}

bool names_null_space(const SolverOptions& o) { return o.null_vectors || o.null_space == NullSpace::constant; }

constexpr const char* kAdaptive = "adaptive";

/// Whether the product comes first, whose rows on the GPU spare looks at those of the host.
bool takes_upload(const DistributedMatrix& matrix) {
  return matrix.context().device().backend != Backend::host && matrix.context().communicator().size() == 1 &&
         matrix.has_host_rows() && matrix.options().host_rows == HostRows::keep && matrix.options().values == Values::fixed;
}

std::vector<Given> listed(const SolverOptions& o) {
  std::vector<Given> all = all_settings(o);
  all.push_back(given_number("own_preconditioner", o.own_preconditioner ? 1 : 0));
  all.push_back(given_number("linear", o.own_preconditioner && o.own_preconditioner->linear ? 1 : 0));
  all.push_back(given_number("columns", static_cast<double>(o.columns)));
  all.push_back(given_number("graph", o.graph));
  all.push_back(given_number("null_count", o.null_vectors ? o.null_vectors->count : 0));
  return all;
}

}  // namespace

Solver::Solver(DistributedMatrix& matrix, const SolverOptions& options)
    : matrix_(matrix),
      options_(paired(options)),
      held_(std::make_unique<HeldRows>(options.columns)),
      penalty_(std::make_unique<PenaltyFindings>()) {
  const ContextScope scope(matrix.context());
  const KeptArrays reuse;
  Communicator& ranks = matrix.context().communicator();
  Stream& stream = matrix.context().stream();
  const bool chooses = options_.solver == kAutomaticMethod;
  if (options.own_preconditioner && options.preconditioner == kAutomaticPreconditioner) options_.preconditioner = "none";
  const bool chooses_preconditioner = options_.preconditioner == kAutomaticPreconditioner;
  const MethodEntry* named = nullptr;
  ranks.run_agreed([&] {
    if (!chooses_preconditioner) find_preconditioner(options_.preconditioner);
    require_sensible(options_, matrix);
    if (chooses) return;
    require_takes(*(named = &find_method(options_.solver)), options_);
    require_pair(*named, options_);
  });
  require_same_on_all_ranks(ranks, listed(options_));
  matrix.context().leftovers().free(ranks);
  if (!options_.rtol) options_.rtol = default_rtol(matrix.type());
  options_.product.columns = options.columns;
  std::optional<KeptUpload> upload;
  if (takes_upload(matrix)) {
    upload.emplace(matrix.host_pattern());
    product_ = matrix.product(options_.product);
  }
  look_for_penalty_rows();
  const bool positive = (!chooses && !chooses_preconditioner) || options.own_preconditioner ||
                        (held_->count() > 0 ? penalty_->positive_diagonal : has_positive_diagonal(matrix, stream));
  options_.preconditioning.held = held_.get();
  options_.preconditioning.columns = static_cast<int>(options.columns);
  options_.preconditioning.absolute =
      chooses ? !positive && options_.preconditioner != "field_split" : named->demands == Demands::symmetric;
  options_.preconditioning.multigrid.may_vary = chooses || named->flexible;
  if (options.null_vectors) {
    null_space_ = human_count(options.null_vectors->count, "given vector");
    projector_ = std::make_shared<NullSpaceProjector>(matrix, basis_of(matrix, *options.null_vectors), options.columns);
  } else if (options.null_space == NullSpace::constant) {
    const NullVectors constants = constant_vectors(matrix);
    null_space_ = constants.describe();
    projector_ = std::make_shared<NullSpaceProjector>(matrix, constants, options.columns);
  }
  options_.preconditioning.product = options_.product;
  if (options.own_preconditioner && !options.own_preconditioner->capturable) options_.graph = false;
  if (!chooses_preconditioner)  // before the host rows may go
    preconditioner_ = make_preconditioner(options_.preconditioner, options_.preconditioning);
  if (product_ == nullptr) product_ = matrix.product(options_.product);
  product_->hold(held_.get());
  exact_ = std::make_unique<ExactResidual>(matrix, *product_);
  floor_ = std::make_unique<RoundingFloor>(matrix, *product_);
  norm_ = std::make_unique<MatrixNorm>(*product_);
  require_named_null_space();
  ranks.run_agreed(
      [&] { passes_ = std::make_unique<krylov::Passes>(matrix.context().device(), static_cast<int>(options.columns)); });
  sum_ = std::make_unique<SumOverRanks>(matrix.context().exchange_context(sum_type(matrix.type()), 1),
                                        static_cast<int>(2 * options.columns));
  bool symmetric_positive = positive;
  if (chooses) {
    const MethodChoice choice = choose_method(*product_, options_, positive, preconditioner_.get());
    named = choice.method, method_why_ = choice.why;
    symmetric_positive = positive && choice.symmetric;
  } else {
    require_symmetric_enough(*named, options_, *product_);
    if (chooses_preconditioner && positive && named->demands == Demands::nothing)
      symmetric_positive = is_known_symmetric(*product_, options_) || probe_symmetry(*product_, stream).symmetric;
  }
  if (chooses_preconditioner) {
    choices_ = choose_solvers(matrix, options_, *named, symmetric_positive, positive);
    looks_for_free_modes_ = symmetric_positive && matrix.context().device().backend == Backend::host &&
                            choices_.front().preconditioner != "jacobi";  // then there are no host rows
    const auto unfit = [&](const SolverChoice& choice) {
      return choice.method != named && !takes(*choice.method, options_);
    };
    choices_.erase(std::remove_if(choices_.begin(), choices_.end(), unfit), choices_.end());
  } else choices_ = {{named, options_.preconditioner, "", 0}};
  take_first_possible(0);
  find_norm();
}

void Solver::take(std::size_t index) {
  Communicator& ranks = matrix_.context().communicator();
  const SolverChoice& choice = choices_[index];
  const MethodEntry& method = *choice.method;
  ranks.run_agreed([&] { require_takes(method, options_); });
  options_.preconditioning.multigrid.may_vary = method.flexible;
  const bool absolute = choice.absolute.value_or(options_.preconditioning.absolute || method.demands == Demands::symmetric);
  const bool adapts = choice.adaptive && options_.preconditioning.multigrid.near_null_space != kAdaptive;
  if (preconditioner_ == nullptr || options_.preconditioner != choice.preconditioner ||
      absolute != options_.preconditioning.absolute || adapts) {
    PreconditionerOptions preconditioning = options_.preconditioning;
    preconditioning.absolute = absolute;
    if (adapts) preconditioning.multigrid.near_null_space = kAdaptive;
    method_.reset(), preconditioner_.reset();
    preconditioner_ = make_preconditioner(std::string(choice.preconditioner), preconditioning);
    options_.preconditioning = std::move(preconditioning);
  }
  options_.solver = method.name, options_.preconditioner = choice.preconditioner;
  choice_ = index;
  const direct::Singular singular = singularity();
  look_for_free_modes(method, singular != direct::Singular::no);
  if (singular == direct::Singular::yes && (!projector_ || singularity() == direct::Singular::yes))
    ranks.run_agreed([&] {
      throw Error(
          ErrorKind::input,
          fmt::format("the matrix is singular up to rounding{}. Hold some unknowns of each body that can move, or set "
                      "the null space: constant, or rigid with the coordinates of the nodes",
                      projector_ ? fmt::format(", and of its null space only {} is known", null_space_) : ""),
          "matrix");
    });
  ranks.run_agreed([&] {
    monitor_ = std::make_unique<MonitorMemory>(matrix_.context().device(), static_cast<int>(options_.columns),
                                               options_.restart, method.coefficients != Coefficients::none);
  });
  variant_.reset();
  if (method.variants) {
    const PlanRequest& plan = options_.product.plan ? *options_.product.plan : matrix_.options().plan;
    variant_ = choose_cg_variant(method_inputs(*preconditioner_, options_), options_.variant, plan.reproducible);
  }
  method_ = method.make(method_inputs(*preconditioner_, options_));
}

const std::string& Solver::preconditioner_why() const { return choices_[choice_].why; }

MethodInputs Solver::method_inputs(const Preconditioner& preconditioner, SolverOptions options) const {
  options.restart = std::min(options.restart, std::max<std::int64_t>(1, matrix_.rows()));  // as many vectors span all
  options.variant = variant_ ? variant_->variant : CgVariant::classic;
  return {.product = *product_,
          .preconditioner = preconditioner,
          .passes = *passes_,
          .monitor = monitor_->view(),
          .options = std::move(options),
          .exact = exact_.get()};
}

Solver::~Solver() = default;

void Solver::require_named_null_space() {
  Stream& stream = matrix_.context().stream();
  if (options_.null_space == NullSpace::constant) require_constant_null_space(*product_, stream);
  if (options_.null_vectors) require_null_space(*projector_, *product_, stream);
}

/// Before the matrix has other values, too: this decides what the preconditioner is made of.
void Solver::look_for_penalty_rows() {
  Stream& stream = matrix_.context().stream();
  const bool same_values = penalty_version_ == matrix_.values_version();
  penalty_version_ = matrix_.values_version();
  if (options_.penalty_rows == PenaltyRows::keep) return;
  std::unique_ptr<Product> of_one;
  const auto product_of_one = [&]() -> const Product& {
    if (product_ == nullptr) product_ = matrix_.product(options_.product);
    if (product_->columns() == 1) return *product_;
    of_one = matrix_.product(1);
    return *of_one;
  };
  const bool had_some = held_->count() > 0;
  PenaltyFindings found = find_penalty_rows(matrix_, options_.penalty_rows, product_of_one, stream);
  if (same_values && penalty_->looked && !found.looked) return;  // what was found still holds
  matrix_.context().communicator().run_agreed([&] {
    if (!found.looked && !had_some && options_.penalty_rows == PenaltyRows::known)
      throw Error(ErrorKind::usage, "penalty rows are looked for in the host rows, which are dropped; keep them",
                  "penalty_rows");
    if (had_some && !found.looked)
      throw Error(ErrorKind::usage,
                  "the matrix has penalty rows and new values, but its rows are no longer in host memory: penalty rows "
                  "cannot be looked for again. Keep the rows, or make a new matrix",
                  "penalty_rows");
    if (found.count > 0 && names_null_space(options_))
      throw Error(ErrorKind::usage,
                  fmt::format("the matrix has {} penalty row{}, which state known values, so that it has no null space; "
                              "leave the null space out",
                              found.count, found.count == 1 ? "" : "s"),
                  "null_space");
    held_->set(found.rows, found.count, found.magnitudes, stream);
  });
  *penalty_ = std::move(found);
}

void Solver::refresh() {
  const ContextScope scope(matrix_.context());
  const KeptArrays reuse;
  refresh_parts();
  find_norm();
}

void Solver::refresh_parts() {
  look_for_penalty_rows();
  Stream& stream = matrix_.context().stream();
  require_named_null_space();
  if (projector_ && !names_null_space(options_) && !projector_->are_mapped_to_zero(*product_, stream)) {
    projector_.reset(), null_space_.clear();  // something holds the bodies now
    method_.reset(), preconditioner_.reset();
    return take(choice_);
  }
  preconditioner_->refresh(matrix_.context().stream());
  if (singularity() != direct::Singular::no) return take(choice_);
  method_->refresh(matrix_.context().stream());
}

/// Solves tell a backward error with it. The memory of the set-up serves its vectors.
void Solver::find_norm() {
  try {
    (*norm_)(matrix_.context().stream());
  } catch (const AgreedError& error) {  // a solve tries again, and does without
    if (error.kind() != ErrorKind::resources) throw;
  }
}

direct::Singular Solver::singularity() const {
  if (preconditioner_->direct() == nullptr) return direct::Singular::no;
  return direct::looks_singular(*preconditioner_, projector_ ? projector_->count() : 0, *product_, *floor_,
                                matrix_.context().stream());
}

std::string_view Solver::summed_by() const { return sum_->name(); }

IterationCosts Solver::costs(std::int64_t iterations) const { return method_->costs(iterations); }

std::int64_t Solver::device_bytes() const {
  const auto of = [](const auto& part) { return part ? part->device_bytes() : 0; };
  return of(method_) + of(projector_) + of(preconditioner_) + of(product_) + of(monitor_);
}

std::unique_ptr<Preconditioner> Solver::make_preconditioner(const std::string& name,
                                                            PreconditionerOptions preconditioning) const {
  if (options_.own_preconditioner || !find_preconditioner(name).reads_upload) KeptUpload::forget();
  preconditioning.projector = projector_;  // not among the solver's options: copies of these outlive the context
  std::unique_ptr<Preconditioner> made =
      options_.own_preconditioner
          ? make_own_preconditioner(matrix_, *options_.own_preconditioner, options_.columns, held_.get())
          : find_preconditioner(name).make(matrix_, preconditioning);
  return projector_ ? make_projected(std::move(made), projector_) : std::move(made);
}

/// Finds what A maps to 0, unless that is known, and removes it from what the preconditioner gives.
void Solver::look_for_free_modes(const MethodEntry& method, bool singular) {
  const bool asked = options_.null_space == NullSpace::rigid;
  if (projector_ || (!asked && options_.null_space != NullSpace::automatic)) return;
  Stream& stream = matrix_.context().stream();
  NullVectors looked_up;
  // Who asks for rigid motions gets them, or an error, whatever vectors the preconditioner takes.
  const NullVectors* found = asked ? nullptr : preconditioner_->null_vectors();
  if (found == nullptr) {
    if (!asked && !looks_for_free_modes_ && !singular) return;
    MultigridOptions options = options_.preconditioning.multigrid;
    take_known_nodes(matrix_, options);
    if (asked && !options.near_null_vectors) options.near_null_space = "rigid";
    matrix_.context().communicator().run_guarded([&] {
      looked_up = multigrid::free_modes(matrix_, options, held_.get());
      if (singular && !asked && looked_up.count == 0 && !looked_up.too_many)
        looked_up = fields::free_constant(multigrid::take_nodes(matrix_, 1, held_.get(), stream));
    });
    found = &looked_up;
  }
  std::shared_ptr<const NullSpaceProjector> projector;
  if (found->count > 0) projector = std::make_shared<NullSpaceProjector>(matrix_, *found, options_.columns);
  const bool both_sides = !projector || method.demands != Demands::nothing || is_known_symmetric(*product_, options_) ||
                          projector->probe_transpose(*product_, stream).maps_to_zero();
  matrix_.context().communicator().run_agreed([&] {
    if (!asked) return;
    if (found->too_many)
      throw Error(ErrorKind::usage,
                  fmt::format("more than {} bodies, or more than {} motions: their null space is not removed. Hold some "
                              "unknowns of each body, or leave the null space out",
                              NullVectors::kMostBodies, NullVectors::kMost),
                  "null_space");
    if (found->count == 0)
      throw Error(ErrorKind::usage, "no body can move: A maps none of its motions to 0. Leave the null space out",
                  "null_space");
    if (!both_sides)
      throw Error(ErrorKind::usage,
                  "this matrix maps motions of bodies to 0, but its transpose does not: removing them from b would not make "
                  "the system consistent. Leave the null space out and take gmres",
                  "null_space");
  });
  if (found->too_many) null_space_ = found->describe();
  if (!projector || !both_sides) return;
  null_space_ = found->describe();
  projector_ = std::move(projector);
  preconditioner_->take_projector(projector_);
  preconditioner_ = make_projected(std::move(preconditioner_), projector_);
}

void Solver::require_vectors(const DistributedVector& b, const DistributedVector& x, const char* name_of_b,
                             const char* name_of_x) const {
  b.require_like(*matrix_.y_rows(), options_.columns, sum_type(matrix_.type()), name_of_b);
  x.require_like(*matrix_.y_rows(), options_.columns, sum_type(matrix_.type()), name_of_x);
}

void Solver::precondition(const DistributedVector& r, DistributedVector& z) {
  const ContextScope scope(matrix_.context());
  Stream& stream = matrix_.context().stream();
  require_vectors(r, z, "r", "z");
  const auto columns = static_cast<std::size_t>(options_.columns);
  if (norms_ == nullptr) norms_ = std::make_unique<VectorSums>(matrix_.context(), options_.columns);
  Buffer on_device;
  matrix_.context().communicator().run_agreed(
      [&] { on_device = Buffer(matrix_.context().device(), columns * sizeof(double)); });
  norms_->norm(r, on_device.as<double>(), stream);
  product_->wait(stream);
  std::vector<double> norms(columns);
  copy_to_host(norms.data(), on_device.data(), on_device.bytes(), stream);
  stream.synchronize();
  preconditioner_->expect(*std::max_element(norms.begin(), norms.end()));
  preconditioner_->apply(r.view(), z.view(), stream);
  product_->wait(stream);
}

SolveResult Solver::run(Method& method, const Preconditioner& preconditioner, const SolverOptions& options,
                        const DistributedVector& b, DistributedVector& x, const SolveControl& control) {
  const PenaltyFindings* const penalty = penalty_->count > 0 ? penalty_.get() : nullptr;
  SolveResult result = SolveLoop({method, preconditioner, *product_, *passes_, *sum_, *monitor_, projector_.get(), penalty,
                                  *exact_, *floor_, choices_[choice_].method->coefficients, *norm_},
                                 options, control)(b, x);
  result.null_space = null_space_, result.null_vectors = projector_ ? projector_->count() : 0;
  result.penalty_rows = penalty_->count, result.penalty_ratio = penalty_->largest_ratio,
  result.penalty_note = penalty_->note;
  result.attempts = {{options.solver, options.preconditioner, result.iterations, result.seconds}};
  return result;
}

SolveResult Solver::solve(const DistributedVector& b, DistributedVector& x, const SolveControl& control) {
  const ContextScope scope(matrix_.context());
  require_vectors(b, x);
  take_new_penalty_rows();
  exact_->prepare(matrix_.context().stream());
  SolveResult result = solve_by_choices(b, x, control);
  result.why_f32 = exact_->why_not();
  exact_->end();
  result.f32 = matrix_.type() == ValueType::f32;
  judge_by_rounding(result, b, x);
  look_for_null_space(result);
  return result;
}

/// Columns whose tolerance asks for more than rounding errors allow did converge.
void Solver::judge_by_rounding(SolveResult& result, const DistributedVector& b, const DistributedVector& x) {
  const bool has_tolerance = *options_.rtol > 0 || options_.atol > 0;
  const auto may_be_there = [&](const SolvedColumn& c) {
    if (c.reason == SolveReason::converged_attainable) return true;  // its floor is to be told
    if (converged(c.reason) || !(c.true_residual <= kAttainableMost * c.norm_of_b)) return false;
    if (c.reason == SolveReason::diverged_iterations) return has_tolerance;
    return c.reason != SolveReason::diverged_nan && c.reason != SolveReason::interrupted;
  };
  if (std::none_of(result.columns.begin(), result.columns.end(), may_be_there)) return;
  Stream& stream = matrix_.context().stream();
  const bool in_two_norm = options_.residual_norm == ResidualNorm::unpreconditioned;
  std::vector<double> residuals;
  if (!in_two_norm) residuals = norms_of_residual(*product_, b, x, projector_.get(), stream);
  const std::vector<double> norms = floor_->norms(x, stream);
  for (std::size_t j = 0; j < result.columns.size(); ++j) {
    SolvedColumn& column = result.columns[j];
    const double residual = in_two_norm ? column.true_residual : residuals[j];
    if (!may_be_there(column) || !(norms[j] > 0) || !std::isfinite(norms[j])) continue;
    column.floor = attainable_share(matrix_.type()) * norms[j];
    if (residual <= column.floor) column.reason = SolveReason::converged_attainable;
  }
}

/// A singular system that nobody called so?
void Solver::look_for_null_space(SolveResult& result) {
  constexpr std::int64_t kMany = 100;  // a smoother that does a few iterations is not asked
  const bool may_be = std::any_of(result.columns.begin(), result.columns.end(), [](const SolvedColumn& c) {
    return !converged(c.reason) && c.reason != SolveReason::interrupted &&
           (c.reason != SolveReason::diverged_iterations || c.iterations >= kMany);
  });
  if (!may_be || matrix_.rows() == 0 || result.penalty_rows > 0) return;
  Stream& stream = matrix_.context().stream();
  const ConstantsProbe probe = probe_constants(*product_, stream);
  if (!probe.in_null_space()) return;
  result.maps_more_to_zero = maps_parts_to_zero(*product_, probe.allowed, stream);
  result.maps_constants_to_zero = !result.maps_more_to_zero && !projector_;
}

/// After new values without refresh(): the rows with known values, and what stands in them.
void Solver::take_new_penalty_rows() {
  if (options_.penalty_rows == PenaltyRows::keep || penalty_version_ == matrix_.values_version()) return;
  const bool had_some = held_->count() > 0;
  look_for_penalty_rows();
  if (!had_some && held_->count() == 0) return;
  preconditioner_->refresh(matrix_.context().stream());
  method_->refresh(matrix_.context().stream());
}

Solver::Trial Solver::try_preconditioner(const std::string& name, const PreconditionerOptions& preconditioning,
                                         std::int64_t iterations, const DistributedVector& b, DistributedVector& x,
                                         const SolveControl& control) {
  const ContextScope scope(matrix_.context());
  require_vectors(b, x);
  SolverOptions options = options_;
  options.preconditioner = name, options.max_iterations = iterations;
  options.restart = std::min(options.restart, std::max<std::int64_t>(1, iterations));
  options.graph = false;  // it would not pay
  const std::unique_ptr<Preconditioner> preconditioner = make_preconditioner(name, preconditioning);
  const std::unique_ptr<Method> method = find_method(options.solver).make(method_inputs(*preconditioner, options));
  return {run(*method, *preconditioner, options, b, x, control), preconditioner->describe()};
}

}  // namespace shardmat
