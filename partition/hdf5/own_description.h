// A file that Shardmat writes ends with its own description, after the part that the HDF5 library knows. Readers of such a
// file need neither the library nor the helper program. HDF5 reads it like any other file. If HDF5 writes to it, HDF5 cuts
// the end off, so that a description is never older than its file.
//
//   HDF5 file | description, JSON text | bytes of the HDF5 file, of the text, XXH64 of the text, "shardmat description 1\n"
#pragma once

#include <filesystem>
#include <optional>

#include "partition/files/input_file.h"
#include "partition/hdf5/description.h"

namespace shardmat {

/// Appends the description to a complete HDF5 file. Throws Error(resources) if the disk is full; `place` names the file.
void append_description(const std::filesystem::path& file, Hdf5Description description, const std::string& place);

/// The description at the end of the file; nothing if there is no intact one.
std::optional<Hdf5Description> own_description(const InputFile& file);

}  // namespace shardmat
