# PETSc by pkg-config: the target PkgConfig::PETSC, and whether this build of PETSc can be used. There are builds for complex
# numbers, other precisions and 64-bit indices; the plug-in takes both sizes of indices, bench --peers takes 32 bits.
include(CheckCXXSourceCompiles)
find_package(PkgConfig QUIET)
set(SHARDMAT_HAVE_PETSC FALSE)
set(SHARDMAT_PETSC_REMEDY "package petsc-dev, and pkg-config")
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
    set(SHARDMAT_PETSC_REMEDY
        "PETSc ${PETSC_VERSION} was built for complex numbers or another precision, or its test program does not link; take a "
        "build for real double with the same MPI")
  elseif(PETSC_VERSION VERSION_LESS 3.18)
    set(SHARDMAT_PETSC_REMEDY "PETSc ${PETSC_VERSION} is too old; take 3.18 or later")
  else()
    set(SHARDMAT_HAVE_PETSC TRUE)
  endif()
endif()
if(SHARDMAT_HAVE_PETSC)
  message(STATUS "PETSc: ${PETSC_VERSION}")
else()
  message(STATUS "PETSc: not found, or not usable; its plug-in is left out (${SHARDMAT_PETSC_REMEDY})")
endif()
