// The GPUs of a host, as the kernel module of the driver tells of them, without CUDA.
//
// Threads: any thread, several at a time.
#pragma once

#include <string>
#include <vector>

#include "runtime/doctor/check.h"

namespace shardmat::doctor {

/// The version of the driver's kernel module, as "580.65.06"; empty without one.
std::string driver_version(const HostFiles& files);
/// The latest CUDA that such a driver supports, as 13000 for 13.0; 0 if it is not known.
int cuda_of_driver(const std::string& version);
/// id (PCI address), name, uuid, numa_node, pcie_lanes, pcie_lanes_possible, usable of each GPU, by address. usable: whether
/// this process may open its device file, which the cgroups of Slurm and containers forbid for GPUs of others; missing if
/// that is not known.
Json gpus_on_host(const HostFiles& files);
/// "GPU-6F2A…" as CUDA's hexadecimal digits.
std::string plain_uuid(const std::string& uuid);
/// Those of `gpus` that CUDA shows to this process: of the usable ones, which it numbers from 0, those that
/// CUDA_VISIBLE_DEVICES=`value` leaves, in its order. Null value: all of them. A null Json: it is not known.
Json visible_of(const Json& gpus, const char* value);

}  // namespace shardmat::doctor
