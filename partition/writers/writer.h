// Matrix files for other programs, streamed from any source of rows; the list in writer.cpp is the only place that knows all
// formats. Shard files are written by partition/shard_file.h.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "kernels/base/progress.h"
#include "partition/atomic_file.h"
#include "partition/row_source.h"

namespace shardmat {

/// A file format that can be written: one line in the list of writer.cpp.
struct Writer {
  std::string_view name;    ///< "matrix-market"
  std::string_view suffix;  ///< ".mtx"
  /// Writes the temporary of `file`. `row_ptr` has rows + 1 entries and starts with 0; the source is in the
  /// original order.
  void (*write)(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                const Progress& progress);
};

std::span<const Writer> writers();

/// Throws Error(usage) naming the known suffixes if no writer has that of `path`.
const Writer& find_writer(const std::filesystem::path& path);

/// Writes the matrix in its original order in the format of the name's suffix: temporary name beside it, flushed to disk,
/// renamed. Progress counts nonzeros. Throws Error(resources) when the disk is full or not writable; then nothing is left
/// behind.
void write_matrix(const std::filesystem::path& path, const RowSource& source, const Progress& progress = {});

}  // namespace shardmat
