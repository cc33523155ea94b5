# shardmat_find_optional(name PREFIX header library "what is left out" package [subfolder…]): a library that CMake has no
# module for, also in subfolders of the usual places; a library "" has headers alone. Sets PREFIX_FOUND, PREFIX_INCLUDE_DIR and PREFIX_LIBRARY and says so.
# As for CMake's own modules, -DCMAKE_DISABLE_FIND_PACKAGE_PREFIX=ON leaves it out.
function(shardmat_find_optional name prefix header library left_out package)
  if(CMAKE_DISABLE_FIND_PACKAGE_${prefix})
    message(STATUS "${name}: switched off; ${left_out}")
    set(${prefix}_FOUND FALSE PARENT_SCOPE)
    return()
  endif()
  find_path(${prefix}_INCLUDE_DIR ${header} PATH_SUFFIXES ${ARGN})
  if(library)
    find_library(${prefix}_LIBRARY ${library} PATH_SUFFIXES ${ARGN})
  endif()
  if(${prefix}_INCLUDE_DIR AND (${prefix}_LIBRARY OR NOT library))
    if(library)
      message(STATUS "${name}: ${${prefix}_LIBRARY}")
    else()
      message(STATUS "${name}: ${${prefix}_INCLUDE_DIR}")
    endif()
    set(${prefix}_FOUND TRUE PARENT_SCOPE)
  else()
    message(STATUS "${name}: not found; ${left_out} (package ${package})")
    set(${prefix}_FOUND FALSE PARENT_SCOPE)
  endif()
endfunction()

# shardmat_use_optional(target PREFIX SOURCES file… [LIBRARIES more…]): these sources of the target then see
# SHARDMAT_HAVE_PREFIX and its headers.
function(shardmat_use_optional target prefix)
  cmake_parse_arguments(USE "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(${prefix}_FOUND)
    set_property(SOURCE ${USE_SOURCES} TARGET_DIRECTORY ${target}
                 APPEND PROPERTY COMPILE_DEFINITIONS SHARDMAT_HAVE_${prefix})
    target_include_directories(${target} SYSTEM PRIVATE ${${prefix}_INCLUDE_DIR})
    target_link_libraries(${target} PRIVATE ${${prefix}_LIBRARY} ${USE_LIBRARIES})
  endif()
endfunction()
