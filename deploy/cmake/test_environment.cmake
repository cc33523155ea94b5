# Read by CTest before it runs anything: what deploy/environment.sh sets, so that plain `ctest` works as root, in containers and
# with more ranks than cores.
set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
set(ENV{OMPI_MCA_hwloc_base_binding_policy} none)
set(ENV{OMPI_MCA_btl_vader_single_copy_mechanism} none)
set(ENV{HWLOC_HIDE_ERRORS} 2)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
set(ENV{OMPI_MCA_pml} ob1)  # one machine: Open MPI starts sooner where it need not look for networks
set(ENV{OMPI_MCA_btl} self,vader)
set(ENV{OMPI_MCA_mpi_yield_when_idle} 1)  # several tests share the cores: ranks and threads that wait give theirs up
if(NOT DEFINED ENV{OMP_WAIT_POLICY})
  set(ENV{OMP_WAIT_POLICY} passive)
endif()
set(ENV{ASAN_OPTIONS} detect_leaks=0)  # Open MPI's own; programs without MPI switch it on again
