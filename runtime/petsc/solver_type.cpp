// The solver type -ksp_type shardmat: the whole solve in Shardmat, with one copy of b in and one of x out.
#include <petsc/private/kspimpl.h>
#include <petsc/private/matimpl.h>
#include <petsc/private/pcimpl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "runtime/petsc/aij_copy.h"
#include "runtime/petsc/preconditioner_type.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat::petsc {
namespace {

/// The first is the default: what PETSc's own solvers do.
constexpr std::array kPenaltyRows{"keep", "known", "auto"};

using Name = std::array<char, 64>;

/// What a solver is made of; another one is made when this changes.
struct Settings {
  Name method, preconditioner;
  std::string_view null_space, norm, penalty_rows;
  PetscInt64 coordinates, near_null_space, null_vectors;  ///< 0: none; others after other ones were set
  PetscInt node_block_size, restart, max_it;
  PetscReal rtol, atol, dtol;
  bool symmetric;
  std::array<char, 512> further;  ///< shardmat_solver_options::settings
  bool operator==(const Settings&) const = default;
};

struct Solver {
  Name method;       ///< as the options say, perhaps "auto"
  PetscInt penalty;  ///< among kPenaltyRows
  PetscInt restart;
  std::array<char, 512> further;  ///< settings by name
  shardmat_solver* solver;
  // For which `solver` was made:
  Settings settings;
  PetscInt64 copy, new_values;
};
Name name_of(std::string_view text) {
  Name name{};
  text.copy(name.data(), name.size() - 1);
  return name;
}
bool is(const Name& name, std::string_view text) { return text == name.data(); }
Solver& data(KSP ksp) { return *static_cast<Solver*>(ksp->data); }

struct Preconditioner {
  std::string_view petsc, ours;
};
/// The last is what -pc_shardmat_type says.
constexpr Preconditioner kPreconditioners[] = {
    {PCNONE, "none"}, {PCJACOBI, "jacobi"}, {PCPBJACOBI, "block_jacobi"}, {kPreconditionerType, ""}};

const Preconditioner* find_preconditioner(std::string_view type) {
  for (const Preconditioner& one : kPreconditioners)
    if (one.petsc == type) return &one;
  return nullptr;
}

PetscErrorCode require_plain_jacobi(KSP ksp) {
  PCJacobiType type = PC_JACOBI_DIAGONAL;
  PetscBool absolute = PETSC_FALSE;
  PetscFunctionBegin;
  PetscCall(PCJacobiGetType(ksp->pc, &type));
  PetscCall(PCJacobiGetUseAbs(ksp->pc, &absolute));
  PetscCheck(type == PC_JACOBI_DIAGONAL && !absolute, PetscObjectComm(object(ksp)), PETSC_ERR_SUP,
             "-ksp_type shardmat takes -pc_type jacobi of the diagonal itself, without -pc_jacobi_type and -pc_jacobi_abs");
  PetscFunctionReturn(kDone);
}

PetscErrorCode require_preconditioner(KSP ksp) {
  const MPI_Comm comm = PetscObjectComm(object(ksp));
  PetscFunctionBegin;
  if (ksp->pc == nullptr) PetscCall(KSPGetPC(ksp, &ksp->pc));
  if (object(ksp->pc)->type_name == nullptr) PetscCall(PCSetType(ksp->pc, PCJACOBI));
  const char* const type = object(ksp->pc)->type_name;
  PetscCheck(
      find_preconditioner(type) != nullptr, comm, PETSC_ERR_SUP,
      "-ksp_type shardmat does not apply -pc_type %s: give -pc_type none, jacobi, pbjacobi (blocks of the matrix's block "
      "size) or shardmat (multigrid); or keep %s with a -ksp_type of PETSc and -mat_type shardmat",
      type, type);
  if (std::string_view(type) == PCJACOBI) PetscCall(require_plain_jacobi(ksp));
  PetscFunctionReturn(kDone);
}

PetscErrorCode require_matrices(KSP ksp, Mat a, Mat p) {
  const MPI_Comm comm = PetscObjectComm(object(ksp));
  PetscBool aij = PETSC_FALSE;
  bool takes = false;
  PetscFunctionBegin;
  PetscCall(is_aij(a, &aij));
  PetscCheck(aij, comm, PETSC_ERR_SUP, "-ksp_type shardmat takes matrices of -mat_type aij and shardmat, and this one is %s",
             object(a)->type_name);
  PetscCall(takes_distribution(a, &takes));
  PetscCheck(
      takes, comm, PETSC_ERR_SUP,
      "-ksp_type shardmat takes square matrices with rows whose columns are distributed over the ranks like its rows");
  PetscCheck(
      a == p || std::string_view(object(ksp->pc)->type_name) == PCNONE, comm, PETSC_ERR_SUP,
      "-ksp_type shardmat makes its preconditioner of the matrix that it solves, and KSPSetOperators() gave another one");
  PetscFunctionReturn(kDone);
}

PetscErrorCode require_known_behaviour(KSP ksp) {
  const MPI_Comm comm = PetscObjectComm(object(ksp));
  PetscFunctionBegin;
  PetscCheck(!ksp->transpose_solve, comm, PETSC_ERR_SUP, "-ksp_type shardmat does not solve with the transpose");
  PetscCheck(ksp->converged == KSPConvergedDefault || ksp->converged == KSPConvergedSkip, comm, PETSC_ERR_SUP,
             "-ksp_type shardmat has tolerances, but takes no convergence test of the program");
  if (ksp->converged == KSPConvergedDefault) {
    const auto* const how = static_cast<const KSPConvergedDefaultCtx*>(ksp->cnvP);
    PetscCheck(ksp->guess_zero || !(how->initialrtol || how->mininitialrtol), comm, PETSC_ERR_SUP,
               "-ksp_type shardmat compares with the norm of b: give -ksp_converged_use_initial_residual_norm 0 and "
               "-ksp_converged_use_min_initial_residual_norm 0");
  }
  PetscCheck(ksp->max_it > 0, comm, PETSC_ERR_ARG_OUTOFRANGE, "-ksp_type shardmat wants -ksp_max_it 1 or more");
  PetscFunctionReturn(kDone);
}

/// A number that changes with the vectors of a space; 0: there are none.
PetscErrorCode version_of(MatNullSpace space, PetscInt64* version) {
  PetscObjectId id = 0;
  PetscObjectState state = 0;
  PetscInt count = 0;
  const Vec* vectors = nullptr;
  PetscFunctionBegin;
  *version = 0;
  if (space == nullptr) PetscFunctionReturn(kDone);
  PetscCall(PetscObjectGetId(object(space), &id));
  *version = id << 32;
  PetscCall(MatNullSpaceGetVecs(space, nullptr, &count, &vectors));
  for (PetscInt v = 0; v < count; ++v) {
    PetscCall(PetscObjectStateGet(object(vectors[v]), &state));
    *version += state;
  }
  PetscFunctionReturn(kDone);
}

/// "auto": vectors span it.
PetscErrorCode read_null_space(KSP ksp, Mat a, Settings& settings) {
  MatNullSpace space = nullptr;
  PetscBool constant = PETSC_FALSE;
  PetscInt vectors = 0;
  PetscFunctionBegin;
  settings.null_space = "none";
  PetscCall(MatGetNullSpace(a, &space));
  if (space == nullptr) PetscFunctionReturn(kDone);
  PetscCall(MatNullSpaceGetVecs(space, &constant, &vectors, nullptr));
  PetscCheck(
      space->remove == nullptr, PetscObjectComm(object(ksp)), PETSC_ERR_SUP,
      "-ksp_type shardmat takes null spaces of vectors, and MatNullSpaceSetFunction() gave a function that removes it");
  if (vectors > 0) {
    settings.null_space = "auto";
    PetscCall(version_of(space, &settings.null_vectors));
  } else if (constant) settings.null_space = "constant";
  PetscFunctionReturn(kDone);
}

PetscErrorCode read_symmetry(Mat a, bool* symmetric, bool* definite) {
  PetscBool known = PETSC_FALSE, yes = PETSC_FALSE;
  PetscFunctionBegin;
  PetscCall(MatIsSPDKnown(a, &known, &yes));
  *definite = known && yes;
  PetscCall(MatIsSymmetricKnown(a, &known, &yes));
  *symmetric = *definite || (known && yes);
  PetscFunctionReturn(kDone);
}

/// What the solver gets to know of nodes and rows. The arrays live until it is made.
struct NodeFacts {
  double *coordinates = nullptr, *near_null = nullptr, *null = nullptr;
};

PetscErrorCode read_coordinates(KSP ksp, NodeFacts& facts, shardmat_solver_options& options) {
  PetscFunctionBegin;
  const OwnPreconditioner& own = own_preconditioner(ksp->pc);
  if (own.coordinates == nullptr || own.dimensions == 1) PetscFunctionReturn(kDone);  // on a line nothing rotates
  PetscCall(PetscMalloc1(own.nodes * own.dimensions + 1, &facts.coordinates));
  std::copy_n(own.coordinates, own.nodes * own.dimensions, facts.coordinates);
  options.coordinates = facts.coordinates;
  options.nodes = own.nodes, options.dimensions = static_cast<std::int32_t>(own.dimensions);
  PetscFunctionReturn(kDone);
}

/// Row by row, a constant vector first if the space has it; nothing of no space. The caller frees `values`.
PetscErrorCode read_vectors(MatNullSpace space, PetscInt rows, double** values, std::int32_t* count) {
  PetscBool constant = PETSC_FALSE;
  PetscInt given = 0;
  const Vec* vectors = nullptr;
  PetscFunctionBegin;
  if (space == nullptr) PetscFunctionReturn(kDone);
  PetscCall(MatNullSpaceGetVecs(space, &constant, &given, &vectors));
  const PetscInt first = constant ? 1 : 0, all = given + first;
  if (all == 0) PetscFunctionReturn(kDone);
  PetscCall(PetscMalloc1(rows * all + 1, values));
  for (PetscInt i = 0; constant && i < rows; ++i) (*values)[i * all] = 1;
  for (PetscInt v = 0; v < given; ++v) {
    const PetscScalar* of_one = nullptr;
    PetscCall(VecGetArrayRead(vectors[v], &of_one));
    for (PetscInt i = 0; i < rows; ++i) (*values)[i * all + first + v] = of_one[i];
    PetscCall(VecRestoreArrayRead(vectors[v], &of_one));
  }
  *count = static_cast<std::int32_t>(all);
  PetscFunctionReturn(kDone);
}

/// Near-null vectors for multigrid, and those of the null space.
PetscErrorCode read_spaces(Mat a, const Settings& settings, NodeFacts& facts, shardmat_solver_options& options) {
  MatNullSpace space = nullptr;
  PetscInt rows = 0;
  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(a, &rows, nullptr));
  if (is(settings.preconditioner, "multigrid")) {
    PetscCall(MatGetNearNullSpace(a, &space));
    PetscCall(read_vectors(space, rows, &facts.near_null, &options.near_null_count));
  }
  if (settings.null_vectors != 0) {
    PetscCall(MatGetNullSpace(a, &space));
    PetscCall(read_vectors(space, rows, &facts.null, &options.null_count));
  }
  options.near_null_vectors = facts.near_null, options.null_vectors = facts.null;
  PetscFunctionReturn(kDone);
}

