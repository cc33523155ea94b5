/* Solvers of -ksp_type shardmat: what is solved, how it ends, what is refused. The plug-in is loaded by -dll_append. */
#include <math.h>

#include "check.h"

/* A Laplacian on a line; `skew` makes it unsymmetric, `sign` -1 negative definite, `free_ends` singular. */
static PetscErrorCode assemble(MPI_Comm comm, PetscInt n, PetscScalar sign, PetscScalar skew, PetscBool free_ends, Mat* a) {
  PetscInt first, last;
  PetscFunctionBeginUser;
  PetscCall(MatCreate(comm, a));
  PetscCall(MatSetSizes(*a, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetFromOptions(*a));
  PetscCall(MatSetUp(*a));
  PetscCall(MatGetOwnershipRange(*a, &first, &last));
  for (PetscInt i = first; i < last; ++i) {
    const PetscBool end = i == 0 || i == n - 1 ? PETSC_TRUE : PETSC_FALSE;
    if (i > 0) PetscCall(MatSetValue(*a, i, i - 1, sign * (-1 - skew), INSERT_VALUES));
    if (i < n - 1) PetscCall(MatSetValue(*a, i, i + 1, sign * (-1 + skew), INSERT_VALUES));
    PetscCall(MatSetValue(*a, i, i, sign * (free_ends ? (end ? 1 : 2) : 2.1 + 0.01 * (PetscScalar)(i % 7)), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*a, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*a, MAT_FINAL_ASSEMBLY));
  if (skew == 0) {
    PetscCall(MatSetOption(*a, MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(MatSetOption(*a, MAT_SYMMETRY_ETERNAL, PETSC_TRUE)); /* also of new values */
  }
  PetscFunctionReturn(0);
}

static PetscErrorCode create(Mat a, PCType preconditioner, KSP* ksp) {
  PC pc;
  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)a), ksp));
  PetscCall(KSPSetType(*ksp, "shardmat"));
  PetscCall(KSPSetOperators(*ksp, a, a));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, preconditioner));
  PetscCall(KSPSetTolerances(*ksp, 1e-9, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscFunctionReturn(0);
}

static PetscErrorCode residual_of(Mat a, Vec b, Vec x, PetscReal* relative) {
  Vec r;
  PetscReal size;
  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatResidual(a, b, x, r));
  PetscCall(VecNorm(r, NORM_2, relative));
  PetscCall(VecNorm(b, NORM_2, &size));
  PetscCall(VecDestroy(&r));
  *relative /= size;
  PetscFunctionReturn(0);
}

/* Solves from 0 and compares the reason; a convergence also with the true residual. */
static PetscErrorCode solve_at(int line, KSP ksp, KSPConvergedReason expected, PetscInt* iterations) {
  Mat a;
  Vec x, b;
  KSPConvergedReason reason;
  PetscReal relative, rtol;
  PetscInt its;
  PetscFunctionBeginUser;
  PetscCall(KSPGetOperators(ksp, &a, NULL));
  PetscCall(MatCreateVecs(a, &x, &b));
  PetscCall(fill(b, 5));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, &its));
  CHECK_AT(line, reason == expected);
  if (expected == KSP_CONVERGED_RTOL) {
    PetscCall(KSPGetTolerances(ksp, &rtol, NULL, NULL, NULL));
    PetscCall(residual_of(a, b, x, &relative));
    CHECK_AT(line, relative <= rtol && its > 0);
  }
  if (iterations != NULL) *iterations = its;
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(0);
}
#define solve(ksp, expected, iterations) solve_at(__LINE__, ksp, expected, iterations)

static PetscErrorCode note(KSP ksp, PetscInt i, PetscReal norm, void* calls) {
  (void)ksp;
  PetscFunctionBeginUser;
  CHECK(i == *(PetscInt*)calls && norm > 0);
  ++*(PetscInt*)calls;
  PetscFunctionReturn(0);
}

