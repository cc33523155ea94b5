// The preconditioner type -pc_type shardmat: names a preconditioner of Shardmat for -ksp_type shardmat, which applies it,
// and keeps the coordinates of PCSetCoordinates().
#pragma once

#include <array>

#include "runtime/petsc/plugin.h"

namespace shardmat::petsc {

inline constexpr const char* kPreconditionerType = "shardmat";

struct OwnPreconditioner {
  std::array<char, 64> type;  ///< -pc_shardmat_type: "multigrid" …
  PetscReal* coordinates;     ///< of this rank's nodes, `dimensions` a node; NULL: not known
  PetscInt nodes, dimensions;
  PetscInt64 version;  ///< another one after each PCSetCoordinates() in this process
};

/// REQUIRES: the type of `pc` is kPreconditionerType.
const OwnPreconditioner& own_preconditioner(PC pc);

PetscErrorCode register_preconditioner_type();

}  // namespace shardmat::petsc
