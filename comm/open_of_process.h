// Memory that another process of this host made, by way of its descriptor.
#pragma once

#include <cstdint>

namespace shardmat {

/// Opens, for reading and writing, the file without a name that `process` has as `descriptor`. The caller closes the result.
/// Throws Error(resources), naming what the system says.
int open_of_process(std::int32_t process, int descriptor);

}  // namespace shardmat
