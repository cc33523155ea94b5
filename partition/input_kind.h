// Decides how to read what a user names as a matrix. Every command uses it, so that all commands accept the same files.
#pragma once

#include <string>

#include "partition/readers/input_choices.h"

namespace shardmat {

enum class InputKind {
  generated,  ///< a generator's specification: make_generator()
  hdf5,       ///< a shard file or another HDF5 file: ShardFile::open() reads it or says why not; see also is_foreign_hdf5()
  foreign,    ///< anything else: open_matrix_rows(), read_matrix() and open_entries() read it or say why not
};

/// Decides by choices.format, else by the name, then by the first bytes. An existing file is never a specification, and
/// FILE:OBJECT is always foreign. Throws only Error(usage), for an unknown format; not for a file that is missing or
/// unreadable.
InputKind kind_of_input(const std::string& argument, const InputChoices& choices = {});

/// True if a reader takes an HDF5 file: it is neither a shard file, a plain CSR matrix of Binsparse, a batch nor a mesh.
/// Throws as ShardFile::open() if it cannot be read. Asks for the objects of ShardFile::objects() only.
bool is_foreign_hdf5(const std::string& path);

}  // namespace shardmat
