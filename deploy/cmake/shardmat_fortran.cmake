# shardmat_fortran(SOURCE...): the static library shardmat::fortran of the Fortran modules, which each project compiles once with
# its own compiler.
function(shardmat_fortran)
  add_library(shardmat_fortran STATIC EXCLUDE_FROM_ALL ${ARGN})
  add_library(shardmat::fortran ALIAS shardmat_fortran)
  set(modules ${CMAKE_CURRENT_BINARY_DIR}/shardmat_fortran)
  set_target_properties(shardmat_fortran PROPERTIES Fortran_MODULE_DIRECTORY ${modules} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(shardmat_fortran PUBLIC ${modules})
  target_link_libraries(shardmat_fortran PUBLIC shardmat::c)
endfunction()
