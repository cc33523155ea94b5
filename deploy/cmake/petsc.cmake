# PETSc by pkg-config: the target PkgConfig::PETSC, and whether this build of PETSc can be used. There are builds for complex
# numbers, other precisions and 64-bit indices; the plug-in takes both sizes of indices, bench --peers takes 32 bits.
include(CheckCXXSourceCompiles)
find_package(PkgConfig QUIET)
set(SHARDMAT_HAVE_PETSC FALSE)
set(SHARDMAT_NO_PETSC "not found: package petsc-dev, and pkg-config")  # why there is none
if(PkgConfig_FOUND)
  pkg_check_modules(PETSC QUIET IMPORTED_TARGET petsc)
endif()
if(PETSC_FOUND)
  set(CMAKE_REQUIRED_LIBRARIES PkgConfig::PETSC MPI::MPI_CXX)
  check_cxx_source_compiles("#include <petscmat.h>
    PetscScalar* scalars = static_cast<double*>(nullptr);
    int main() { return scalars != nullptr; }" SHARDMAT_PETSC_REAL)
  check_cxx_source_compiles("#include <petscmat.h>
    PetscInt* numbers = static_cast<int*>(nullptr);
    int main() { return numbers != nullptr; }" SHARDMAT_PETSC_INT32)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(NOT SHARDMAT_PETSC_REAL)
    set(SHARDMAT_NO_PETSC "${PETSC_VERSION} is for complex numbers, another precision or another MPI; take a build for real double")
  elseif(PETSC_VERSION VERSION_LESS 3.18)
    set(SHARDMAT_NO_PETSC "${PETSC_VERSION} is too old; take 3.18 or later")
  else()
    set(SHARDMAT_HAVE_PETSC TRUE)
  endif()
endif()
if(SHARDMAT_HAVE_PETSC)
  message(STATUS "PETSc: ${PETSC_VERSION}")
else()
  message(STATUS "PETSc: ${SHARDMAT_NO_PETSC}; the plug-in is left out")
endif()
