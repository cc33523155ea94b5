# Installs the program, the libraries, the public headers and the CMake package: find_package(Shardmat) gives
# shardmat::c, the C interface, which needs nothing but its library; in projects with Fortran shardmat::fortran, its Fortran
# modules; and in projects with C++ shardmat::shardmat, which links all layers. `cmake --build build --target uninstall` takes
# away again what was installed. deploy/cmake/packages.cmake makes packages of the components programs, development and python.
include(CMakePackageConfigHelpers)
set(data ${CMAKE_INSTALL_DATADIR}/shardmat)
set(docs ${CMAKE_INSTALL_DATADIR}/doc/shardmat)

set_target_properties(shardmat_all PROPERTIES EXPORT_NAME shardmat)

# The public headers, installed as <shardmat/…> with all that they include: of C++, and of batches in C.
set(SHARDMAT_PUBLIC_HEADERS runtime/api.h kernels/batched/shardmat_batched.h)
install(CODE "
  set(SHARDMAT_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")
  set(SHARDMAT_STAGED_DIR \"${PROJECT_BINARY_DIR}/installed_headers\")
  set(SHARDMAT_INCLUDE_DESTINATION \"${CMAKE_INSTALL_INCLUDEDIR}\")
  cmake_path(ABSOLUTE_PATH SHARDMAT_INCLUDE_DESTINATION BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\" NORMALIZE)
  set(SHARDMAT_HEADERS \"${SHARDMAT_PUBLIC_HEADERS}\")
  include(\"${PROJECT_SOURCE_DIR}/deploy/cmake/install_headers.cmake\")" COMPONENT development)

# Programs, and what they look for beside themselves.
install(TARGETS shardmat shardmat-bench shardmat-serve RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/plots/*.py)
set(modules ${PROJECT_SOURCE_DIR}/tools/plots/plots.py ${PROJECT_SOURCE_DIR}/tools/plots/page_style.py
    ${PROJECT_SOURCE_DIR}/tools/plots/interpreter.py)
list(REMOVE_ITEM scripts ${modules})
install(PROGRAMS ${scripts} DESTINATION ${data} COMPONENT programs)
install(FILES ${modules} DESTINATION ${data} COMPONENT programs)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/schemas DESTINATION ${data} COMPONENT programs
        FILES_MATCHING PATTERN "*.schema.json")
foreach(folder slurm systemd kubernetes monitoring service)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/deploy/${folder} DESTINATION ${data} USE_SOURCE_PERMISSIONS COMPONENT programs)
endforeach()
install(PROGRAMS ${PROJECT_SOURCE_DIR}/deploy/container/install.sh DESTINATION ${data}/container COMPONENT programs)

# The man page and the completion of shells, made of the options of the programs themselves.
set(pages "")
foreach(page man:shardmat.1 bash:shardmat zsh:_shardmat)
  string(REPLACE ":" ";" page ${page})
  list(GET page 0 form)
  list(GET page 1 name)
  set(file ${PROJECT_BINARY_DIR}/pages/${form}/${name})
  add_custom_command(OUTPUT ${file} COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/pages/${form}
                     COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:shardmat> help --as ${form} > ${file} DEPENDS shardmat shardmat-bench VERBATIM)
  list(APPEND pages ${file})
endforeach()
add_custom_target(shardmat_pages ALL DEPENDS ${pages})
set(pages ${PROJECT_BINARY_DIR}/pages)
install(FILES ${pages}/man/shardmat.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
install(FILES ${pages}/bash/shardmat DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT programs)
install(FILES ${pages}/zsh/_shardmat DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT programs)

# What there is to read, in the folders in which the pages name each other.
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${docs} COMPONENT programs)
foreach(folder kernels partition comm runtime tools deploy)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${folder}/*.md ${folder}/*.svg ${folder}/*.LICENSE)
  list(FILTER found EXCLUDE REGEX "page/icon\\.svg$")  # a part of the program
  foreach(file ${found})
    get_filename_component(place ${file} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/${file} DESTINATION ${docs}/${place} COMPONENT programs)
  endforeach()
endforeach()

# Libraries.
if(TARGET shardmat_petsc)
  install(TARGETS shardmat_petsc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT petsc)
endif()
install(TARGETS shardmat_kernels shardmat_partition shardmat_comm shardmat_runtime shardmat_all shardmat_hdf5
        EXPORT ShardmatTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
if(SHARDMAT_HAVE_CUDA)
  install(TARGETS shardmat_cudart EXPORT ShardmatTargets COMPONENT development)
  install(FILES ${SHARDMAT_CUDART} DESTINATION ${SHARDMAT_CUDART_COPY} COMPONENT development)
endif()
# Of its own, because projects in C and Fortran take it, which have none of what the static libraries need.
install(TARGETS shardmat_c EXPORT ShardmatCTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT programs NAMELINK_COMPONENT development)

# The C interface: headers and the Fortran modules where programs look, and its description for pkg-config.
install(FILES ${PROJECT_SOURCE_DIR}/runtime/c/shardmat.h ${PROJECT_SOURCE_DIR}/runtime/c/shardmat_mpi.h
              ${SHARDMAT_FORTRAN_MODULES}
              ${PROJECT_SOURCE_DIR}/kernels/batched/shardmat_batched.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
file(RELATIVE_PATH prefix_of_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(TRANSFORM SHARDMAT_FORTRAN_MODULES REPLACE ".*/" "" OUTPUT_VARIABLE fortran_of_package)
list(TRANSFORM SHARDMAT_FORTRAN_MODULES REPLACE ".*/" "\${includedir}/" OUTPUT_VARIABLE fortran_of_pc)
list(JOIN fortran_of_pc " " fortran_of_pc)
configure_file(${PROJECT_SOURCE_DIR}/runtime/c/shardmat.pc.in ${PROJECT_BINARY_DIR}/shardmat.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/shardmat.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Shardmat)
install(EXPORT ShardmatTargets NAMESPACE shardmat:: DESTINATION ${package_dir} COMPONENT development)
install(EXPORT ShardmatCTargets NAMESPACE shardmat:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/deploy/cmake/ShardmatConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/ShardmatConfig.cmake INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ShardmatConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ShardmatConfig.cmake ${PROJECT_BINARY_DIR}/ShardmatConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/deploy/cmake/find_headers.cmake ${PROJECT_SOURCE_DIR}/deploy/cmake/shardmat_fortran.cmake
        DESTINATION ${package_dir} COMPONENT development)

add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -D MANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
                                    -P ${PROJECT_SOURCE_DIR}/deploy/cmake/uninstall.cmake VERBATIM)
include(packages)
