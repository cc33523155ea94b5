// Descriptions of HDF5 files that other programs wrote, from the helper program shardmat-h5check.
#pragma once

#include <string>
#include <vector>

#include "partition/files/input_file.h"
#include "partition/hdf5/description.h"
#include "partition/hdf5/input.h"

namespace shardmat {

/// The helper's description of `file` and of the named objects in it. Follows links to other files if the environment has
/// SHARDMAT_HDF5_LINKS=follow. Remembers descriptions by path, size and time of change. Throws Error(input) if the file is
/// no HDF5 file, or if the helper crashed or took more than 20 s.
Hdf5Description describe_hdf5(const InputFile& file, const std::vector<std::string>& objects);

/// False if the file ends with its own description, which each rank reads itself.
bool needs_hdf5_description(const Hdf5Input& input);
/// The helper's description as text, to send it to other ranks.
std::string hdf5_description_text(const Hdf5Input& input);
/// Remembers the result of hdf5_description_text() on another rank, so that opening the file here does not run the helper.
void remember_hdf5_description(const Hdf5Input& input, std::string text);

/// Runs the helper; does not follow links and remembers nothing.
Hdf5Description run_h5check(const InputFile& file, const std::vector<std::string>& objects);

}  // namespace shardmat
