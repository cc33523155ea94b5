#include "comm/nccl/nccl_library.h"

#include <fmt/format.h>

#include "comm/nccl/nccl_communicator.h"
#include "comm/placement.h"
#include "kernels/base/error.h"
#include "kernels/base/late_library.h"

namespace shardmat {
namespace {

std::string version_text(int code) { return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100); }

}  // namespace

NcclCalls::NcclCalls() {
  const LateLibrary library{"NCCL", "libnccl.so.2", SHARDMAT_NCCL_DIR, nccl_version_of_build(), "NCCL (package libnccl2)"};
  void* const loaded = load(library);
#define SHARDMAT_NCCL_CALL(name) find(loaded, library, "nccl" #name, name);
  SHARDMAT_NCCL_CALL(GetVersion)
  int version = 0;
  if (GetVersion(&version) != ncclSuccess || version / 100 < NCCL_VERSION_CODE / 100)
    throw Error(
        ErrorKind::resources,
        fmt::format("the NCCL that was loaded is {}, older than {} of the build; install {} or newer, or put the folder "
                    "of a newer libnccl.so.2 into LD_LIBRARY_PATH",
                    version_text(version), library.version, library.version),
        "backend");
  SHARDMAT_NCCL_CALLS(SHARDMAT_NCCL_CALL)
#undef SHARDMAT_NCCL_CALL
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
  find(loaded, library, "ncclTeamLsa", TeamLsa);
#endif
}

const NcclCalls& nccl() {
  static const NcclCalls loaded;
  return loaded;
}

bool built_with_nccl() { return true; }
std::string nccl_version_of_build() { return fmt::format("{}.{}", NCCL_MAJOR, NCCL_MINOR); }

std::string nccl_version() {
  int version = 0;
  try {
    nccl().GetVersion(&version);
  } catch (const Error&) {  // whoever uses it says why
    return {};
  }
  return version_text(version);
}

}  // namespace shardmat
