// The HDF5 file driver of the helper program: one open file, read with pread. It also answers where a chunk lies without
// reading it: HDF5 1.10 looks a chunk up quickly only to read it.
#pragma once

#include <cstdint>

namespace shardmat {

struct Hdf5InputFile {
  int descriptor = -1;
  bool tracing = false;      ///< note where numbers are read from, and read nothing
  std::int64_t traced = -1;  ///< offset of the last read of numbers while tracing
};

/// Makes a file access property list use the driver. `file` must outlive the HDF5 file.
void use_input_driver(std::int64_t access_list, Hdf5InputFile* file);

}  // namespace shardmat
