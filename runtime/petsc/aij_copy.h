// Shardmat's copy of an AIJ matrix. PETSc's matrix stays as it is, and owns the copy. **Read this first.**
#pragma once

#include <cstdint>

#include "runtime/petsc/plugin.h"

namespace shardmat::petsc {

/// What was copied, to notice changes.
struct Version {
  PetscObjectState matrix = -1, diagonal = -1, rest = -1;  ///< of the values: of the whole, of its blocks on this rank
  PetscObjectState pattern = -1;
  bool operator==(const Version&) const = default;
};

/// How a copy is stored.
struct Choices {
  char kernel[64] = "", storage[16] = "general";
  PetscReal products = 200;
};

struct AijCopy {
  Choices choices;
  Mat of = nullptr;       ///< owns the copy
  PetscInt64 number = 0;  ///< another one for each copy in this process, so that solvers know theirs again
  shardmat_matrix* matrix = nullptr;
  shardmat_product* product = nullptr;  ///< of one column, and
  shardmat_product* wide = nullptr;     ///< of `wide_columns`; both NULL until asked for
  PetscInt wide_columns = 0;
  bool has_rows = false;      ///< keeps rows in host memory, which preconditioners need
  bool takes_values = false;  ///< not in symmetric storage
  Version version;
  std::uint64_t pattern = 0;                               ///< a hash of this rank's pattern
  PetscInt64 nonzeros = 0;                                 ///< of this rank
  PetscInt64 copies = 0, new_values = 0;                   ///< how often the whole, and values alone, were copied
  PetscInt64 products = 0, wide_products = 0, by_aij = 0;  ///< by_aij: products that PETSc made
};

/// Reads the options of a matrix on which the program calls MatSetFromOptions(), so that they are not those of all matrices
/// that a preconditioner makes.
PetscErrorCode read_choices(PetscOptionItems* options, Mat a);

/// True for the types that begin with seqaij or mpiaij.
PetscErrorCode is_aij(Mat a, PetscBool* yes);

/// False for what Shardmat cannot multiply in PETSc's distribution: a matrix that is empty, or whose columns are distributed
/// otherwise than its rows (square) or than PETSC_DECIDE does (not square). The same on all ranks.
PetscErrorCode takes_distribution(Mat a, bool* yes);

/// The copy of an assembled AIJ matrix, up to date; made by the first call. Values are updated in place where the pattern is
/// the same on all ranks, else the copy is made anew. `rows`: for preconditioners. REQUIRES takes_distribution().
PetscErrorCode updated_copy(Mat a, bool rows, AijCopy** copy);
/// The record of the copy, perhaps without a copy yet; made by the first call.
PetscErrorCode record_of(Mat a, AijCopy** copy);
/// NULL if there is none.
PetscErrorCode find_record(Mat a, AijCopy** copy);
/// Frees the copy and its record.
PetscErrorCode forget_copy(Mat a);

/// y = A·x + beta·y. `beta`: 0 or 1.
PetscErrorCode multiply(AijCopy& copy, Vec x, double beta, Vec y);
/// C = A·B for dense matrices.
PetscErrorCode multiply_dense(AijCopy& copy, Mat b, Mat c);

}  // namespace shardmat::petsc
