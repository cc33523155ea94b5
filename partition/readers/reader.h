// Reads matrix files of other programs. A reader turns a file into a validated HostCsr. Only the list in reader.cpp knows
// all readers.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/base/progress.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

class EntryReader;
struct ReadLimits;

struct ReadOptions {
  bool allow_nonfinite = false;  ///< accept NaN and infinity among the values
  Progress progress;             ///< bytes of the file read
};

/// A file format that can be read: one line in the list of reader.cpp.
struct Reader {
  std::string_view name;                               ///< "matrix-market"
  std::string_view suffixes;                           ///< ".mtx .mtx.gz", for help and error messages
  bool (*accepts)(const std::filesystem::path& path);  ///< decides by suffix and, where needed, first bytes
  HostCsr (*read)(const std::filesystem::path& path, const ReadOptions& options);
  /// For several ranks: see entry_reader.h.
  std::unique_ptr<EntryReader> (*open_entries)(const std::filesystem::path& path, const ReadOptions& options,
                                               const ReadLimits& limits);
};

std::span<const Reader> readers();

/// The reader that accepts `path`. Throws Error(input) with a remedy for a missing file, a directory, a batch of graphs, or
/// a file that no reader accepts.
const Reader& reader_of(const std::filesystem::path& path);

/// Reads `path` with the reader that accepts it. Rows sorted, duplicates summed, validated.
/// Throws Error(input) naming file, line and remedy for a missing, unknown, truncated or malformed file.
HostCsr read_matrix(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace shardmat
