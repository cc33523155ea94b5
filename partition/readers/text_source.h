// Text files as pieces of whole lines, from the start as often as wanted. Each task reads its own piece of plain text into
// a buffer that stays in its core's cache, so the copy costs next to nothing; gzip goes through one bounded buffer.
// Reading twice costs a second pass (and decompression), never the memory of the text. Line numbers are counted only when
// an error needs one, so that the text can be parsed in parallel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/progress.h"
#include "partition/input_file.h"

namespace shardmat {

/// Sizes that a reader works with; the defaults are for files, tests take small ones.
struct ReadLimits {
  std::int64_t piece_bytes = 1 << 20;   ///< text parsed by one task
  std::int64_t batch_bytes = 64 << 20;  ///< text between two progress reports; a gzip buffer is at most a quarter of it
  /// Bytes a matrix may take at most, on top of what the machine has left.
  std::int64_t memory_bytes = std::numeric_limits<std::int64_t>::max();

  /// What any file may ask for, and what it may ask for each byte that it has: a header, or data that were compressed too
  /// well to be a matrix, cannot make a small file take the memory of a large one.
  static constexpr std::int64_t kFreeBytes = 1'000'000'000, kBytesPerByte = 100;

  /// Throws Error(resources) naming the file if `bytes` are more than allowed or available.
  void require_memory(std::int64_t bytes, const std::filesystem::path& path) const;
  /// Throws Error(input) if `bytes`, on all ranks together, are more than a file of this size may ask for.
  static void require_plausible(std::int64_t bytes, const InputFile& file);
  /// Both.
  void require_budget(std::int64_t bytes, const InputFile& file) const;
};

/// Gets whole lines, each ended by '\n', and where they begin in the text.
using PieceVisit = std::function<void(std::string_view piece, std::int64_t offset)>;

/// Which lines of a text to visit: those that begin in [from, to). A line begins at byte `body`, and `from` is not before
/// it.
struct TextRange {
  std::int64_t body = 0;
  std::int64_t from = body;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
};

class TextSource {
 public:
  /// Opens plain text, or gzip if the name ends in ".gz".
  static std::unique_ptr<TextSource> open(const std::filesystem::path& path, const ReadLimits& limits);
  virtual ~TextSource() = default;

  /// The next call of next() gives the first batch again.
  virtual void rewind() = 0;
  /// Whole lines, each ended by '\n' (added where the last line of the file has none); empty at the end.
  /// Valid until the next call. Throws Error(input) if the compressed data is truncated or damaged, or if the file
  /// becomes shorter while it is read.
  virtual std::string_view next() = 0;
  /// Calls visit on pieces of whole lines that together are the range, those of a batch in parallel, and after_batch with
  /// the bytes of the file read so far. Rewinds.
  /// REQUIRES: unless is_seekable(), the range has no end.
  virtual void visit_pieces(const TextRange& range, const ReadLimits& limits, const PieceVisit& visit,
                            const std::function<void(std::int64_t)>& after_batch) = 0;
  /// No more text than this can come out of the file.
  virtual std::int64_t most_text_bytes() const = 0;
  /// True if a range is read without the text before it; bytes of the text are then bytes of the file.
  virtual bool is_seekable() const = 0;

  const InputFile& file() const { return file_; }

 protected:
  explicit TextSource(const std::filesystem::path& path) : file_(path) {}
  InputFile file_;
};

/// Thrown while parsing one line; `at` is any place in the line. Becomes Error(input) "path:line: what".
struct LineFault {
  const char* at;
  std::string what;
};

/// A fault at a byte of the text, which thread or process ever found it.
struct TextFault {
  std::int64_t offset;
  std::string what;
};

/// Throws Error(input) "path:line: what"; reads the text again to count the lines.
[[noreturn]] void fail_at(TextSource& source, const TextFault& fault);

/// Goes through the lines of a source one after another.
class LineCursor {
 public:
  /// Rewinds the source.
  explicit LineCursor(TextSource& source);
  /// The next line with its '\n'; empty at the end. Valid until the next call.
  std::string_view next();
  /// Number of the line that next() gave last; the first is 1.
  std::int64_t line() const { return line_; }
  /// Bytes of text up to the end of that line.
  std::int64_t offset() const { return offset_; }
  /// Throws Error(input) "path:line: what" for that line.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  TextSource& source_;
  std::string_view rest_;
  std::int64_t line_ = 0;
  std::int64_t offset_ = 0;
};

/// Calls visit on pieces of whole lines that together are the range, in parallel, and after_batch(bytes of the file read so
/// far) on the caller's thread. If visits throw LineFault, the fault nearest to the start of the text is thrown as
/// TextFault.
void for_each_piece(TextSource& source, const TextRange& range, const ReadLimits& limits,
                    const std::function<void(std::string_view)>& visit,
                    const std::function<void(std::int64_t)>& after_batch);

/// Calls visit on pieces of whole lines that together are the text from byte `from` on (the start of a line),
/// in parallel. If visits throw LineFault, the fault nearest to the start of the file is thrown as
/// Error(input).
void for_each_piece(TextSource& source, std::int64_t from, const ReadLimits& limits, std::string_view phase,
                    const Progress& progress, const std::function<void(std::string_view)>& visit);

}  // namespace shardmat