static PetscErrorCode solves(Mat a) {
  KSP ksp;
  Vec x, b;
  PetscInt its, fewer, calls = 0, count, copies, copies_then;
  const PetscReal* history;
  PetscReal norm;
  KSPConvergedReason reason;
  PetscFunctionBeginUser;
  PetscCall(create(a, PCJACOBI, &ksp));
  PetscCall(KSPSetResidualHistory(ksp, NULL, 1000, PETSC_TRUE));
  PetscCall(KSPMonitorSet(ksp, note, &calls, NULL));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &its));
  PetscCall(KSPGetResidualHistory(ksp, &history, &count));
  PetscCall(KSPGetResidualNorm(ksp, &norm));
  CHECK(calls == its + 1 && count == its + 1 && fabs(history[its] - norm) <= 1e-12 * history[0]);
  PetscCall(KSPMonitorCancel(ksp));

  PetscCall(count_of("MatCopyShardmat", &copies));
  PetscCall(KSPSetTolerances(ksp, 1e-3, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT)); /* as Newton's method does */
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &fewer));
  CHECK(fewer < its);
  PetscCall(MatShift(a, 1)); /* new values */
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, NULL));
  PetscCall(MatShift(a, -1));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &its));
  CHECK(its == fewer);
  PetscCall(count_of("MatCopyShardmat", &copies_then));
  CHECK(copies_then == copies + 2);

  PetscCall(MatCreateVecs(a, &x, &b)); /* from the solution */
  PetscCall(fill(x, 8));
  PetscCall(MatMult(a, x, b));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  CHECK(its == 0 && reason > 0);
  PetscCall(VecSetValue(b, 0, NAN, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  CHECK(reason == KSP_DIVERGED_NANORINF);
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(0);
}

/* After the most iterations, PETSc's own conjugate gradients and ours give the same reason. */
static PetscErrorCode ends_by_count(Mat a, KSPNormType norm, KSPConvergedReason expected, const char* options) {
  const KSPType types[] = {KSPCG, "shardmat"};
  KSP ksp;
  PetscInt its;
  PetscFunctionBeginUser;
  for (int i = 0; i < 2; ++i) {
    PetscCall(create(a, PCJACOBI, &ksp));
    PetscCall(KSPSetType(ksp, types[i]));
    PetscCall(KSPSetNormType(ksp, norm));
    PetscCall(KSPSetOptionsPrefix(ksp, "count_"));
    PetscCall(PetscOptionsInsertString(NULL, options));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(KSPSetTolerances(ksp, 1e-9, 0, PETSC_DEFAULT, 5));
    PetscCall(solve(ksp, expected, &its));
    CHECK(its == 5);
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-count_ksp_converged_maxits"));
  PetscCall(PetscOptionsClearValue(NULL, "-count_ksp_convergence_test"));
  PetscFunctionReturn(0);
}

static PetscErrorCode ends(Mat a) {
  KSP ksp;
  Mat negative;
  PetscInt its;
  PetscFunctionBeginUser;
  PetscCall(create(a, PCPBJACOBI, &ksp));
  PetscCall(KSPSetTolerances(ksp, 1e-9, PETSC_DEFAULT, PETSC_DEFAULT, 3));
  PetscCall(solve(ksp, KSP_DIVERGED_ITS, &its));
  CHECK(its == 3);
  PetscCall(KSPSetTolerances(ksp, 0, 1e-4, PETSC_DEFAULT, 1000));
  PetscCall(solve(ksp, KSP_CONVERGED_ATOL, NULL));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(ends_by_count(a, KSP_NORM_NONE, KSP_DIVERGED_ITS, ""));
  PetscCall(ends_by_count(a, KSP_NORM_NONE, KSP_CONVERGED_ITS, "-count_ksp_converged_maxits"));
  PetscCall(ends_by_count(a, KSP_NORM_NONE, KSP_CONVERGED_ITS, "-count_ksp_convergence_test skip"));
  PetscCall(ends_by_count(a, KSP_NORM_UNPRECONDITIONED, KSP_DIVERGED_ITS, ""));
  PetscCall(ends_by_count(a, KSP_NORM_UNPRECONDITIONED, KSP_CONVERGED_ITS, "-count_ksp_converged_maxits"));
  PetscCall(ends_by_count(a, KSP_NORM_UNPRECONDITIONED, KSP_CONVERGED_ITS, "-count_ksp_convergence_test skip"));
  PetscCall(assemble(PETSC_COMM_WORLD, 60, -1, 0, PETSC_FALSE, &negative));
  PetscCall(create(negative, PCNONE, &ksp));
  PetscCall(solve(ksp, KSP_DIVERGED_INDEFINITE_MAT, NULL));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&negative));
  PetscFunctionReturn(0);
}

