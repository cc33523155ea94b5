// Which column the value in each place of a storage belongs to, found on the device.
//
// Threads: as Stream.
#pragma once

#include <optional>

#include "kernels/plan.h"

namespace shardmat {

/// std::int32_t for each place of the value arrays, one array after another: its column. Places of padding have any number.
/// Nothing: this format cannot tell. In stream order. Throws Error(resources) before it allocates.
std::optional<Buffer> place_columns(const Storage& storage, Stream& stream);

}  // namespace shardmat
