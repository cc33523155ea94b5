// A matrix file of another program as entries, for ranks that keep its rows between them. A pass gives the entries of one
// share of the file in batches of bounded memory; the same pass can be made again. Two passes make a matrix: one counts the
// entries of each row, one gives them. read_matrix() is the same for one process.
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

/// `count` entries of a row, of which there may be more elsewhere.
struct RowCount {
  std::int64_t row, count;
};

/// Share `index` of `count` shares of a file.
struct FileShare {
  int index = 0, count = 1;
};

/// Entries come in no order, mirrored ones of a symmetric file among them; duplicates are not summed. Rows are within the
/// matrix. `use` is called from several threads at once, `after_batch` on the caller's thread between batches. Passes throw
/// TextFault for a fault in text, so that the caller can find the first one of all shares, else Error(input).
class EntryReader {
 public:
  virtual ~EntryReader() = default;

  virtual std::int64_t rows() const = 0;
  virtual std::int64_t cols() const = 0;
  /// More entries than this cannot come out of the file.
  virtual std::int64_t most_entries() const = 0;
  /// Bytes that the sizes in the file ask for on all ranks together, before entries are counted.
  virtual std::int64_t bytes_asked() const = 0;
  virtual const InputFile& file() const = 0;
  /// True if shares are read apart from each other; else there is only one.
  virtual bool is_divisible() const = 0;

  using UseCounts = std::function<void(std::span<const RowCount>)>;
  using UseEntries = std::function<void(std::span<const MatrixEntry>)>;
  /// Calls use() with the rows of all entries of the share. Returns how many entries the file stores in it.
  virtual std::int64_t count(const FileShare& share, const UseCounts& use, const Progress& after_batch) = 0;
  virtual void read(const FileShare& share, const UseEntries& use, const Progress& after_batch) = 0;

  /// Throws Error(input) if the file promises another number of entries than count() found in all shares.
  virtual void require_promised(std::int64_t entries) const = 0;
  /// Throws Error(input) "path:line: what" for a fault that a pass threw.
  [[noreturn]] virtual void fail(const TextFault& fault) = 0;
  /// True if reading leaves columns or values to be checked by validate().
  virtual bool needs_validation() const = 0;
};

/// Opens the file with the reader that accepts it. Throws what read_matrix() throws for a file that has no entries to give.
std::unique_ptr<EntryReader> open_entries(const std::filesystem::path& path, const ReadOptions& options,
                                          const ReadLimits& limits);

}  // namespace shardmat
