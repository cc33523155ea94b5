# shardmat_compile_together(target name file.cu…): small CUDA files as one translation unit, because parsing the headers takes five
# times as long as compiling the kernels of such a file, and nvcc parses them once for the host and once an architecture. The
# files stay whole: each includes what it uses, and errors name it. Names in their unnamed namespaces must differ. The unit names
# them from the top of the sources, so that it is the same in every clone and ccache finds its object.
function(shardmat_compile_together target name)
  set(text "")
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  foreach(file ${ARGN})
    string(APPEND text "#include \"${folder}/${file}\"\n")
  endforeach()
  set(together ${CMAKE_CURRENT_BINARY_DIR}/together/${name}.cu)
  file(CONFIGURE OUTPUT ${together} CONTENT "${text}" @ONLY)
  target_sources(${target} PRIVATE ${together})
endfunction()
