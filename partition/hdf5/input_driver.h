// The HDF5 file driver of the helper program: it reads one open file with pread. It can also find the position of a chunk
// without reading it, because HDF5 1.10 finds a chunk quickly only when it reads the chunk.
#pragma once

#include <cstdint>

namespace shardmat {

struct Hdf5InputFile {
  int descriptor = -1;
  bool tracing = false;      ///< record the offset from which numbers are read, and read nothing
  std::int64_t traced = -1;  ///< offset of the last read of numbers while tracing
};

/// Makes a file access property list use the driver. `file` must outlive the HDF5 file.
void use_input_driver(std::int64_t access_list, Hdf5InputFile* file);

}  // namespace shardmat
