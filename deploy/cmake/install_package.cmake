# Installs the program, the libraries, the public headers and the CMake package: find_package(Shardmat) gives
# shardmat::c, the C interface, which needs nothing but its library; in projects with Fortran shardmat::fortran, its Fortran
# modules; and in projects with C++ shardmat::shardmat, which links all layers.
include(CMakePackageConfigHelpers)

set_target_properties(shardmat_all PROPERTIES EXPORT_NAME shardmat)

# The public headers, installed as <shardmat/…> with all that they include: of C++, and of batches in C.
set(SHARDMAT_PUBLIC_HEADERS runtime/api.h kernels/batched/shardmat_batched.h)
install(CODE "
  set(SHARDMAT_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")
  set(SHARDMAT_STAGED_DIR \"${PROJECT_BINARY_DIR}/installed_headers\")
  set(SHARDMAT_INCLUDE_DESTINATION \"${CMAKE_INSTALL_INCLUDEDIR}\")
  cmake_path(ABSOLUTE_PATH SHARDMAT_INCLUDE_DESTINATION BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\" NORMALIZE)
  set(SHARDMAT_HEADERS \"${SHARDMAT_PUBLIC_HEADERS}\")
  include(\"${PROJECT_SOURCE_DIR}/deploy/cmake/install_headers.cmake\")")

install(TARGETS shardmat shardmat-bench shardmat-serve RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/plots/compare_html.py
        ${PROJECT_SOURCE_DIR}/tools/plots/plot_answers.py ${PROJECT_SOURCE_DIR}/tools/plots/plot_batched.py
        ${PROJECT_SOURCE_DIR}/tools/plots/plot_convergence.py
        ${PROJECT_SOURCE_DIR}/tools/plots/plot_kernels.py
        ${PROJECT_SOURCE_DIR}/tools/plots/papers_html.py ${PROJECT_SOURCE_DIR}/tools/plots/plot_papers.py
        ${PROJECT_SOURCE_DIR}/tools/plots/plot_matrix.py ${PROJECT_SOURCE_DIR}/tools/plots/plot_peers.py
        ${PROJECT_SOURCE_DIR}/tools/plots/plot_reports.py
        ${PROJECT_SOURCE_DIR}/tools/plots/plot_scaling.py ${PROJECT_SOURCE_DIR}/tools/plots/plot_service.py
        ${PROJECT_SOURCE_DIR}/tools/plots/plot_solve.py ${PROJECT_SOURCE_DIR}/tools/plots/plot_spmm.py
        ${PROJECT_SOURCE_DIR}/tools/plots/plot_surface.py
        ${PROJECT_SOURCE_DIR}/tools/plots/scaling_html.py ${PROJECT_SOURCE_DIR}/tools/plots/convert_mesh.py
        DESTINATION ${CMAKE_INSTALL_DATADIR}/shardmat)
install(FILES ${PROJECT_SOURCE_DIR}/tools/plots/plots.py ${PROJECT_SOURCE_DIR}/tools/plots/page_style.py
        ${PROJECT_SOURCE_DIR}/tools/plots/interpreter.py
        DESTINATION ${CMAKE_INSTALL_DATADIR}/shardmat)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/shardmat
        FILES_MATCHING PATTERN "*.schema.json")
foreach(folder slurm systemd kubernetes)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/deploy/${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/shardmat USE_SOURCE_PERMISSIONS)
endforeach()
install(PROGRAMS ${PROJECT_SOURCE_DIR}/deploy/container/install.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/shardmat/container)
if(TARGET shardmat_petsc)
  install(TARGETS shardmat_petsc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS shardmat_kernels shardmat_partition shardmat_comm shardmat_runtime shardmat_all shardmat_hdf5
        EXPORT ShardmatTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Of its own, because projects in C and Fortran take it, which have none of what the static libraries need.
install(TARGETS shardmat_c EXPORT ShardmatCTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# The C interface: headers and the Fortran modules where programs look, and its description for pkg-config.
install(FILES ${PROJECT_SOURCE_DIR}/runtime/c/shardmat.h ${PROJECT_SOURCE_DIR}/runtime/c/shardmat_mpi.h
              ${SHARDMAT_FORTRAN_MODULES}
              ${PROJECT_SOURCE_DIR}/kernels/batched/shardmat_batched.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
file(RELATIVE_PATH prefix_of_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(TRANSFORM SHARDMAT_FORTRAN_MODULES REPLACE ".*/" "" OUTPUT_VARIABLE fortran_of_package)
list(TRANSFORM SHARDMAT_FORTRAN_MODULES REPLACE ".*/" "\${includedir}/" OUTPUT_VARIABLE fortran_of_pc)
list(JOIN fortran_of_pc " " fortran_of_pc)
configure_file(${PROJECT_SOURCE_DIR}/runtime/c/shardmat.pc.in ${PROJECT_BINARY_DIR}/shardmat.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/shardmat.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Shardmat)
install(EXPORT ShardmatTargets NAMESPACE shardmat:: DESTINATION ${package_dir})
install(EXPORT ShardmatCTargets NAMESPACE shardmat:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/deploy/cmake/ShardmatConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/ShardmatConfig.cmake INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ShardmatConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ShardmatConfig.cmake ${PROJECT_BINARY_DIR}/ShardmatConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/deploy/cmake/find_headers.cmake
              ${PROJECT_SOURCE_DIR}/deploy/cmake/shardmat_fortran.cmake
        DESTINATION ${package_dir})
