# CPU seconds of each unit, in unit_times.txt of the build folder; without ccache, so that precompiled headers are there:
#   cmake -S . -B build-times -G Ninja -D CMAKE_PROJECT_INCLUDE=$PWD/deploy/cmake/unit_times.cmake && ninja -C build-times shardmat
#   awk '{ all += $1 } END { print all / 60, "minutes" }' build-times/unit_times.txt; sort -rn build-times/unit_times.txt | head
set(CMAKE_CXX_COMPILER_LAUNCHER "")
set(CMAKE_CUDA_COMPILER_LAUNCHER "")
set_property(GLOBAL PROPERTY RULE_LAUNCH_COMPILE "/usr/bin/time -a -o ${CMAKE_BINARY_DIR}/unit_times.txt -f \"%U <OBJECT>\"")
