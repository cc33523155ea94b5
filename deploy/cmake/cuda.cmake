# cmake -C deploy/cmake/cuda.cmake -B build: CUDA required.
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
set(SHARDMAT_CUDA ON CACHE STRING "")
