# Compiles through ccache where it is installed and works, unless CMAKE_CXX_COMPILER_LAUNCHER or CMAKE_CUDA_COMPILER_LAUNCHER is
# set, also if it is set to nothing. Included when all languages are enabled.
# SHARDMAT_PRECOMPILE: ccache then keeps objects that a precompiled header is part of, as the sources do not use what its manual
# warns of. deploy/build.sh sets it. Without it, as CMake alone builds, missing includes are found.
option(SHARDMAT_PRECOMPILE "Precompile headers also where ccache keeps objects" OFF)
find_program(SHARDMAT_CCACHE ccache)
mark_as_advanced(SHARDMAT_CCACHE)
if(NOT SHARDMAT_CCACHE)
  return()
endif()
# ccache stops the build where it cannot write its cache.
set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/ccache_probe)
file(WRITE ${probe}.cpp "int probe() { return 0; }\n")
execute_process(COMMAND ${SHARDMAT_CCACHE} ${CMAKE_CXX_COMPILER} -c ${probe}.cpp -o ${probe}.o
                RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
if(failed)
  message(STATUS "ccache: ${SHARDMAT_CCACHE} does not work here; compiled without it")
  return()
endif()
set(launcher ${SHARDMAT_CCACHE})
if(SHARDMAT_PRECOMPILE)
  set(launcher env CCACHE_SLOPPINESS=pch_defines,time_macros ${SHARDMAT_CCACHE})
endif()
foreach(language CXX CUDA)
  if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
  endif()
endforeach()
message(STATUS "ccache: ${SHARDMAT_CCACHE}")
