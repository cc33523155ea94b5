// The HDF5 file driver for writing new files. With HDF5's own driver a full disk is fatal: the file can never be closed, its
// id is left dangling, and the process crashes in HDF5's exit handler. This driver records the first failure, discards later
// writes, and lets HDF5 close the file. The writer must check the status.
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
