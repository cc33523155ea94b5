// The HDF5 file driver that new files are written through. With HDF5's own driver a full disk is fatal:
// closing the file fails for good, its id is left dangling, and the process crashes in HDF5's exit handler.
// This one remembers the first failure, drops what is written after it, and lets HDF5 close the file in
// peace; whoever writes asks the status.
#pragma once

#include <cstdint>

namespace shardmat {

struct Hdf5OutputStatus {
  int error = 0;                    ///< errno of the first failure; 0 as long as everything is written
  std::int64_t expected_bytes = 0;  ///< reserved when the file is created
};

/// Makes a file access property list use the driver. `status` must outlive the file.
void use_output_driver(std::int64_t access_list, Hdf5OutputStatus* status);

}  // namespace shardmat
