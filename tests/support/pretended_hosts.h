// Several hosts where there is one.
#pragma once

namespace shardmat {

/// SHARDMAT_TEST_HOSTS_OF=2 in the environment makes hosts of two ranks each out of this one, as far as ranks and NCCL see:
/// they share its GPUs, reach each other directly within such a host, and between them through the network, which is of
/// sockets with NCCL_IB_DISABLE=1, or by NVLink (nvlink_between_hosts.cpp). Call it once, after MPI_Init. `variable` holds
/// the number of ranks of a host.
void pretend_hosts(const char* variable = "SHARDMAT_TEST_HOSTS_OF");
bool hosts_are_pretended();

}  // namespace shardmat
