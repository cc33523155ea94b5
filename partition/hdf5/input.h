// Names an HDF5 file that will be opened.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace shardmat {

/// A file, and the datasets and groups in it that must be known.
struct Hdf5Input {
  std::filesystem::path path;
  std::vector<std::string> objects;
};

}  // namespace shardmat
