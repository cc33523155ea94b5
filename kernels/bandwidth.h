// The yardstick of every bandwidth figure: what this device copies in the same run.
#pragma once

#include "kernels/base/device.h"

namespace shardmat {

/// Bytes a second read plus written by a device-to-device copy (host: all threads of this rank) of about `bytes`, best of a
/// few. 0 if there is not even memory for a small copy.
double measure_copy_bandwidth(Stream& stream, std::size_t bytes = std::size_t{1} << 30);

}  // namespace shardmat