static PetscErrorCode chooses_methods(Mat symmetric) {
  const char* const methods[] = {"gmres", "fgmres", "bicgstab"};
  Mat a;
  KSP ksp;
  PetscInt cg, other;
  PetscFunctionBeginUser;
  PetscCall(create(symmetric, PCJACOBI, &ksp));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &cg));
  PetscCall(KSPReset(ksp));
  PetscCall(KSPSetOperators(ksp, symmetric, symmetric));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_NATURAL));
  PetscCall(KSPSetTolerances(ksp, 1e-6, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(solve_at(__LINE__, ksp, KSP_CONVERGED_RTOL, NULL));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(assemble(PETSC_COMM_WORLD, 80, 1, 0.4, PETSC_FALSE, &a));
  PetscCall(create(a, PCJACOBI, &ksp)); /* not known to be symmetric: gmres */
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &cg));
  for (int i = 0; i < 3; ++i) {
    PetscCall(PetscOptionsSetValue(NULL, "-ksp_shardmat_method", methods[i]));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &other));
    if (i == 0) CHECK(other == cg);
  }
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_shardmat_method"));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_shardmat_settings", "max_iterations=1"));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(solve(ksp, KSP_DIVERGED_ITS, &other));
  CHECK(other == 1);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&a));
  PetscCall(assemble(PETSC_COMM_WORLD, 60, 1, 0, PETSC_FALSE, &a)); /* the rows stay for the preconditioner */
  PetscCall(create(a, PCNONE, &ksp));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_shardmat_settings", "preconditioner=jacobi"));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &other));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_shardmat_settings"));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&a));
  PetscFunctionReturn(0);
}

static PetscErrorCode knows_constants(void) {
  Mat a;
  KSP ksp;
  MatNullSpace space;
  Vec x, b;
  PetscReal relative, sum;
  PetscFunctionBeginUser;
  PetscCall(assemble(PETSC_COMM_WORLD, 50, 1, 0, PETSC_TRUE, &a));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &space));
  PetscCall(MatSetNullSpace(a, space));
  PetscCall(MatNullSpaceDestroy(&space));
  PetscCall(create(a, PCJACOBI, &ksp));
  PetscCall(MatCreateVecs(a, &x, &b));
  PetscCall(fill(x, 5));
  PetscCall(MatMult(a, x, b));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(residual_of(a, b, x, &relative));
  CHECK(relative <= 1e-8);
  PetscCall(VecSum(x, &sum));
  CHECK(fabs(sum) < 1e-6);
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&a));
  PetscFunctionReturn(0);
}

