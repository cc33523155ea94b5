// The driver's management library, opened when it is asked for: the program is not linked with it, and builds without CUDA
// look at GPUs, too.
//
// Threads: one thread at a time.
#pragma once

#include <string>

#include "runtime/doctor/check.h"

namespace shardmat::doctor {

/// Facts of each GPU of this host: id, name, sm_mhz, sm_mhz_possible, slowed_by, ecc_on, uncorrected_errors, busy_share,
/// processes, exclusive, and ids of GPUs that it reaches (reaches, and by NVLink: linked). What the library does not tell is
/// left out. Throws Error(resources) with the reason if it cannot be opened or started.
Json ask_nvml();

}  // namespace shardmat::doctor
