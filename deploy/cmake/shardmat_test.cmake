# shardmat_fuzz_test(NAME name SOURCES … LIBRARIES …)
# A GoogleTest program of mutations (tests/support/mutations.h), label fast, and long with SHARDMAT_FUZZ. The target
# fuzz_tests builds all of them.
#
# shardmat_test(NAME name [GPU] SOURCES … LIBRARIES … [RANKS 1 2 3])
# A GoogleTest program, label fast; with RANKS it takes the main function of test_ranks, which starts MPI, and runs once per
# count, label mpi. With GPU it has suites named Gpu… and MultiGpu…, which need devices: they run under the labels gpu and
# multigpu (those of tests/multigpu_runs.txt) as far as this machine has GPUs, and are filtered out of the other runs.
cmake_host_system_information(RESULT SHARDMAT_CORES QUERY NUMBER_OF_LOGICAL_CORES)
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/deploy/gpu-count.sh OUTPUT_VARIABLE SHARDMAT_GPUS OUTPUT_STRIP_TRAILING_WHITESPACE)

# shardmat_processors(NAME RANKS): sets NAME to the PROCESSORS of a test with so many ranks. Ranks beyond the cores share these.
function(shardmat_processors name ranks)
  if(ranks GREATER SHARDMAT_CORES)
    set(ranks ${SHARDMAT_CORES})
  endif()
  set(${name} ${ranks} PARENT_SCOPE)
endfunction()

function(shardmat_test)
  cmake_parse_arguments(T "GPU" "NAME" "SOURCES;LIBRARIES;RANKS" ${ARGN})
  add_executable(${T_NAME} ${T_SOURCES})
  target_link_libraries(${T_NAME} PRIVATE ${T_LIBRARIES} fmt::fmt GTest::gtest shardmat_options)
  target_compile_definitions(${T_NAME} PRIVATE SHARDMAT_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  set_target_properties(${T_NAME} PROPERTIES SHARDMAT_OPTIMIZATION 1)  # tests compile in two thirds of the time of level 2
  # The first program, kernels_test, compiles the headers for all.
  if(TARGET kernels_test AND NOT T_NAME STREQUAL kernels_test)
    shardmat_precompile(${T_NAME} REUSE_FROM kernels_test)
  else()
    shardmat_precompile(${T_NAME} ${PROJECT_SOURCE_DIR}/tests/support/precompiled.h)
  endif()
  set(mpirun ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG})

  if(T_RANKS)
    target_link_libraries(${T_NAME} PRIVATE test_ranks)
    foreach(ranks ${T_RANKS})
      shardmat_processors(processors ${ranks})
      math(EXPR cost "1000 + ${ranks}")  # CTest starts the highest costs first; later, two processors are seldom free at once
      add_test(NAME ${T_NAME}_${ranks} COMMAND ${mpirun} ${ranks} $<TARGET_FILE:${T_NAME}> --gtest_filter=-*Gpu*)
      set_tests_properties(${T_NAME}_${ranks} PROPERTIES LABELS mpi PROCESSORS ${processors} COST ${cost} TIMEOUT 3000)
    endforeach()
  else()
    target_link_libraries(${T_NAME} PRIVATE GTest::gtest_main)
    add_test(NAME ${T_NAME} COMMAND ${T_NAME} --gtest_filter=-*Gpu*)
    set_tests_properties(${T_NAME} PROPERTIES LABELS fast TIMEOUT 1500 ENVIRONMENT ASAN_OPTIONS=detect_leaks=1)
  endif()

  if(T_GPU AND SHARDMAT_HAVE_CUDA AND SHARDMAT_GPUS GREATER 0)
    add_test(NAME ${T_NAME}_gpu COMMAND ${T_NAME} --gtest_filter=Gpu*)
    set_tests_properties(${T_NAME}_gpu PROPERTIES LABELS gpu TIMEOUT 1500 RESOURCE_LOCK gpu)
  endif()
  if(T_GPU AND T_RANKS AND SHARDMAT_HAVE_NCCL)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/multigpu_runs.txt)
    file(STRINGS ${PROJECT_SOURCE_DIR}/tests/multigpu_runs.txt runs REGEX "^[^#]")
    foreach(run ${runs})
      separate_arguments(run UNIX_COMMAND "${run}")
      list(POP_FRONT run name ranks gpus filter)
      if(SHARDMAT_GPUS GREATER_EQUAL gpus AND (TARGET nvlink_between_hosts OR NOT run MATCHES nvlink_between_hosts))
        add_test(NAME ${T_NAME}_${name} COMMAND ${mpirun} ${ranks} $<TARGET_FILE:${T_NAME}> --gtest_filter=${filter})
        set_tests_properties(${T_NAME}_${name} PROPERTIES LABELS multigpu TIMEOUT 1500 RESOURCE_LOCK gpu ENVIRONMENT "${run}")
        if(TARGET nvlink_between_hosts)
          set_tests_properties(${T_NAME}_${name} PROPERTIES ENVIRONMENT_MODIFICATION
                               LD_LIBRARY_PATH=path_list_prepend:$<TARGET_FILE_DIR:nvlink_between_hosts>)
        endif()
      endif()
    endforeach()
  endif()
endfunction()

# shardmat_test_objects(name SOURCES … LIBRARIES …): compiled once for several programs.
function(shardmat_test_objects name)
  cmake_parse_arguments(T "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(${name} OBJECT ${T_SOURCES})
  target_link_libraries(${name} PRIVATE ${T_LIBRARIES} fmt::fmt GTest::gtest shardmat_options)
  set_target_properties(${name} PROPERTIES SHARDMAT_OPTIMIZATION 1)
endfunction()

function(shardmat_fuzz_test)
  cmake_parse_arguments(T "" "NAME" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT TARGET test_mutations)
    shardmat_test_objects(test_mutations SOURCES ${PROJECT_SOURCE_DIR}/tests/support/mutations.cpp
                          LIBRARIES shardmat_partition ZLIB::ZLIB)
  endif()
  shardmat_test(NAME ${T_NAME} SOURCES ${T_SOURCES} $<TARGET_OBJECTS:test_mutations> LIBRARIES ${T_LIBRARIES} ZLIB::ZLIB)
  if(NOT TARGET fuzz_tests)
    add_custom_target(fuzz_tests)
  endif()
  add_dependencies(fuzz_tests ${T_NAME})
  if(SHARDMAT_FUZZ)
    set_tests_properties(${T_NAME} PROPERTIES LABELS long TIMEOUT 14400)
  endif()
endfunction()
