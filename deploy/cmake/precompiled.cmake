# shardmat_precompile(target [header…]): precompiled.h and these headers are compiled once for all C++ files of the target. Left
# out where a launcher such as ccache keeps objects, unless SHARDMAT_PRECOMPILE is set (ccache.cmake): builds without it find
# missing includes. CMAKE_DISABLE_PRECOMPILE_HEADERS=ON leaves it out, too.
function(shardmat_precompile target)
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER OR SHARDMAT_PRECOMPILE)
    if("${ARGV1}" STREQUAL REUSE_FROM)
      target_precompile_headers(${target} REUSE_FROM ${ARGV2})
    else()
      foreach(header ${PROJECT_SOURCE_DIR}/deploy/cmake/precompiled.h ${ARGN})
        target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
      endforeach()
    endif()
    # GCC then warns falsely of code inlined from the standard library: it shows, but does not end the build.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-error=array-bounds
      -Wno-error=stringop-overflow -Wno-error=stringop-overread -Wno-error=restrict -Wno-error=maybe-uninitialized>)
  endif()
endfunction()
