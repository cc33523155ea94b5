// Which of our ways to read takes what a user names as a matrix. Every command asks here, so that all take the same files.
#pragma once

#include <string>

namespace shardmat {

enum class InputKind {
  generated,  ///< a generator's specification: make_generator()
  hdf5,       ///< a shard file or another HDF5 file: ShardFile::open() reads it or says why not
  foreign,    ///< anything else: read_matrix() and open_entries() read it or say why not
};

/// Decides by the name, then by the first bytes. A file that exists is no specification. Throws nothing for a file that is
/// missing or cannot be read.
InputKind kind_of_input(const std::string& argument);

}  // namespace shardmat
