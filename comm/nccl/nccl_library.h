// NCCL, loaded when it is first used. To call another of its functions, add the name to the list.
#pragma once

#include <nccl.h>

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
#define SHARDMAT_NCCL_WINDOWS(call) call(MemAlloc) call(MemFree) call(CommWindowRegister) call(CommWindowDeregister)
#else
#define SHARDMAT_NCCL_WINDOWS(call)
#endif
#define SHARDMAT_NCCL_CALLS(call)                                                                                           \
  call(GetVersion) call(GetUniqueId) call(CommInitRankConfig) call(CommFinalize) call(CommDestroy) call(CommAbort)          \
      call(CommGetAsyncError) call(GetLastError) call(GetErrorString) call(AllGather) call(AllReduce) call(Send) call(Recv) \
          call(GroupStart) call(GroupEnd) SHARDMAT_NCCL_WINDOWS(call)

struct ncclTeam;

namespace shardmat {

/// ncclSend() is called as nccl().Send().
struct NcclCalls {
  NcclCalls();
#define SHARDMAT_NCCL_CALL(name) decltype(&::nccl##name) name = nullptr;
  SHARDMAT_NCCL_CALLS(SHARDMAT_NCCL_CALL)
#undef SHARDMAT_NCCL_CALL
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
  ncclTeam (*TeamLsa)(ncclComm_t) = nullptr;  // in nccl_device.h, which overloads this name for kernels
#endif
};

/// Loads the library at the first call. Throws Error(resources) if it or a function is missing, or if it is older than that
/// of the build. Any thread may call it.
const NcclCalls& nccl();

}  // namespace shardmat
