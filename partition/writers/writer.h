// Writes matrix files for other programs from any RowSource. Only the list in writer.cpp knows all formats. Shard files are
// written by partition/shard/shard_file.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "kernels/base/progress.h"
#include "partition/files/atomic_file.h"
#include "partition/source/row_source.h"

namespace shardmat {

/// The rows and columns that the file of one rank is about.
struct RankPart {
  std::int64_t first_row = 0, end_row = 0, first_col = 0, end_col = 0;
};

/// A file format that can be written: one line in the list in writer.cpp.
struct Writer {
  std::string_view name;    ///< "matrix-market"
  std::string_view suffix;  ///< ".mtx"
  /// Writes the temporary of `file`. `row_ptr` has rows + 1 entries and starts with 0. `source` is in the original order.
  void (*write)(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                const Progress& progress) = nullptr;
  /// In place of write() if the format has a file for each rank: writes that of one rank.
  void (*write_part)(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                     const RankPart& part, const Progress& progress) = nullptr;
};

std::span<const Writer> writers();

/// Throws Error(usage), which lists the known suffixes, if no writer has the suffix of `path`.
const Writer& find_writer(const std::filesystem::path& path);

/// Writes the matrix in its original order; the suffix chooses the format. The file is written to a temporary file, flushed
/// to disk and renamed. If the source has unknowns, unknowns_file(path) is written likewise. Progress counts nonzeros.
/// `files`: as partition/files/atomic_files.h describes; rows and columns are divided by begin_of_part(). Throws
/// Error(resources) if the disk is full or not writable; then no file is left behind.
void write_matrix(const std::filesystem::path& path, const RowSource& source, const Progress& progress = {},
                  std::int64_t files = 1);

}  // namespace shardmat
