#include "partition/hdf5/environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "kernels/base/error.h"

namespace shardmat {

void refuse_other_hdf5_drivers() {
  for (const char* name : {"HDF5_DRIVER", "HDF5_VOL_CONNECTOR"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0')
      throw Error(ErrorKind::usage, fmt::format("the environment variable {} is set, and HDF5 files are read and written "
                                                "without such drivers and connectors; unset it",
                                                name));
}

bool hdf5_links_are_followed() {
  const char* value = std::getenv("SHARDMAT_HDF5_LINKS");
  if (value == nullptr || *value == '\0') return false;
  if (std::string(value) == "follow") return true;
  throw Error(ErrorKind::usage, fmt::format("SHARDMAT_HDF5_LINKS={}: the only value is follow", value));
}

}  // namespace shardmat
