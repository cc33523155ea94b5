// Matrix files of other programs. A reader turns one file into one validated HostCsr; the list in reader.cpp is the
// only place that knows them all.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "kernels/base/progress.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

struct ReadOptions {
  bool allow_nonfinite = false;  ///< accept NaN and infinity among the values
  Progress progress;             ///< bytes of the file read
};

/// A file format that can be read: one line in the list of reader.cpp.
struct Reader {
  std::string_view name;                               ///< "matrix-market"
  std::string_view suffixes;                           ///< ".mtx .mtx.gz", for --help and error messages
  bool (*accepts)(const std::filesystem::path& path);  ///< decides by suffix and, where needed, first bytes
  HostCsr (*read)(const std::filesystem::path& path, const ReadOptions& options);
};

std::span<const Reader> readers();

/// Reads `path` with the reader that accepts it. Rows sorted, duplicates summed, validated.
/// Throws Error(input) naming file, line and remedy for a missing, unknown, truncated or malformed file.
HostCsr read_matrix(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace shardmat
