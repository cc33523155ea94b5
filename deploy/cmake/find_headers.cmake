# shardmat_find_headers(package VERSION target header [definition…]): the package's own CMake files, else its headers alone,
# as they are carried in a prefix without them.
macro(shardmat_find_headers package version target header)
  find_package(${package} ${version} QUIET CONFIG)
  if(NOT TARGET ${target})
    find_path(${package}_HEADERS ${header})
    mark_as_advanced(${package}_HEADERS)
    if(NOT ${package}_HEADERS)
      message(FATAL_ERROR "${package} ${version} was not found, nor <${header}>. Install it or give -DCMAKE_PREFIX_PATH=DIR "
                          "with it under DIR/include.")
    endif()
    add_library(${target} INTERFACE IMPORTED)
    target_include_directories(${target} INTERFACE ${${package}_HEADERS})
    target_compile_definitions(${target} INTERFACE ${ARGN})
  endif()
endmacro()
