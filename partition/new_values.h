// A matrix with the pattern of a file and other values.
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

/// Writes to `output` the matrix of the file `matrix` with other values: rows, columns, order, permutation and partitions
/// stay, checksums are new. The values of `matrix` itself are not used, and not compared with their checksums. `values` is
/// one of
///   - a vector (.npy, .mtx array, FILE.h5:/dataset, or FILE.h5 with a dataset /values) with an entry for each nonzero: row
///     after row of the matrix in its original order, columns ascending in each row. SciPy calls this `data` of a CSR matrix
///     with sorted indices;
///   - a matrix file with the same nonzeros (.mtx, .npz, .h5), in any order that it stores;
///   - SHARD_FILE.h5:/values: its values as they are, even if they do not match its checksums.
/// Both files must be HDF5 (.h5). Throws Error(input) if sizes or patterns differ, naming the place; Error(resources) as
/// write_shard_file(). Then `output` is as it was.
void write_new_values(const std::filesystem::path& output, const std::filesystem::path& matrix, const std::string& values,
                      const NewValuesOptions& options);

}  // namespace shardmat