PetscErrorCode read_settings(KSP ksp, Mat a, Settings& settings) {
  bool definite = false;
  MatNullSpace near = nullptr;
  PetscFunctionBegin;
  PetscCall(read_symmetry(a, &settings.symmetric, &definite));
  const bool chooses = std::string_view(data(ksp).method.data()) == "auto";
  settings.method = chooses ? name_of(settings.symmetric ? "cg" : "gmres") : data(ksp).method;
  const std::string_view type = object(ksp->pc)->type_name;
  settings.preconditioner =
      type == kPreconditionerType ? own_preconditioner(ksp->pc).type : name_of(find_preconditioner(type)->ours);
  if (is(settings.preconditioner, "multigrid")) {
    settings.coordinates = own_preconditioner(ksp->pc).version;
    PetscCall(MatGetNearNullSpace(a, &near));
    PetscCall(version_of(near, &settings.near_null_space));
  }
  PetscCall(MatGetBlockSize(a, &settings.node_block_size));
  PetscCall(read_null_space(ksp, a, settings));
  settings.norm = ksp->normtype == KSP_NORM_PRECONDITIONED ? "preconditioned"
                  : ksp->normtype == KSP_NORM_NATURAL      ? "natural"
                                                           : "unpreconditioned";
  const bool none = ksp->normtype == KSP_NORM_NONE || ksp->converged == KSPConvergedSkip;
  settings.penalty_rows = kPenaltyRows[static_cast<std::size_t>(data(ksp).penalty)];
  settings.restart = data(ksp).restart;
  settings.further = data(ksp).further;
  settings.max_it = ksp->max_it;
  settings.rtol = none || ksp->rtol == 0 ? -1 : ksp->rtol;
  settings.atol = none ? 0 : ksp->abstol;
  settings.dtol = none ? PETSC_MAX_REAL : ksp->divtol;
  PetscFunctionReturn(kDone);
}

