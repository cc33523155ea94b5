# cmake -C deploy/cmake/debug.cmake -B build-debug: host code with AddressSanitizer and UndefinedBehaviorSanitizer.
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(SHARDMAT_CUDA OFF CACHE STRING "")
set(SHARDMAT_SANITIZE "address,undefined" CACHE STRING "")
