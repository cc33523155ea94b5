// The reference for every bandwidth figure: the copy bandwidth of this device, measured in the same run.
#pragma once

#include "kernels/base/device.h"

namespace shardmat {

/// Bytes read plus bytes written in a second by a device-to-device copy (host: by all threads of this rank) of about
/// `bytes`; the best of several copies. 0 if there is no memory even for a small copy.
double measure_copy_bandwidth(Stream& stream, std::size_t bytes = std::size_t{1} << 30);

}  // namespace shardmat
