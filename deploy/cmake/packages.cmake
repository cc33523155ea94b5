# `cpack -G DEB` in the build folder makes shardmat, libshardmat-dev and python3-shardmat, and libshardmat-petsc where PETSc was
# found; `cpack -G TGZ` one archive that runs wherever it is unpacked. debian_layout.cmake puts files where Debian wants them.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(CPACK_PACKAGE_NAME shardmat)
set(CPACK_PACKAGE_VENDOR "Shardmat")
set(SHARDMAT_MAINTAINER "Shardmat's authors <shardmat@noreply.invalid>" CACHE STRING "Who answers for the packages: NAME <ADDRESS>")
set(CPACK_PACKAGE_CONTACT "${SHARDMAT_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "sparse matrix products and solvers on GPUs and hosts")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME shardmat-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_COMPONENTS_ALL programs development)
foreach(component python petsc)
  if(TARGET shardmat_${component})
    list(APPEND CPACK_COMPONENTS_ALL ${component})
  endif()
endforeach()

# The package of Debian that has this file; nothing elsewhere.
function(shardmat_package_of list)
  foreach(file ${ARGN})
    execute_process(COMMAND dpkg-query --search ${file} OUTPUT_VARIABLE found RESULT_VARIABLE failed ERROR_QUIET)
    if(NOT failed)
      string(REGEX REPLACE "[:,].*" "" found "${found}")
      list(APPEND ${list} ${found})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES ${list})
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The library that others link. CPack's own shlibs also want such of modules.
file(WRITE ${PROJECT_BINARY_DIR}/debian/shlibs "libshardmat 0 shardmat (= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/shlibs ${PROJECT_BINARY_DIR}/debian/triggers)
# Compiled modules of Python come and go with the packages that have the modules.
foreach(component programs python)
  set(what python3-shardmat)
  if(component STREQUAL programs)
    set(what "shardmat /usr/share/shardmat")
  endif()
  foreach(script postinst:py3compile prerm:py3clean)
    string(REPLACE ":" ";" script ${script})
    list(GET script 0 name)
    list(GET script 1 program)
    set(file ${PROJECT_BINARY_DIR}/debian/${component}/${name})
    file(WRITE ${file} "#!/bin/sh\nset -e\nif command -v ${program} > /dev/null; then ${program} -p ${what}; fi\n")
    string(TOUPPER ${component} upper)
    list(APPEND CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${file})
  endforeach()
endforeach()
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/runtime/c)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/deploy/cmake/debian_layout.cmake)
set(same_version "shardmat (= ${PROJECT_VERSION})")
set(CPACK_SHARDMAT_HAVE_CUDA ${SHARDMAT_HAVE_CUDA})
set(CPACK_SHARDMAT_PYTHON_DIR "${SHARDMAT_PYTHON_DIR}")

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME shardmat)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION math)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS "python3-matplotlib, python3-shardmat")
if(SHARDMAT_HAVE_CUDA)  # names of NVIDIA's packages
  string(APPEND CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS ", libcusparse-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR}")
endif()
if(SHARDMAT_HAVE_NCCL)
  string(APPEND CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS ", libnccl2")
endif()
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION
"Shardmat multiplies and solves with sparse matrices that are too big or
too slow for one GPU: each rank of MPI has a part of the matrix, on its
GPU or on host threads. CUDA's libraries are loaded where a GPU is used.
These are the programs and the shared library.")
set(mpirun python3)  # for plots
file(REAL_PATH ${MPIEXEC_EXECUTABLE} mpirun_file)
shardmat_package_of(mpirun ${mpirun_file})
list(JOIN mpirun ", " CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS)  # more comes from the libraries that it is linked with

# Whoever links the static libraries links these.
set(needed ${same_version})
shardmat_package_of(needed ${MPI_CXX_HEADER_DIR}/mpi.h ${hdf5_libraries} ${LIBZIP_LIBRARY} ${BZIP2_LIBRARY} ${XZ_LIBRARY} ${ZSTD_LIBRARY}
                    ${ZLIB_LIBRARIES} ${METIS_LIBRARY} ${PTSCOTCH_LIBRARY} ${SCOTCH_LIBRARY} ${MUMPS_LIBRARY})
foreach(header fmt/format.h nlohmann/json.hpp)
  find_file(package_header ${header} NO_CACHE)
  shardmat_package_of(needed ${package_header})
  unset(package_header)
endforeach()
list(JOIN needed ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libshardmat-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "cmake, pkg-config")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
"Headers and libraries of Shardmat for C, C++ and Fortran, and where CMake
and pkg-config find them.")

string(REGEX MATCH "[0-9]+$" SHARDMAT_PYTHON_NEXT "${SHARDMAT_PYTHON_VERSION}")
math(EXPR SHARDMAT_PYTHON_NEXT "0${SHARDMAT_PYTHON_NEXT} + 1")
set(SHARDMAT_PYTHON_NEXT 3.${SHARDMAT_PYTHON_NEXT})
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-shardmat)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "${same_version}, python3 (>= ${SHARDMAT_PYTHON_VERSION}), python3 (<< ${SHARDMAT_PYTHON_NEXT}~), python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS python3-scipy)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS python3-mpi4py)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION
"The Python package shardmat, for matrices of SciPy and arrays of NumPy,
CuPy and PyTorch.")

set(CPACK_DEBIAN_PETSC_PACKAGE_NAME libshardmat-petsc)
set(CPACK_DEBIAN_PETSC_PACKAGE_SECTION math)
set(CPACK_DEBIAN_PETSC_PACKAGE_DEPENDS "${same_version}")
set(CPACK_COMPONENT_PETSC_DESCRIPTION "What an unchanged PETSc program loads to multiply and solve by Shardmat.")
include(CPack)
