# shellcheck shell=bash
# Sourced by the scripts, or by you: settings that mpirun wants on workstations, in containers and as root.
export OMPI_MCA_rmaps_base_oversubscribe=1             # more ranks than cores
export OMPI_MCA_hwloc_base_binding_policy=none         # each rank may use all its threads
export OMPI_MCA_btl_vader_single_copy_mechanism=none   # containers forbid cross-process copies
export OMPI_MCA_odls_base_sigkill_timeout=5            # s from Ctrl-C to SIGTERM for the ranks, and from there to SIGKILL
export HWLOC_HIDE_ERRORS=2                           # a chroot without /sys is no news
if [ "$(id -u)" -eq 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
