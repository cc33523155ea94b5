// Which existing files an output may replace: files of the same kind, and no others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace shardmat {

enum class FileContent { absent, empty, hdf5, matrix_market, npy, zip, petsc, numbers, other };

/// Decides by the first bytes; `numbers` is plain text without words. Anything but a readable regular file is `other`. Never
/// blocks.
FileContent content_of(const std::filesystem::path& path);

enum class Output {
  matrix,    ///< .h5: may replace a shard file or a Binsparse matrix; .mtx, .npz …: a sparse matrix in that format
  batch,     ///< may replace a batch file
  unknowns,  ///< .dof: may replace text without words
  vector,    ///< .h5: may replace a file whose only dataset has the same name; .npy: any array; .mtx: an array;
             ///< .petsc: a file with one vector; .txt: text without words
  report,    ///< text or a picture: may replace anything but an HDF5, Matrix Market, .npy or zip file
};

/// Throws Error(usage), which says what the file is, if an output would replace a file of another kind at `path`. A missing
/// or empty file, a device and a pipe are never refused. A vector's name may be FILE.h5:/dataset; without a dataset,
/// `default_dataset` is used. `files`: of an output in several files (partition/files/atomic_files.h); each must be
/// replaceable.
void require_replaceable(const std::string& path, Output output, const std::string& default_dataset = "y",
                         std::int64_t files = 1);

}  // namespace shardmat
