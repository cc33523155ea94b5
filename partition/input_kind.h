// Decides how to read what a user names as a matrix. Every command uses it, so that all commands accept the same files.
#pragma once

#include <string>

namespace shardmat {

enum class InputKind {
  generated,  ///< a generator's specification: make_generator()
  hdf5,       ///< a shard file or another HDF5 file: ShardFile::open() reads it or says why not
  foreign,    ///< anything else: read_matrix() and open_entries() read it or say why not
};

/// Decides by the name, then by the first bytes. An existing file is never a specification. Does not throw for a file that
/// is missing or unreadable.
InputKind kind_of_input(const std::string& argument);

}  // namespace shardmat
