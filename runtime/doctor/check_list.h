// All checks. A new one is a file in checks/, its name here, and its place in check_list.cpp.
#pragma once

#include <span>

#include "runtime/doctor/check.h"

namespace shardmat::doctor {

extern const Check kLaunch, kCores, kLoad, kMemory, kSharedMemory, kLimits, kHugePages, kNuma, kNetwork, kGpus, kGpuHealth,
    kLibraries, kSettings, kClocks, kLinks, kGpuLinks;

/// In the order of the report.
std::span<const Check> checks();

}  // namespace shardmat::doctor
