/* What the test programs of the plug-in share: they count failures on all ranks. */
#ifndef SHARDMAT_TESTS_PETSC_CHECK_H
#define SHARDMAT_TESTS_PETSC_CHECK_H

#include <petscksp.h>
#include <stdio.h>

static int failures = 0;

#define CHECK_AT(line, condition)                                \
  do {                                                           \
    if (!(condition)) {                                          \
      ++failures;                                                \
      printf("%s:%d: failed: %s\n", __FILE__, line, #condition); \
    }                                                            \
  } while (0)
#define CHECK(condition) CHECK_AT(__LINE__, condition)

/* Any number from -1 to 1 for a place. */
static inline PetscScalar number(PetscInt i, PetscInt j) {
  return (PetscScalar)((i * 7919 + j * 104729 + i * j * 31) % 2003) / 1001.5 - 1;
}

static inline PetscErrorCode fill(Vec x, PetscInt seed) {
  PetscInt first, last;
  PetscFunctionBeginUser;
  PetscCall(VecGetOwnershipRange(x, &first, &last));
  for (PetscInt i = first; i < last; ++i) PetscCall(VecSetValue(x, i, number(i + 1, seed), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(x));
  PetscCall(VecAssemblyEnd(x));
  PetscFunctionReturn(0);
}

static inline PetscErrorCode close_to(Vec x, Vec y, PetscBool* yes) {
  Vec difference;
  PetscReal norm, size;
  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(x, &difference));
  PetscCall(VecCopy(x, difference));
  PetscCall(VecAXPY(difference, -1, y));
  PetscCall(VecNorm(difference, NORM_INFINITY, &norm));
  PetscCall(VecNorm(y, NORM_INFINITY, &size));
  PetscCall(VecDestroy(&difference));
  *yes = size > 0 && norm <= 1e-13 * size ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(0);
}

/* How often an event happened on this rank. */
static inline PetscErrorCode count_of(const char* event, PetscInt* count) {
  PetscLogEvent id;
  PetscEventPerfInfo info;
  PetscFunctionBeginUser;
  PetscCall(PetscLogEventGetId(event, &id));
  PetscCall(PetscLogEventGetPerfInfo(0, id, &info));
  *count = info.count;
  PetscFunctionReturn(0);
}

/* Ends the program's MPI, too. */
static inline PetscErrorCode finish(int* status) {
  int all = 0;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, all == 0 ? "passed\n" : "%d failures\n", all));
  PetscCall(PetscFinalize());
  *status = all == 0 ? 0 : 1;
  PetscFunctionReturn(0);
}

#endif
