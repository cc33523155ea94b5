/* A PETSc program that knows nothing of Shardmat: two coupled unknowns on each point of a grid, symmetric and positive
 * definite. It prints the iterations, the reason, and the norm of the error. */
#include <petscksp.h>

static PetscErrorCode assemble(Mat a, PetscInt n) {
  const PetscScalar coupling[2][2] = {{2, 0.5}, {0.5, 1}};
  PetscInt first, last;
  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(a, &first, &last));
  for (PetscInt row = first; row < last; ++row) {
    const PetscInt point = row / 2, i = point / n, j = point % n;
    const PetscInt points[5] = {point, point - n, point + n, point - 1, point + 1};
    const int there[5] = {1, i > 0, i<n - 1, j> 0, j < n - 1};
    for (int k = 0; k < 5; ++k)
      for (PetscInt c = 0; c < 2; ++c)
        if (there[k])
          PetscCall(MatSetValue(a, row, 2 * points[k] + c,
                                (k == 0 ? 4 + 0.01 * (PetscScalar)(i + 1) : -1) * coupling[row % 2][c], INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(0);
}

int main(int argc, char** argv) {
  Mat a;
  Vec x, b, known;
  KSP ksp;
  KSPConvergedReason reason;
  PetscInt n = 20, block = 2, iterations;
  PetscReal error;
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-bs", &block, NULL));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &a));
  PetscCall(MatSetSizes(a, PETSC_DECIDE, PETSC_DECIDE, 2 * n * n, 2 * n * n));
  PetscCall(MatSetBlockSize(a, block));
  PetscCall(MatSetFromOptions(a));
  PetscCall(MatSeqAIJSetPreallocation(a, 10, NULL));
  PetscCall(MatMPIAIJSetPreallocation(a, 10, NULL, 10, NULL));
  PetscCall(MatSetUp(a));
  PetscCall(assemble(a, n));
  PetscCall(MatSetOption(a, MAT_SPD, PETSC_TRUE));
  PetscCall(MatCreateVecs(a, &x, &b));
  PetscCall(VecDuplicate(x, &known));
  PetscCall(VecSet(known, 1));
  PetscCall(MatMult(a, known, b));

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, a, a));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));

  PetscCall(KSPGetIterationNumber(ksp, &iterations));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(VecAXPY(x, -1, known));
  PetscCall(VecNorm(x, NORM_2, &error));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "iterations %d reason %s error %.1e\n", (int)iterations,
                        KSPConvergedReasons[reason], (double)error));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&known));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&a));
  PetscCall(PetscFinalize());
  return 0;
}
