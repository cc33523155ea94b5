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
/// id (PCI address), name, uuid, numa_node, pcie_lanes, pcie_lanes_possible of each GPU, by address.
Json gpus_on_host(const HostFiles& files);
/// "GPU-6F2A…" as CUDA's hexadecimal digits.
std::string plain_uuid(const std::string& uuid);
/// Those of `gpus` that CUDA_VISIBLE_DEVICES=`value` leaves, in its order. Null: all.
Json visible_of(const Json& gpus, const char* value);

}  // namespace shardmat::doctor