/* Every ninth row states a known value by a huge diagonal. It is a row like others unless the option says more. */
static PetscErrorCode takes_penalty_rows(void) {
  const char* const choices[] = {NULL, "keep", "auto", "known"};
  const PetscInt n = 80;
  PetscFunctionBeginUser;
  for (int choice = 0; choice < 4; ++choice) {
    Mat a;
    Vec x, b, expected;
    KSP ksp;
    PetscInt first, last;
    PetscReal wrong, size;
    PetscCall(assemble(PETSC_COMM_WORLD, n, 1, 0, PETSC_FALSE, &a));
    PetscCall(MatCreateVecs(a, &x, &b));
    PetscCall(VecDuplicate(x, &expected));
    PetscCall(fill(expected, 3));
    PetscCall(MatMult(a, expected, b));
    PetscCall(MatGetOwnershipRange(a, &first, &last));
    for (PetscInt i = first; i < last; ++i)
      if (i % 9 == 4) {
        PetscScalar value;
        PetscCall(VecGetValues(expected, 1, &i, &value));
        PetscCall(MatSetValue(a, i, i, 1e30 * (1 + (PetscReal)i), INSERT_VALUES));
        PetscCall(VecSetValue(b, i, 1e30 * (1 + (PetscReal)i) * value, INSERT_VALUES));
      }
    PetscCall(MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY));
    PetscCall(VecAssemblyBegin(b));
    PetscCall(VecAssemblyEnd(b));
    PetscCall(create(a, choice % 2 == 0 ? PCJACOBI : PCNONE, &ksp));
    PetscCall(KSPSetTolerances(ksp, 1e-12, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
    if (choices[choice] != NULL) PetscCall(PetscOptionsSetValue(NULL, "-ksp_shardmat_penalty_rows", choices[choice]));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(VecNorm(expected, NORM_2, &size));
    PetscCall(VecAXPY(x, -1, expected));
    PetscCall(VecNorm(x, NORM_2, &wrong));
    CHECK((wrong < 1e-9 * size) == (choice >= 2));
    if (choices[choice] != NULL) PetscCall(PetscOptionsClearValue(NULL, "-ksp_shardmat_penalty_rows"));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&expected));
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&x));
    PetscCall(MatDestroy(&a));
  }
  PetscFunctionReturn(0);
}

static PetscErrorCode any_test(KSP ksp, PetscInt i, PetscReal norm, KSPConvergedReason* reason, void* user) {
  (void)ksp, (void)i, (void)norm, (void)user;
  *reason = KSP_CONVERGED_ITERATING;
  return 0;
}

