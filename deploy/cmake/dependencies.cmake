# Every outside library, found here and nowhere else. Required: MPI, HDF5, OpenMP, fmt, zlib, nlohmann-json, CLI11, Boost's headers.
# Optional, with a line saying what is left out: CUDA, NCCL, fast_float, libzip, bzip2, xz, zstd, libpng, OpenSSL, METIS, PT-Scotch, MUMPS, Eigen, PETSc.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(ZLIB REQUIRED)
include(find_headers)
shardmat_find_headers(fmt 8 fmt::fmt fmt/format.h FMT_HEADER_ONLY=1)
shardmat_find_headers(nlohmann_json 3.10 nlohmann_json::nlohmann_json nlohmann/json.hpp)
shardmat_find_headers(CLI11 2.1 CLI11::CLI11 CLI/CLI.hpp)
shardmat_find_headers(Boost 1.74 Boost::headers boost/beast/http.hpp)  # Asio and Beast, for the service's front end

set(HDF5_PREFER_PARALLEL OFF)  # ranks read files by themselves; a parallel library does as well
enable_language(C)  # FindHDF5 asks the C wrapper compiler
find_package(HDF5 1.10.7 REQUIRED COMPONENTS C)
# FindHDF5 lists what the library itself was linked with. A shared one brings that along; from a static one's list the
# libraries of the C library go by name, because their paths (libdl.a, libm.so) are wrong for a linker elsewhere.
set(hdf5_libraries ${HDF5_C_LIBRARIES})
if(hdf5_libraries MATCHES "libhdf5[a-z_]*\\.so")
  list(FILTER hdf5_libraries INCLUDE REGEX "libhdf5")
endif()
list(TRANSFORM hdf5_libraries REPLACE "^/.*/lib(m|dl|rt|pthread|c)\\.(a|so)$" "\\1")
add_library(shardmat_hdf5 INTERFACE)
target_include_directories(shardmat_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(shardmat_hdf5 INTERFACE ${hdf5_libraries})
target_compile_definitions(shardmat_hdf5 INTERFACE ${HDF5_C_DEFINITIONS})
if(HDF5_IS_PARALLEL)
  target_link_libraries(shardmat_hdf5 INTERFACE MPI::MPI_CXX)  # its headers include MPI's
endif()
message(STATUS "HDF5 ${HDF5_VERSION}: ${hdf5_libraries}")

find_path(FAST_FLOAT_INCLUDE_DIR fast_float/fast_float.h)
if(FAST_FLOAT_INCLUDE_DIR)
  message(STATUS "fast_float: ${FAST_FLOAT_INCLUDE_DIR}")
else()
  message(STATUS "fast_float: not found; numbers are parsed by std::from_chars")
endif()

include(find_optional)
shardmat_find_optional(libzip LIBZIP zip.h zip "SciPy .npz files are left out" libzip-dev)
shardmat_find_optional(bzip2 BZIP2 bzlib.h bz2 "text compressed by bzip2 (.bz2) is left out" libbz2-dev)
shardmat_find_optional(xz XZ lzma.h lzma "text compressed by xz (.xz) is left out" liblzma-dev)
shardmat_find_optional(zstd ZSTD zstd.h zstd "text compressed by zstd (.zst) is left out" libzstd-dev)
find_package(PNG 1.6 QUIET)
if(PNG_FOUND)
  message(STATUS "libpng: ${PNG_LIBRARIES}")
else()
  message(STATUS "libpng: not found; pictures of matrices are left out (package libpng-dev)")
endif()

find_package(OpenSSL 3.0 QUIET COMPONENTS SSL Crypto)
if(OpenSSL_FOUND)
  message(STATUS "OpenSSL: ${OPENSSL_VERSION}")
else()
  message(STATUS "OpenSSL: not found; the service has no TLS (package libssl-dev)")
endif()

shardmat_find_optional(METIS METIS metis.h metis "partition --reorder graph is left out" libmetis-dev)
# Debian's default PT-Scotch counts in 32 bits and the graphs of large matrices have more edges, so that with 64 bits goes first.
shardmat_find_optional(PT-Scotch PTSCOTCH ptscotch.h ptscotch "partition --reorder graph on several ranks is left out"
                       libptscotch-dev scotch-int64 scotch)
if(PTSCOTCH_FOUND)
  find_library(SCOTCH_LIBRARY scotch PATH_SUFFIXES scotch-int64)
  find_library(PTSCOTCHERR_LIBRARY ptscotcherr PATH_SUFFIXES scotch-int64)
endif()

shardmat_find_optional(MUMPS MUMPS dmumps_c.h dmumps "solvers by factors on several ranks are left out" libmumps-dev)
shardmat_find_optional(Eigen EIGEN Eigen/SparseCholesky "" "solvers by factors in programs without MPI are left out"
                       libeigen3-dev eigen3)

include(petsc)

include(cuda_language)