PetscErrorCode make_solver(KSP ksp, Mat a, const AijCopy& copy, const Settings& settings) {
  Solver& solver = data(ksp);
  shardmat_solver_options options{};
  NodeFacts facts;
  PetscFunctionBegin;
  shardmat_solver_destroy(solver.solver);
  solver.solver = nullptr;
  options.size = sizeof options;
  options.solver = settings.method.data();
  options.preconditioner = settings.preconditioner.data();
  options.null_space = settings.null_space.data();
  options.residual_norm = settings.norm.data();
  options.penalty_rows = settings.penalty_rows.data();
  options.rtol = settings.rtol, options.atol = settings.atol, options.divergence_tolerance = settings.dtol;
  options.max_iterations = settings.max_it, options.restart = settings.restart;
  if (is(settings.preconditioner, "block_jacobi")) options.node_block_size = static_cast<int>(settings.node_block_size);
  options.assume_symmetric = settings.symmetric ? 1 : 0;
  options.settings = settings.further.data();
  if (is(settings.preconditioner, "multigrid")) PetscCall(read_coordinates(ksp, facts, options));
  PetscCall(read_spaces(a, settings, facts, options));
  const int status = shardmat_solver_create(copy.matrix, &options, &solver.solver);
  PetscCall(PetscFree(facts.coordinates));
  PetscCall(PetscFree(facts.near_null));
  PetscCall(PetscFree(facts.null));
  PetscCall(check(PetscObjectComm(object(ksp)), status, " (other methods: -ksp_shardmat_method)"));
  solver.settings = settings;
  solver.copy = copy.number, solver.new_values = copy.new_values;
  PetscFunctionReturn(kDone);
}