/* Matrices that come and go, perhaps at the same address. */
static PetscErrorCode takes_another(void) {
  Mat a;
  KSP ksp = NULL;
  PetscFunctionBeginUser;
  for (int i = 0; i < 4; ++i) {
    PetscCall(assemble(PETSC_COMM_WORLD, 40, 1 + i, 0, PETSC_FALSE, &a));
    if (ksp == NULL) PetscCall(create(a, PCJACOBI, &ksp));
    PetscCall(KSPSetOperators(ksp, a, a));
    PetscCall(MatDestroy(&a));
    PetscCall(solve(ksp, KSP_CONVERGED_RTOL, NULL));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(0);
}

/* KSPSolve() of `ksp` ends with an error. */
static PetscErrorCode fails_at(int line, KSP ksp, PetscBool transposed, PetscErrorCode expected) {
  Mat a;
  Vec x, b;
  PetscErrorCode code;
  PetscFunctionBeginUser;
  PetscCall(KSPGetOperators(ksp, &a, NULL));
  PetscCall(MatCreateVecs(a, &x, &b));
  PetscCall(VecSet(b, 1));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  code = transposed ? KSPSolveTranspose(ksp, b, x) : KSPSolve(ksp, b, x);
  PetscCall(PetscPopErrorHandler());
  CHECK_AT(line, code == expected);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(0);
}

#define refuses(ksp, transposed) fails_at(__LINE__, ksp, transposed, PETSC_ERR_SUP)

/* A plate of square elements, 80 x 4, perhaps held at its left edge, with its nodes in an order of no meaning. */
enum { kAcross = 81, kUp = 5, kNodes = kAcross * kUp };

static PetscInt number_of(PetscInt x, PetscInt y) { return (x * kUp + y) * 101 % kNodes; }

static PetscErrorCode assemble_plate(PetscBool holds, Mat* a, Vec* coordinates) {
  static const char* const places[] = {"12345678", "21876543", "38167452", "47618325",
                                       "56781234", "65432187", "74523816", "83254761"};
  const double nu = 0.3,
               of[] = {1. / 2 - nu / 6,  1. / 8 + nu / 8, -1. / 4 - nu / 12,  -1. / 8 + 3 * nu / 8, -1. / 4 + nu / 12,
                       -1. / 8 - nu / 8, nu / 6,          1. / 8 - 3 * nu / 8};
  PetscScalar element[64];
  PetscInt held[2 * kUp], first, last;
  PetscFunctionBeginUser;
  for (int i = 0; i < 64; ++i) element[i] = of[places[i / 8][i % 8] - '1'] / (1 - nu * nu);
  PetscCall(MatCreate(PETSC_COMM_WORLD, a));
  PetscCall(MatSetBlockSize(*a, 2));
  PetscCall(MatSetSizes(*a, PETSC_DECIDE, PETSC_DECIDE, 2 * kNodes, 2 * kNodes));
  PetscCall(MatSetFromOptions(*a));
  PetscCall(MatSetUp(*a));
  PetscCall(MatCreateVecs(*a, coordinates, NULL));
  PetscCall(MatGetOwnershipRange(*a, &first, &last));
  for (PetscInt x = 0; x < kAcross; ++x)
    for (PetscInt y = 0; y < kUp; ++y) {
      const PetscInt nodes[] = {number_of(x, y), number_of(x + 1, y), number_of(x + 1, y + 1), number_of(x, y + 1)};
      const PetscScalar at[] = {(PetscScalar)x, (PetscScalar)y};
      if (x == 0) held[2 * y] = 2 * nodes[0], held[2 * y + 1] = 2 * nodes[0] + 1;
      if (2 * nodes[0] < first || 2 * nodes[0] >= last) continue;
      PetscCall(VecSetValuesBlocked(*coordinates, 1, nodes, at, INSERT_VALUES));
      if (x + 1 < kAcross && y + 1 < kUp) PetscCall(MatSetValuesBlocked(*a, 4, nodes, 4, nodes, element, ADD_VALUES));
    }
  PetscCall(VecAssemblyBegin(*coordinates));
  PetscCall(VecAssemblyEnd(*coordinates));
  PetscCall(MatAssemblyBegin(*a, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*a, MAT_FINAL_ASSEMBLY));
  if (holds) PetscCall(MatZeroRowsColumns(*a, first == 0 ? 2 * kUp : 0, held, 1, NULL, NULL));
  PetscCall(MatSetOption(*a, holds ? MAT_SPD : MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatSetOption(*a, MAT_SYMMETRY_ETERNAL, PETSC_TRUE));
  PetscFunctionReturn(0);
}

static PetscErrorCode with_coordinates(KSP ksp, Vec coordinates, PetscInt dimensions, PetscInt missing) {
  PC pc;
  PetscInt own;
  PetscScalar* values;
  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(VecGetLocalSize(coordinates, &own));
  PetscCall(VecGetArray(coordinates, &values));
  PetscCall(PCSetCoordinates(pc, dimensions, own / dimensions - missing, values));
  PetscCall(VecRestoreArray(coordinates, &values));
  PetscFunctionReturn(0);
}

/* Coordinates and near null spaces that are set later make another solver. */
static PetscErrorCode takes_multigrid(void) {
  Mat a;
  Vec coordinates, zero;
  KSP ksp;
  MatNullSpace space;
  PetscInt without, with, again;
  PetscFunctionBeginUser;
  PetscCall(assemble_plate(PETSC_TRUE, &a, &coordinates));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_shardmat_settings", "coarse_size=30,inner=f64"));
  PetscCall(create(a, "shardmat", &ksp));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &without));
  PetscCall(with_coordinates(ksp, coordinates, 2, 0));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &with));
  CHECK(2 * without > 3 * with);
  PetscCall(KSPDestroy(&ksp));

  PetscCall(create(a, "shardmat", &ksp));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(MatNullSpaceCreateRigidBody(coordinates, &space));
  PetscCall(MatSetNearNullSpace(a, space));
  PetscCall(MatNullSpaceDestroy(&space));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &again));
  CHECK(PetscAbs(again - with) <= 1);
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &space)); /* one vector, for two unknowns a node */
  PetscCall(MatSetNearNullSpace(a, space));
  PetscCall(MatNullSpaceDestroy(&space));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &again));
  CHECK(again > without);
  PetscCall(MatSetNearNullSpace(a, NULL));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &again));
  CHECK(again == without);
  PetscCall(KSPDestroy(&ksp));

  PetscCall(create(a, "shardmat", &ksp)); /* one node too few */
  PetscCall(with_coordinates(ksp, coordinates, 2, 1));
  PetscCall(refuses(ksp, PETSC_FALSE));
  PetscCall(create(a, "shardmat", &ksp));
  PetscCall(KSPSetType(ksp, KSPCG)); /* PETSc does not apply it */
  PetscCall(refuses(ksp, PETSC_FALSE));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_shardmat_settings", ""));
  PetscCall(PetscOptionsSetValue(NULL, "-pc_shardmat_type", "block_jacobi"));
  PetscCall(create(a, "shardmat", &ksp));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &with));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(PetscOptionsClearValue(NULL, "-pc_shardmat_type"));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_shardmat_settings"));
  PetscCall(create(a, PCPBJACOBI, &ksp));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, &again));
  CHECK(again == with);
  PetscCall(KSPDestroy(&ksp));

  PetscCall(create(a, "shardmat", &ksp));
  PetscCall(VecDuplicate(coordinates, &zero));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_FALSE, 1, &zero, &space));
  PetscCall(MatSetNearNullSpace(a, space));
  PetscCall(MatNullSpaceDestroy(&space));
  PetscCall(fails_at(__LINE__, ksp, PETSC_FALSE, PETSC_ERR_ARG_WRONG)); /* an error of input */
  PetscCall(VecDestroy(&zero));
  PetscCall(VecDestroy(&coordinates));
  PetscCall(MatDestroy(&a));
  PetscFunctionReturn(0);
}

