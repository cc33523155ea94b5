# cmake -C deploy/cmake/host-only.cmake -B build: no CUDA even where it is installed.
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
set(SHARDMAT_CUDA OFF CACHE STRING "")
