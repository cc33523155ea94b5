// The list of all steps. Both backends make an instance of each, for each type where a step has vectors.
#pragma once

#include "kernels/krylov/bicgstab_steps.h"
#include "kernels/krylov/cg_steps.h"
#include "kernels/krylov/chebyshev_steps.h"
#include "kernels/krylov/curvature_steps.h"
#include "kernels/krylov/gmres_steps.h"
#include "kernels/krylov/minres_steps.h"
#include "kernels/krylov/multigrid_steps.h"
#include "kernels/krylov/preconditioner_steps.h"
#include "kernels/krylov/refinement_steps.h"
#include "kernels/krylov/residual.h"
#include "kernels/krylov/single_reduction_steps.h"

#define SHARDMAT_STEPS_OF_TYPE(MAKE, T)    \
  SHARDMAT_RESIDUAL_STEPS(MAKE, T)         \
  SHARDMAT_PRECONDITIONER_STEPS(MAKE, T)   \
  SHARDMAT_CURVATURE_STEPS(MAKE, T)        \
  SHARDMAT_CG_STEPS(MAKE, T)               \
  SHARDMAT_SINGLE_REDUCTION_STEPS(MAKE, T) \
  SHARDMAT_CHEBYSHEV_STEPS(MAKE, T)        \
  SHARDMAT_GMRES_STEPS(MAKE, T)            \
  SHARDMAT_BICGSTAB_STEPS(MAKE, T)         \
  SHARDMAT_MULTIGRID_STEPS(MAKE, T)        \
  SHARDMAT_REFINEMENT_STEPS(MAKE, T)       \
  SHARDMAT_MINRES_STEPS(MAKE, T)

#define SHARDMAT_SCALAR_STEPS(MAKE)      \
  SHARDMAT_RESIDUAL_SCALAR_STEPS(MAKE)   \
  SHARDMAT_CURVATURE_SCALAR_STEPS(MAKE)  \
  SHARDMAT_CG_SCALAR_STEPS(MAKE)         \
  SHARDMAT_CHEBYSHEV_SCALAR_STEPS(MAKE)  \
  SHARDMAT_GMRES_SCALAR_STEPS(MAKE)      \
  SHARDMAT_MINRES_SCALAR_STEPS(MAKE)     \
  SHARDMAT_REFINEMENT_SCALAR_STEPS(MAKE) \
  SHARDMAT_SINGLE_REDUCTION_SCALAR_STEPS(MAKE)
