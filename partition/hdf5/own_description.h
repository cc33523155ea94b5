// Files that Shardmat writes end with their own description, behind what the HDF5 library knows of: readers then need
// neither that library nor the helper program. HDF5 reads such files as any others. When it writes to one it cuts the end
// off, so that a description is never older than its file.
//
//   HDF5 file | description, JSON text | bytes of the HDF5 file, of the text, XXH64 of the text, "shardmat description 1\n"
#pragma once

#include <filesystem>
#include <optional>

#include "partition/hdf5/description.h"
#include "partition/input_file.h"

namespace shardmat {

/// Appends the description to a complete HDF5 file. Throws Error(resources) if the disk is full; `place` is the name for it.
void append_description(const std::filesystem::path& file, Hdf5Description description, const std::string& place);

/// Nothing if the file does not end with an intact description.
std::optional<Hdf5Description> own_description(const InputFile& file);

}  // namespace shardmat