/// A solver for the matrix as it is now.
PetscErrorCode bring_up_to_date(KSP ksp) {
  Mat a = nullptr, p = nullptr;
  AijCopy* copy = nullptr;
  Settings settings{};
  Solver& solver = data(ksp);
  PetscFunctionBegin;
  PetscCall(require_preconditioner(ksp));
  PetscCall(KSPGetOperators(ksp, &a, &p));
  PetscCall(require_matrices(ksp, a, p));
  PetscCall(require_known_behaviour(ksp));
  PetscCall(read_settings(ksp, a, settings));
  const bool keeps_rows =
      !is(settings.preconditioner, "none") || settings.penalty_rows != "keep" || settings.further[0] != 0;
  PetscCall(updated_copy(a, keeps_rows, &copy));
  if (solver.solver == nullptr || solver.copy != copy->number || !(solver.settings == settings)) {
    PetscCall(make_solver(ksp, a, *copy, settings));
  } else if (solver.new_values != copy->new_values) {
    PetscCall(check(PetscObjectComm(object(ksp)), shardmat_solver_refresh(solver.solver)));
    solver.new_values = copy->new_values;
  }
  PetscFunctionReturn(kDone);
}

struct Reason {
  std::string_view ours;
  KSPConvergedReason petsc;
};
constexpr Reason kReasons[] = {
    {"converged_rtol", KSP_CONVERGED_RTOL},
    {"converged_atol", KSP_CONVERGED_ATOL},
    {"converged_attainable", KSP_CONVERGED_HAPPY_BREAKDOWN},
    {"least_squares", KSP_CONVERGED_RTOL_NORMAL},  // which PETSc's own MINRES says
    {"diverged_iterations", KSP_DIVERGED_ITS},
    {"diverged_tolerance", KSP_DIVERGED_DTOL},
    {"diverged_breakdown", KSP_DIVERGED_BREAKDOWN},
    {"diverged_indefinite_matrix", KSP_DIVERGED_INDEFINITE_MAT},
    {"diverged_indefinite_preconditioner", KSP_DIVERGED_INDEFINITE_PC},
    {"diverged_nan", KSP_DIVERGED_NANORINF},
    {"diverged_attainable_accuracy", KSP_DIVERGED_BREAKDOWN},
};

