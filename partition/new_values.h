// Writes a matrix with the pattern of a file and new values.
#pragma once

#include <filesystem>
#include <string>

#include "kernels/base/progress.h"

namespace shardmat {

struct NewValuesOptions {
  std::string how;               ///< how the file is made, stored for people
  bool allow_nonfinite = false;  ///< accept NaN and infinity, also if the file does not say so
  Progress progress;             ///< nonzeros written
};

/// Writes the matrix of the file `matrix` with new values to `output`. Rows, columns, order, permutation and partitions
/// stay; checksums are new. The old values are not used, and not compared with their checksums. `values` is one of
///   - a vector (.npy, .mtx array, FILE.h5:/dataset, or FILE.h5 with a dataset /values) with an entry for each nonzero: row
///     by row of the matrix in its original order, with ascending columns in each row. This is `data` of a SciPy CSR matrix
///     with sorted indices;
///   - a matrix file with the same nonzeros (.mtx, .npz, .h5), in any stored order;
///   - SHARD_FILE.h5:/values: the values as stored, even if they do not match its checksums.
/// `output` and `matrix` must be HDF5 files (.h5). Throws Error(input) if sizes or patterns differ, naming the place;
/// Error(resources) as write_shard_file(). After an error `output` is unchanged.
void write_new_values(const std::filesystem::path& output, const std::filesystem::path& matrix, const std::string& values,
                      const NewValuesOptions& options);

}  // namespace shardmat
