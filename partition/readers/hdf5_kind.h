// Finds out what an HDF5 file contains, for messages and for writers that would replace it.
#pragma once

#include <filesystem>
#include <string>

#include "partition/hdf5/file.h"

namespace shardmat {

enum class Hdf5Kind {
  shard_file,  ///< a matrix with our tables
  binsparse,   ///< a matrix that another program wrote
  batch,       ///< many small matrices, see partition/batched/batch_file.h
  mesh,        ///< /points and /tetrahedra
  other,       ///< vectors, or anything else
};

/// Decides by the names of attributes and groups; reads no data.
Hdf5Kind kind_of(const Hdf5File& file);

/// What the file holds, for a message: "a batch of small matrices", "an HDF5 file with /x and /loads".
std::string describe(const Hdf5File& file);

/// Why the file cannot be read as a matrix, or as a batch, and what to do: "is a mesh of tetrahedra, not a matrix; …". In a
/// message this text follows the file's name.
std::string why_no_matrix(const Hdf5File& file);
std::string why_no_batch(const Hdf5File& file);

/// The parts of "FILE.h5:/name"; `dataset` is empty if the name has no dataset.
struct DatasetName {
  std::filesystem::path file;
  std::string dataset;  ///< begins with '/'
};
DatasetName split_dataset_name(const std::string& name);

/// True for the suffixes .h5 and .hdf5.
bool has_hdf5_suffix(const std::filesystem::path& path);

}  // namespace shardmat
