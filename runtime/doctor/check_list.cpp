#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {

std::span<const Check> checks() {
  static const Check all[] = {kLaunch,  kCores, kLoad,      kMemory,    kSharedMemory, kLimits, kHugePages, kNuma,
                              kNetwork, kGpus,  kGpuHealth, kLibraries, kSettings,     kClocks, kLinks,     kGpuLinks};
  return all;
}

}  // namespace shardmat::doctor
