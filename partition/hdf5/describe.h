// Descriptions of HDF5 files that other programs wrote, from the helper program shardmat-h5check.
#pragma once

#include <string>
#include <vector>

#include "partition/hdf5/description.h"
#include "partition/hdf5/input.h"
#include "partition/input_file.h"

namespace shardmat {

/// What the helper says of `file` and the named objects in it; links to other files are followed if the environment says
/// SHARDMAT_HDF5_LINKS=follow. What it said of a file of this path, size and time of change is remembered. Throws
/// Error(input) if it is no HDF5 file, or if the helper crashed over it or took more than 20 s.
Hdf5Description describe_hdf5(const InputFile& file, const std::vector<std::string>& objects);

/// False if the file ends with its own description, which each rank reads itself.
bool needs_hdf5_description(const Hdf5Input& input);
/// The description as text, from the helper, to be sent to other ranks.
std::string hdf5_description_text(const Hdf5Input& input);
/// What hdf5_description_text() gave on another rank, so that the helper is not asked where the file is opened here.
void remember_hdf5_description(const Hdf5Input& input, std::string text);

/// The helper's answer alone, without links followed or anything remembered.
Hdf5Description run_h5check(const InputFile& file, const std::vector<std::string>& objects);

}  // namespace shardmat
