// What a result may take the place of: files of the same kind, nothing else without being told to.
#pragma once

#include <filesystem>
#include <string>

namespace shardmat {

enum class FileContent { absent, empty, hdf5, matrix_market, npy, zip, other };

/// By the first bytes. What is no regular file, or cannot be read, is `other`; nothing is waited for.
FileContent content_of(const std::filesystem::path& path);

enum class Output {
  matrix,  ///< .h5: may replace a shard file or a Binsparse matrix; .mtx and .npz: a sparse matrix in that format
  batch,   ///< may replace a batch file
  vector,  ///< .h5: may replace a file whose only dataset has the same name; .npy: any array; .mtx: an array
  report,  ///< text or a picture: may replace anything but an HDF5, Matrix Market, .npy or zip file
};

/// Throws Error(usage), saying what is there, if a file at `path` would be lost to an output of another kind. A missing or
/// empty file, a device and a pipe are never refused. A vector's name may be FILE.h5:/dataset; without a dataset it is
/// `default_dataset`.
void require_replaceable(const std::string& path, Output output, const std::string& default_dataset = "y");

}  // namespace shardmat
