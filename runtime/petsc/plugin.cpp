// What PETSc calls when it loads the plug-in, and what all of it needs: contexts, errors.
#include "runtime/petsc/plugin.h"

#include <cstdint>

#include "runtime/petsc/preconditioner_type.h"
#include "shardmat_mpi.h"

namespace shardmat::petsc {
namespace {

/// Seconds. Ranks of a PETSc program may wait for each other as long as they like.
constexpr double kPatience = 86'400;

int delete_context(MPI_Comm, int, void* context, void*) {
  shardmat_context_destroy(static_cast<shardmat_context*>(context));
  return MPI_SUCCESS;
}

/// The attribute that holds a communicator's context.
PetscErrorCode find_key(int* key) {
  static int made = MPI_KEYVAL_INVALID;
  PetscFunctionBegin;
  if (made == MPI_KEYVAL_INVALID)
    PetscCallMPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_context, &made, nullptr));
  *key = made;
  PetscFunctionReturn(kDone);
}

PetscErrorCode make_context(MPI_Comm comm, shardmat_context** context) {
  char backend[16] = "auto";
  PetscInt threads = 0;
  PetscReal patience = kPatience;
  PetscMPIInt ranks = 1, all = 1;
  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &ranks));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &all));
  const bool one_of_several = ranks == 1 && all > 1;
  PetscOptionsBegin(comm, nullptr, "Where Shardmat works", "Mat");
  PetscCall(PetscOptionsString("-shardmat_backend", "auto (a GPU if every rank has one), host or cuda", "", backend, backend,
                               sizeof backend, nullptr));
  PetscCall(PetscOptionsInt("-shardmat_threads", "host threads of each rank; 0: OMP_NUM_THREADS, or its share of the cores",
                            "", threads, &threads, nullptr));
  PetscCall(PetscOptionsReal("-shardmat_timeout", "seconds to wait for another rank", "", patience, &patience, nullptr));
  PetscOptionsEnd();
  shardmat_context_options options{};
  options.size = sizeof options;
  options.backend = one_of_several ? "host" : backend;
  options.threads = one_of_several ? 1 : static_cast<int>(threads);
  options.timeout_seconds = static_cast<double>(patience);
  PetscCall(check(
      comm, ranks == 1 ? shardmat_context_create(&options, context) : shardmat_context_create_mpi(comm, &options, context)));
  PetscFunctionReturn(kDone);
}

PetscErrorCode require_version() {
  PetscInt major = 0, minor = 0, subminor = 0, release = 0;
  PetscFunctionBegin;
  PetscCall(PetscGetVersionNumber(&major, &minor, &subminor, &release));
  PetscCheck(
      major == PETSC_VERSION_MAJOR && minor == PETSC_VERSION_MINOR, PETSC_COMM_SELF, PETSC_ERR_LIB,
      "Shardmat's plug-in was built with PETSc %d.%d, but this program runs PETSc %d.%d; build Shardmat with the same",
      PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, static_cast<int>(major), static_cast<int>(minor));
  PetscFunctionReturn(kDone);
}

PetscErrorCode register_all() {
  PetscFunctionBegin;
  PetscCall(require_version());
  PetscCall(MatInitializePackage());
  PetscCall(KSPInitializePackage());
  PetscCall(PetscLogEventRegister("MatCopyShardmat", MAT_CLASSID, &events().copy));
  PetscCall(PetscLogEventRegister("MatMultShardmat", MAT_CLASSID, &events().multiply));
  PetscCall(PetscLogEventRegister("MatMMultShardmat", MAT_CLASSID, &events().multiply_dense));
  PetscCall(PetscLogEventRegister("KSPSolveShardmat", KSP_CLASSID, &events().solve));
  PetscCall(register_matrix_types());
  PetscCall(register_preconditioner_type());
  PetscCall(register_solver_type());
  PetscFunctionReturn(kDone);
}

}  // namespace

Events& events() {
  static Events registered{};
  return registered;
}

PetscErrorCode check(MPI_Comm comm, int status, const char* remedy) {
  PetscFunctionBegin;
  if (status != SHARDMAT_OK) {
    const PetscErrorCode code = status == SHARDMAT_USAGE       ? PETSC_ERR_SUP
                                : status == SHARDMAT_INPUT     ? PETSC_ERR_ARG_WRONG
                                : status == SHARDMAT_RESOURCES ? PETSC_ERR_MEM
                                                               : PETSC_ERR_LIB;
    SETERRQ(comm, code, "Shardmat: %s%s", shardmat_last_error(), remedy);
  }
  PetscFunctionReturn(kDone);
}

PetscErrorCode context_of(MPI_Comm comm, shardmat_context** context) {
  int key = MPI_KEYVAL_INVALID, found = 0;
  PetscFunctionBegin;
  PetscCall(find_key(&key));
  PetscCallMPI(MPI_Comm_get_attr(comm, key, static_cast<void*>(context), &found));
  if (found == 0) {
    PetscCall(make_context(comm, context));
    PetscCallMPI(MPI_Comm_set_attr(comm, key, *context));
  }
  PetscFunctionReturn(kDone);
}

PetscErrorCode note_device(Vec vector) {
  static bool said = false;
  PetscOffloadMask place = PETSC_OFFLOAD_CPU;
  PetscFunctionBegin;
  if (said) PetscFunctionReturn(kDone);
  PetscCall(VecGetOffloadMask(vector, &place));
  if (place == PETSC_OFFLOAD_CPU || place == PETSC_OFFLOAD_UNALLOCATED) PetscFunctionReturn(kDone);
  said = true;
  PetscCall(PetscFPrintf(PetscObjectComm(object(vector)), PETSC_STDERR,
                         "Shardmat: vectors of PETSc are on a device, and are copied through host memory\n"));
  PetscFunctionReturn(kDone);
}

}  // namespace shardmat::petsc

/// PETSc looks for this name after -dll_append …/libshardmat_petsc.so.
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_shardmat_petsc(void) {
  PetscFunctionBegin;
  PetscCall(shardmat::petsc::register_all());
  PetscFunctionReturn(shardmat::petsc::kDone);
}