KSPConvergedReason reason_of(KSP ksp, std::string_view ours) {
  KSPConvergedReason found = KSP_DIVERGED_BREAKDOWN;
  for (const Reason& one : kReasons)
    if (one.ours == ours) found = one.petsc;
  // As KSPCG: without a norm the default test is never met, so the last iteration is a divergence, unless asked for.
  const bool counts =
      ksp->converged == KSPConvergedSkip || static_cast<const KSPConvergedDefaultCtx*>(ksp->cnvP)->convmaxits;
  return found == KSP_DIVERGED_ITS && counts ? KSP_CONVERGED_ITS : found;
}

/// Gives PETSc's history and monitors the norms of all iterations, when the solve is over.
PetscErrorCode tell_history(KSP ksp) {
  std::int64_t count = 0;
  double* norms = nullptr;
  const MPI_Comm comm = PetscObjectComm(object(ksp));
  PetscFunctionBegin;
  PetscCall(check(comm, shardmat_solver_history(data(ksp).solver, 0, nullptr, 0, &count)));
  PetscCall(PetscMalloc1(count, &norms));
  PetscCall(check(comm, shardmat_solver_history(data(ksp).solver, 0, norms, count, &count)));
  for (std::int64_t i = 0; i < count; ++i) {
    ksp->its = static_cast<PetscInt>(i);
    ksp->rnorm = norms[i];
    PetscCall(KSPLogResidualHistory(ksp, norms[i]));
    PetscCall(KSPMonitor(ksp, ksp->its, norms[i]));
  }
  PetscCall(PetscFree(norms));
  PetscFunctionReturn(kDone);
}

PetscErrorCode run(KSP ksp) {
  const PetscScalar* b = nullptr;
  PetscScalar* x = nullptr;
  PetscInt own = 0;
  shardmat_solve_result result{};
  PetscFunctionBegin;
  PetscCall(note_device(ksp->vec_rhs));
  PetscCall(VecGetLocalSize(ksp->vec_rhs, &own));
  PetscCall(PetscLogEventBegin(events().solve, ksp, ksp->vec_rhs, ksp->vec_sol, 0));
  PetscCall(VecGetArrayRead(ksp->vec_rhs, &b));
  PetscCall(VecGetArray(ksp->vec_sol, &x));
  shardmat_dense from{}, to{};
  from.data = const_cast<PetscScalar*>(b), to.data = x;
  from.rows = to.rows = own, from.columns = to.columns = from.leading = to.leading = 1;
  from.type = to.type = SHARDMAT_F64;
  result.size = sizeof result;
  const int status = shardmat_solver_solve(data(ksp).solver, &from, &to, &result);
  PetscCall(check(PetscObjectComm(object(ksp)), status == SHARDMAT_NOT_CONVERGED ? SHARDMAT_OK : status));
  PetscCall(VecRestoreArray(ksp->vec_sol, &x));
  PetscCall(VecRestoreArrayRead(ksp->vec_rhs, &b));
  PetscCall(PetscLogEventEnd(events().solve, ksp, ksp->vec_rhs, ksp->vec_sol, 0));
  PetscCall(tell_history(ksp));
  ksp->its = static_cast<PetscInt>(result.iterations);
  ksp->rnorm = result.residual;
  ksp->reason = reason_of(ksp, result.reason);
  PetscCall(
      PetscInfo(ksp, "Shardmat: %s: %s; true residual norm %g\n", result.reason, result.explanation, result.true_residual));
  PetscFunctionReturn(kDone);
}

PetscErrorCode solve(KSP ksp) {
  PetscReal norm = 0;
  PetscFunctionBegin;
  PetscCall(bring_up_to_date(ksp));
  PetscCall(VecNorm(ksp->vec_rhs, NORM_2, &norm));
  if (PetscIsInfOrNanReal(norm)) {  // PETSc calls this a reason, Shardmat an error
    ksp->its = 0;
    ksp->rnorm = norm;
    ksp->reason = KSP_DIVERGED_NANORINF;
    PetscFunctionReturn(kDone);
  }
  PetscCall(run(ksp));
  PetscFunctionReturn(kDone);
}

