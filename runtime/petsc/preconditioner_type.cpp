#include "runtime/petsc/preconditioner_type.h"

#include <petsc/private/pcimpl.h>

#include <algorithm>
#include <cstring>

namespace shardmat::petsc {
namespace {

constexpr const char* kSetCoordinates = "PCSetCoordinates_C";

OwnPreconditioner& data(PC pc) { return *static_cast<OwnPreconditioner*>(pc->data); }

PetscErrorCode set_coordinates(PC pc, PetscInt dimensions, PetscInt nodes, PetscReal* coordinates) {
  static PetscInt64 last = 0;
  OwnPreconditioner& own = data(pc);
  PetscFunctionBegin;
  PetscCall(PetscFree(own.coordinates));
  PetscCall(PetscMalloc1(nodes * dimensions + 1, &own.coordinates));  // never NULL
  std::copy_n(coordinates, nodes * dimensions, own.coordinates);
  own.nodes = nodes, own.dimensions = dimensions;
  own.version = ++last;
  PetscFunctionReturn(kDone);
}

PetscErrorCode apply(PC pc, Vec, Vec) {
  PetscFunctionBegin;
  SETERRQ(PetscObjectComm(object(pc)), PETSC_ERR_SUP,
          "-pc_type shardmat is applied by -ksp_type shardmat alone: give that, or -pc_type gamg with -mat_type shardmat");
}

PetscErrorCode set_from_options(PC pc, PetscOptionItems* PetscOptionsObject) {
  OwnPreconditioner& own = data(pc);
  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "Shardmat's preconditioners");
  PetscCall(PetscOptionsString("-pc_shardmat_type", "multigrid, block_jacobi, jacobi, chebyshev or none", "",
                               own.type.data(), own.type.data(), own.type.size(), nullptr));
  PetscOptionsHeadEnd();
  PetscFunctionReturn(kDone);
}

PetscErrorCode view(PC pc, PetscViewer viewer) {
  const OwnPreconditioner& own = data(pc);
  PetscBool text = PETSC_FALSE;
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare(object(viewer), PETSCVIEWERASCII, &text));
  if (text)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  Shardmat's %s%s\n", own.type.data(),
                                     own.coordinates == nullptr ? "" : ", with the coordinates of the nodes"));
  PetscFunctionReturn(kDone);
}

PetscErrorCode destroy(PC pc) {
  PetscFunctionBegin;
  PetscCall(PetscObjectComposeFunction(object(pc), kSetCoordinates, nullptr));
  PetscCall(PetscFree(data(pc).coordinates));
  PetscCall(PetscFree(pc->data));
  PetscFunctionReturn(kDone);
}

PetscErrorCode create(PC pc) {
  OwnPreconditioner* own = nullptr;
  PetscFunctionBegin;
  PetscCall(PetscNew(&own));
  std::strcpy(own->type.data(), "multigrid");
  pc->data = own;
  pc->ops->apply = apply;
  pc->ops->setfromoptions = set_from_options;
  pc->ops->view = view;
  pc->ops->destroy = destroy;
  PetscCall(PetscObjectComposeFunction(object(pc), kSetCoordinates, set_coordinates));
  PetscFunctionReturn(kDone);
}

}  // namespace

const OwnPreconditioner& own_preconditioner(PC pc) { return data(pc); }

PetscErrorCode register_preconditioner_type() {
  PetscFunctionBegin;
  PetscCall(PCRegister(kPreconditionerType, create));
  PetscFunctionReturn(kDone);
}

}  // namespace shardmat::petsc