/* A plate that nothing holds: x is that of PETSc's own solver. (KSPSolve() leaks a vector where null spaces are refused.) */
static PetscErrorCode knows_null_spaces(void) {
  Mat a;
  Vec coordinates, x, b, expected, moved;
  KSP ksp, theirs;
  MatNullSpace space;
  PetscReal size, wrong, lengths[3];
  KSPConvergedReason reason;
  const Vec* modes;
  PetscFunctionBeginUser;
  PetscCall(assemble_plate(PETSC_FALSE, &a, &coordinates));
  PetscCall(MatNullSpaceCreateRigidBody(coordinates, &space));
  PetscCall(MatSetNullSpace(a, space));
  PetscCall(MatNullSpaceGetVecs(space, NULL, NULL, &modes));
  PetscCall(MatCreateVecs(a, &x, &b));
  PetscCall(VecDuplicate(x, &expected));
  PetscCall(VecDuplicate(x, &moved));
  PetscCall(fill(b, 5)); /* partly out of reach */
  PetscCall(create(a, PCJACOBI, &theirs));
  PetscCall(KSPSetType(theirs, KSPCG));
  PetscCall(KSPSetTolerances(theirs, 1e-11, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPSolve(theirs, b, expected));
  PetscCall(VecNorm(expected, NORM_2, &size));
  const PCType types[] = {PCNONE, PCJACOBI, PCPBJACOBI, "shardmat"};
  for (int i = 0; i < 4; ++i) {
    PetscCall(create(a, types[i], &ksp));
    PetscCall(KSPSetTolerances(ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(VecMDot(x, 3, modes, lengths));
    for (int m = 0; m < 3; ++m) CHECK(fabs(lengths[m]) <= 1e-7 * size);
    PetscCall(VecWAXPY(moved, -1, expected, x));
    PetscCall(VecNorm(moved, NORM_2, &wrong));
    CHECK(reason == KSP_CONVERGED_RTOL && wrong <= 1e-5 * size);
    if (i < 3) PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatNullSpaceDestroy(&space)); /* one motion alone is a null space, too, and makes another solver */
  PetscCall(VecSet(moved, 1 / sqrt(2. * kNodes)));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_FALSE, 1, &moved, &space));
  PetscCall(MatSetNullSpace(a, space));
  PetscCall(MatNullSpaceDestroy(&space));
  PetscCall(MatMult(a, coordinates, b));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(VecDot(x, moved, lengths));
  CHECK(reason == KSP_CONVERGED_RTOL && fabs(lengths[0]) <= 1e-7 * size);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(KSPDestroy(&theirs));
  PetscCall(VecDestroy(&moved));
  PetscCall(VecDestroy(&expected));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&coordinates));
  PetscCall(MatDestroy(&a));
  PetscFunctionReturn(0);
}

