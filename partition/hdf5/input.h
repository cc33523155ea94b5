// An HDF5 file that will be opened.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace shardmat {

/// A file, and the datasets and groups to be known in it.
struct Hdf5Input {
  std::filesystem::path path;
  std::vector<std::string> objects;
};

}  // namespace shardmat
