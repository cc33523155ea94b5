// Reads a matrix file of another program as entries, for ranks that share its rows. A pass reads one share of the file and
// delivers its entries in batches of bounded memory; a pass can be repeated. A matrix takes two passes: the first counts the
// entries of each row, the second delivers them. read_matrix() does the same in one process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "partition/readers/reader.h"
#include "partition/readers/text_source.h"

namespace shardmat {

struct MatrixEntry {
  std::int64_t row, col;
  double value;
};

/// `count` entries of a row; other batches may have more entries of the row.
struct RowCount {
  std::int64_t row, count;
};

/// Share `index` of `count` shares of a file.
struct FileShare {
  int index = 0, count = 1;
};

/// Entries come in any order, including the mirrored entries of a symmetric file; duplicates are not summed. Rows are within
/// the matrix. `use` is called by several threads concurrently, `after_batch` on the caller's thread between batches. For a
/// fault in text, a pass throws TextFault, so that the caller can find the first fault over all shares; else Error(input).
class EntryReader {
 public:
  virtual ~EntryReader() = default;

  virtual std::int64_t rows() const = 0;
  virtual std::int64_t cols() const = 0;
  /// Upper bound of the number of entries in the file.
  virtual std::int64_t most_entries() const = 0;
  /// Memory on all ranks together that the sizes in the file's header require.
  virtual std::int64_t bytes_asked() const = 0;
  virtual const InputFile& file() const = 0;
  /// The node and the degree of freedom of each row; null if the file does not name them.
  virtual std::shared_ptr<const UnknownList> unknowns() const { return nullptr; }
  /// Bytes of all files that belong to the matrix.
  virtual std::int64_t file_bytes() const { return file().size(); }
  /// True if several shares can be read independently; else there is only one share.
  virtual bool is_divisible() const = 0;

  using UseCounts = std::function<void(std::span<const RowCount>)>;
  using UseEntries = std::function<void(std::span<const MatrixEntry>)>;
  /// Calls use() with the rows of all entries of the share. Returns the number of entries that the file stores in this
  /// share.
  virtual std::int64_t count(const FileShare& share, const UseCounts& use, const Progress& after_batch) = 0;
  virtual void read(const FileShare& share, const UseEntries& use, const Progress& after_batch) = 0;

  /// Throws Error(input) unless the file's header promises `entries` entries, the number that count() found in all shares.
  virtual void require_promised(std::int64_t entries) const = 0;
  /// Throws Error(input) "path:line: what" for a TextFault of a pass.
  [[noreturn]] virtual void fail(const TextFault& fault) = 0;
  /// `part`: all entries of the rows from first_row on, unsorted. Throws Error(input) if an entry comes twice and the format
  /// does not say that this means a sum. Called before duplicates are summed.
  virtual void check_duplicates(const HostCsr& /*part*/, std::int64_t /*first_row*/) const {}
  /// True if the format forbids that an entry comes twice; then require_unique() is called on the parts of all ranks.
  virtual bool forbids_duplicates() const { return false; }
  /// True if reading does not check all columns and values, so that validate() must check them.
  virtual bool needs_validation() const = 0;
};

/// Throws Error(input), which begins with `what`, if an entry of the rows from first_row on comes twice. `part`: unsorted.
void require_unique(const HostCsr& part, std::int64_t first_row, const std::string& what);

/// Reads the whole matrix in one process: rows sorted, duplicates summed, validated. Throws as read_matrix().
HostCsr read_by_entries(EntryReader& reader, const ReadOptions& options, const ReadLimits& limits);

/// Opens the file with the reader that accepts it. Throws what read_matrix() throws for a file that is not a matrix.
std::unique_ptr<EntryReader> open_entries(const std::filesystem::path& path, const ReadOptions& options,
                                          const ReadLimits& limits);

}  // namespace shardmat
