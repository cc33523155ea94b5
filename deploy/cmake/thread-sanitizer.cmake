# cmake -C deploy/cmake/thread-sanitizer.cmake -B build-threads: host code with ThreadSanitizer, for two_contexts_test,
# serve_test and shardmat-serve.
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(SHARDMAT_CUDA OFF CACHE STRING "")
set(SHARDMAT_TESTS ON CACHE BOOL "")
set(SHARDMAT_SANITIZE "thread" CACHE STRING "")
set(CMAKE_CXX_FLAGS "-Wno-tsan" CACHE STRING "")  # GCC does not follow the fences of Asio, which has locks there, too
