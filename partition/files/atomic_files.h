// An output of one file, or of one file for each of several ranks: NAME.00000, NAME.00001 …, as hypre reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "partition/files/atomic_file.h"

namespace shardmat {

/// Throws Error(usage) unless an output named `first` can consist of so many files: one, or several by the name of hypre's
/// first file; also if files of further ranks are there, which would be read as part of the output. Call it before long
/// work.
void check_file_count(const std::filesystem::path& first, std::int64_t files);
/// Throws Error(usage) if several files are wanted, and there are fewer rows than files.
void require_rows_for_files(const std::filesystem::path& first, std::int64_t files, std::int64_t rows);

/// Begin of part `part` if `count` rows or columns are divided as hypre does it: consecutive parts, the first ones one
/// longer. part = parts gives `count`.
std::int64_t begin_of_part(std::int64_t count, std::int64_t part, std::int64_t parts);

/// Owns the temporary files of an output. All get their names in commit(), or none does: only if a file cannot be renamed
/// there, those before it have been.
class AtomicFiles {
 public:
  /// Throws as check_file_count(), require_rows_for_files() and AtomicFile().
  AtomicFiles(const std::filesystem::path& first, std::int64_t files, std::int64_t rows);

  std::int64_t size() const { return static_cast<std::int64_t>(files_.size()); }
  const AtomicFile& operator[](std::int64_t file) const { return *files_[static_cast<std::size_t>(file)]; }
  /// The writers must have closed all files.
  void commit();

 private:
  std::vector<std::unique_ptr<AtomicFile>> files_;
};

}  // namespace shardmat