/// Refuses before PETSc sets up a preconditioner that would not be applied.
PetscErrorCode set_up(KSP ksp) {
  PetscFunctionBegin;
  PetscCall(require_preconditioner(ksp));
  PetscFunctionReturn(kDone);
}

PetscErrorCode set_from_options(KSP ksp, PetscOptionItems* PetscOptionsObject) {
  Solver& solver = data(ksp);
  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "Shardmat's solvers");
  PetscCall(PetscOptionsString("-ksp_shardmat_method",
                               "the method; auto: cg if MatSetOption() called the matrix symmetric or SPD, else gmres", "",
                               solver.method.data(), solver.method.data(), solver.method.size(), nullptr));
  PetscCall(PetscOptionsInt("-ksp_shardmat_restart", "steps until gmres and fgmres begin anew", "", solver.restart,
                            &solver.restart, nullptr));
  PetscCall(PetscOptionsEList("-ksp_shardmat_penalty_rows", "rows that state a known value by a huge diagonal", "",
                              kPenaltyRows.data(), static_cast<PetscInt>(kPenaltyRows.size()),
                              kPenaltyRows[static_cast<std::size_t>(solver.penalty)], &solver.penalty, nullptr));
  PetscCall(PetscOptionsString("-ksp_shardmat_settings", "further options by name: \"gram_schmidt=modified\"", "",
                               solver.further.data(), solver.further.data(), solver.further.size(), nullptr));
  PetscCheck(std::strlen(solver.further.data()) + 1 < solver.further.size(), PetscObjectComm(object(ksp)),
             PETSC_ERR_ARG_OUTOFRANGE, "-ksp_shardmat_settings takes at most %zu characters", solver.further.size() - 2);
  PetscOptionsHeadEnd();
  PetscFunctionReturn(kDone);
}

PetscErrorCode view(KSP ksp, PetscViewer viewer) {
  const Solver& solver = data(ksp);
  PetscBool text = PETSC_FALSE;
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare(object(viewer), PETSCVIEWERASCII, &text));
  if (!text) PetscFunctionReturn(kDone);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  Shardmat %s: method=%s, restart=%" PetscInt_FMT "%s%s\n", shardmat_version(),
                                   solver.solver == nullptr ? solver.method.data() : solver.settings.method.data(),
                                   solver.restart, solver.further[0] == 0 ? "" : ", settings: ", solver.further.data()));
  PetscFunctionReturn(kDone);
}

PetscErrorCode reset(KSP ksp) {
  PetscFunctionBegin;
  shardmat_solver_destroy(data(ksp).solver);
  data(ksp).solver = nullptr;
  PetscFunctionReturn(kDone);
}

PetscErrorCode destroy(KSP ksp) {
  PetscFunctionBegin;
  PetscCall(reset(ksp));
  PetscCall(KSPDestroyDefault(ksp));
  PetscFunctionReturn(kDone);
}

PetscErrorCode create(KSP ksp) {
  Solver* solver = nullptr;
  PetscFunctionBegin;
  PetscCall(PetscNew(&solver));
  solver->method = name_of("auto");
  solver->restart = 30;
  ksp->data = solver;
  for (const PCSide side : {PC_LEFT, PC_RIGHT}) {  // gmres applies it from the right; for the others it is the same
    PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, side, 3));
    PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_PRECONDITIONED, side, 2));
    PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NATURAL, side, 2));
    PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, side, 1));
  }
  ksp->ops->setup = set_up;
  ksp->ops->solve = solve;
  ksp->ops->setfromoptions = set_from_options;
  ksp->ops->view = view;
  ksp->ops->reset = reset;
  ksp->ops->destroy = destroy;
  ksp->ops->buildsolution = KSPBuildSolutionDefault;
  ksp->ops->buildresidual = KSPBuildResidualDefault;
  PetscFunctionReturn(kDone);
}

}  // namespace

PetscErrorCode register_solver_type() {
  PetscFunctionBegin;
  PetscCall(KSPRegister("shardmat", create));
  PetscFunctionReturn(kDone);
}

}  // namespace shardmat::petsc