static PetscErrorCode refuses_all(Mat a) {
  const PCType preconditioners[] = {PCSOR, PCBJACOBI, PCGAMG};
  KSP ksp;
  PC pc;
  Mat other;
  PetscFunctionBeginUser;
  for (int i = 0; i < 3; ++i) {
    PetscCall(create(a, preconditioners[i], &ksp));
    PetscCall(refuses(ksp, PETSC_FALSE));
  }
  PetscCall(create(a, PCJACOBI, &ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCJacobiSetUseAbs(pc, PETSC_TRUE));
  PetscCall(refuses(ksp, PETSC_FALSE));
  PetscCall(create(a, PCNONE, &ksp));
  PetscCall(KSPSetConvergenceTest(ksp, any_test, NULL, NULL));
  PetscCall(refuses(ksp, PETSC_FALSE));
  PetscCall(create(a, PCNONE, &ksp));
  PetscCall(refuses(ksp, PETSC_TRUE));
  PetscCall(MatDuplicate(a, MAT_COPY_VALUES, &other));
  PetscCall(create(a, PCJACOBI, &ksp));
  PetscCall(KSPSetOperators(ksp, a, other));
  PetscCall(refuses(ksp, PETSC_FALSE));
  PetscCall(MatDestroy(&other));
  PetscCall(MatConvert(a, MATSBAIJ, MAT_INITIAL_MATRIX, &other));
  PetscCall(create(other, PCNONE, &ksp));
  PetscCall(refuses(ksp, PETSC_FALSE));
  PetscCall(MatDestroy(&other));
  PetscCall(assemble(PETSC_COMM_WORLD, 40, 1, 0.3, PETSC_FALSE, &other)); /* not symmetric */
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_shardmat_method", "minres"));
  PetscCall(create(other, PCNONE, &ksp));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(refuses(ksp, PETSC_FALSE));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_shardmat_method"));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_shardmat_settings", "restrat=5"));
  PetscCall(create(other, PCNONE, &ksp));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(refuses(ksp, PETSC_FALSE));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_shardmat_settings"));
  PetscCall(create(other, PCNONE, &ksp)); /* gmres has the true residual only */
  PetscCall(KSPSetNormType(ksp, KSP_NORM_PRECONDITIONED));
  PetscCall(refuses(ksp, PETSC_FALSE));
  PetscCall(MatDestroy(&other));
  PetscFunctionReturn(0);
}

int main(int argc, char** argv) {
  Mat a, alone;
  KSP ksp;
  int status;
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(assemble(PETSC_COMM_WORLD, 100, 1, 0, PETSC_FALSE, &a));
  PetscCall(solves(a));
  PetscCall(ends(a));
  PetscCall(chooses_methods(a));
  PetscCall(knows_constants());
  PetscCall(takes_penalty_rows());
  PetscCall(takes_another());
  PetscCall(takes_multigrid());
  PetscCall(knows_null_spaces());
  PetscCall(assemble(PETSC_COMM_SELF, 30, 1, 0, PETSC_FALSE, &alone));
  PetscCall(create(alone, PCNONE, &ksp));
  PetscCall(solve(ksp, KSP_CONVERGED_RTOL, NULL));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&alone));
  PetscCall(refuses_all(a));
  PetscCall(MatDestroy(&a));
  PetscCall(finish(&status));
  return status;
}
