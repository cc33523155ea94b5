# shardmat_test(NAME name [GPU] SOURCES … LIBRARIES … [RANKS 1 2 3])
# A GoogleTest program, label fast; with RANKS it has its own main with MPI and runs once per count, label mpi. With GPU it
# has suites named Gpu… and MultiGpu…, which need devices: they run under the labels gpu and multigpu (on 2, 3 and 4 ranks)
# as far as this machine has GPUs, and are filtered out of the other runs. Two GPUs also serve four ranks, as two hosts do.
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/deploy/gpu-count.sh OUTPUT_VARIABLE SHARDMAT_GPUS OUTPUT_STRIP_TRAILING_WHITESPACE)

function(shardmat_test)
  cmake_parse_arguments(T "GPU" "NAME" "SOURCES;LIBRARIES;RANKS" ${ARGN})
  add_executable(${T_NAME} ${T_SOURCES})
  target_link_libraries(${T_NAME} PRIVATE ${T_LIBRARIES} fmt::fmt GTest::gtest shardmat_options)
  target_compile_definitions(${T_NAME} PRIVATE SHARDMAT_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  set(mpirun ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG})

  if(T_RANKS)
    foreach(ranks ${T_RANKS})
      add_test(NAME ${T_NAME}_${ranks} COMMAND ${mpirun} ${ranks} $<TARGET_FILE:${T_NAME}> --gtest_filter=-*Gpu*)
      set_tests_properties(${T_NAME}_${ranks} PROPERTIES LABELS mpi PROCESSORS ${ranks} TIMEOUT 300)
    endforeach()
  else()
    target_link_libraries(${T_NAME} PRIVATE GTest::gtest_main)
    add_test(NAME ${T_NAME} COMMAND ${T_NAME} --gtest_filter=-*Gpu*)
    set_tests_properties(${T_NAME} PROPERTIES LABELS fast TIMEOUT 300 ENVIRONMENT ASAN_OPTIONS=detect_leaks=1)
  endif()

  if(T_GPU AND SHARDMAT_HAVE_CUDA AND SHARDMAT_GPUS GREATER 0)
    add_test(NAME ${T_NAME}_gpu COMMAND ${T_NAME} --gtest_filter=Gpu*)
    set_tests_properties(${T_NAME}_gpu PROPERTIES LABELS gpu TIMEOUT 600 RESOURCE_LOCK gpu)
  endif()
  if(T_GPU AND T_RANKS AND SHARDMAT_HAVE_NCCL)
    foreach(ranks 2 3 4)
      if(NOT SHARDMAT_GPUS LESS ranks)
        shardmat_multigpu_test(${T_NAME} multigpu_${ranks} ${ranks} MultiGpu*)
        # As between hosts without RDMA: everything through sockets.
        shardmat_multigpu_test(${T_NAME} sockets_${ranks} ${ranks} MultiGpu*
                               NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_IB_DISABLE=1)
      endif()
    endforeach()
    if(SHARDMAT_GPUS GREATER 1)
      foreach(ranks 3 4)  # two processes a GPU take turns, so that a thousand cycles would take too long
        shardmat_multigpu_test(${T_NAME} multigpu_${ranks}_on_2_hosts ${ranks} MultiGpu*-*Thousand*
                               SHARDMAT_TEST_HOSTS_OF=2 NCCL_IB_DISABLE=1)
        if(TARGET nvlink_between_hosts)  # all reach each other's memory, where the GPUs have an NVLink switch
          shardmat_multigpu_test(${T_NAME} multigpu_${ranks}_on_2_hosts_by_nvlink ${ranks} MultiGpu*-*Thousand*
                                 SHARDMAT_TEST_HOSTS_OF=2 LD_PRELOAD=$<TARGET_FILE:nvlink_between_hosts>)
        endif()
      endforeach()
      # As where GPUs may not map each other's memory.
      shardmat_multigpu_test(${T_NAME} multigpu_without_windows 2 MultiGpu* NCCL_WIN_ENABLE=0)
    endif()
  endif()
endfunction()

# shardmat_multigpu_test(program name ranks filter [VARIABLE=VALUE …])
function(shardmat_multigpu_test program name ranks filter)
  add_test(NAME ${program}_${name}
           COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${program}> --gtest_filter=${filter})
  set_tests_properties(${program}_${name} PROPERTIES LABELS multigpu TIMEOUT 600 RESOURCE_LOCK gpu ENVIRONMENT "${ARGN}")
endfunction()
