// What the files of the PETSc plug-in share. Its functions are PETSc's kind: they return a PetscErrorCode, no exception
// leaves them, and all of them are collective on the communicator of their matrix or solver.
#pragma once

#include <petsc/private/petscimpl.h>
#include <petscksp.h>

#include "shardmat.h"

namespace shardmat::petsc {

/// PetscFunctionReturn() of newer versions wants an enum.
inline constexpr PetscErrorCode kDone{};

inline constexpr const char* kSequentialType = "seqaijshardmat";
inline constexpr const char* kParallelType = "mpiaijshardmat";

template <class T>
PetscObject object(T* of) {
  return reinterpret_cast<PetscObject>(of);
}

/// The events of -log_view.
struct Events {
  PetscLogEvent copy, multiply, multiply_dense, solve;
};
Events& events();

/// Raises a PETSc error with the message of shardmat_last_error() unless `status` is SHARDMAT_OK. `remedy`: one more
/// sentence.
PetscErrorCode check(MPI_Comm comm, int status, const char* remedy = "");

/// The context of the ranks of a communicator of PETSc; it lives as long as the communicator. One rank among several works
/// on the host with one thread, so that the ranks do not take the same GPU or the same cores.
PetscErrorCode context_of(MPI_Comm comm, shardmat_context** context);

/// Says once that vectors on a device are copied through the host.
PetscErrorCode note_device(Vec vector);

PetscErrorCode register_matrix_types();
PetscErrorCode register_solver_type();

}  // namespace shardmat::petsc
