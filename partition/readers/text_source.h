// Reads text files in pieces of whole lines, in any number of passes. Each task reads its own piece of plain text into a
// buffer that stays in its core's cache, so the copy costs almost nothing; compressed text goes through one bounded buffer.
// A second pass reads (and decompresses) the file again, so the text is never held in memory. Line numbers are counted only
// for an error message, so that the text can be parsed in parallel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/progress.h"
#include "partition/files/input_file.h"

namespace shardmat {

/// Buffer sizes and limits of a reader. Tests use smaller sizes than the defaults.
struct ReadLimits {
  std::int64_t piece_bytes = 1 << 20;  ///< text parsed by one task
  std::int64_t batch_bytes =
      64 << 20;  ///< text between two progress reports; the buffer of compressed text is at most a quarter of it
  /// The most bytes that a matrix may take; the machine's available memory is a limit, too.
  std::int64_t memory_bytes = std::numeric_limits<std::int64_t>::max();

  /// Memory that any file may require, and that it may require for each of its bytes. So a small file with a huge header, or
  /// with extremely compressed data, cannot take the memory of a large file.
  static constexpr std::int64_t kFreeBytes = 1'000'000'000, kBytesPerByte = 100;

  /// Throws Error(resources), which names the file, if `bytes` are more than allowed or available.
  void require_memory(std::int64_t bytes, const std::filesystem::path& path) const;
  /// Throws Error(input) if `bytes`, on all ranks together, are more than a file of this size may require.
  static void require_plausible(std::int64_t bytes, const InputFile& file);
  /// The same for a matrix of `file_bytes` in one or more files.
  static void require_plausible(std::int64_t bytes, const std::filesystem::path& path, std::int64_t file_bytes);
  /// Makes both checks.
  void require_budget(std::int64_t bytes, const InputFile& file) const;
};

/// Called with whole lines, each ended by '\n', and their offset in the text.
using PieceVisit = std::function<void(std::string_view piece, std::int64_t offset)>;

/// The lines to visit: those that begin in [from, to). REQUIRES: a line begins at byte `body`, and from >= body.
struct TextRange {
  std::int64_t body = 0;
  std::int64_t from = body;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
};

class TextSource {
 public:
  /// Opens plain text, or a compressed one if the name says so (.gz, .bz2, .xz, .zst). A byte order mark at its start and
  /// Ctrl-Z at its end are left out.
  static std::unique_ptr<TextSource> open(const std::filesystem::path& path, const ReadLimits& limits);
  virtual ~TextSource() = default;

  /// After this call, next() returns the first batch again.
  virtual void rewind() = 0;
  /// The next whole lines, each ended by '\n' (added if the file's last line lacks it); empty at the end. Valid until the
  /// next call. Throws Error(input) if compressed data is truncated or damaged, or if the file becomes shorter while it is
  /// read.
  virtual std::string_view next() = 0;
  /// Calls visit() for pieces of whole lines that together cover the range; the pieces of a batch in parallel. After each
  /// batch calls after_batch() with the bytes of the file read so far. Rewinds. REQUIRES: unless is_seekable(), the range
  /// has no end.
  virtual void visit_pieces(const TextRange& range, const ReadLimits& limits, const PieceVisit& visit,
                            const std::function<void(std::int64_t)>& after_batch) = 0;
  /// Upper bound of the bytes of text in the file.
  virtual std::int64_t most_text_bytes() const = 0;
  /// True if a range can be read without the text before it. Offsets in the text are then offsets in the file.
  virtual bool is_seekable() const = 0;

  const InputFile& file() const { return file_; }

 protected:
  explicit TextSource(const std::filesystem::path& path) : file_(path) {}
  InputFile file_;
};

/// Thrown while a line is parsed; `at` is any position in the line. Becomes Error(input) "path:line: what".
struct LineFault {
  const char* at;
  std::string what;
  std::string setting = {};  ///< as Error::setting()
};

/// A fault at an offset in the text, independent of the thread or process that found it.
struct TextFault {
  std::int64_t offset;
  std::string what;
  std::string setting = {};  ///< as Error::setting()
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
  /// Throws Error(input) "path:line: what" for that line, and "path: what" before the first one.
  [[noreturn]] void fail(const std::string& what, const std::string& setting = {}) const;

 private:
  TextSource& source_;
  std::string_view rest_;
  std::int64_t line_ = 0;
  std::int64_t offset_ = 0;
};

/// Calls visit() in parallel for pieces of whole lines that together cover the range, and after_batch(bytes of the file read
/// so far) on the caller's thread. If calls throw LineFault, throws the first fault in the text as TextFault.
void for_each_piece(TextSource& source, const TextRange& range, const ReadLimits& limits,
                    const std::function<void(std::string_view)>& visit,
                    const std::function<void(std::int64_t)>& after_batch);

/// Calls visit() in parallel for pieces of whole lines that together cover the text from byte `from` on (the start of a
/// line). If calls throw LineFault, throws the first fault in the file as Error(input).
void for_each_piece(TextSource& source, std::int64_t from, const ReadLimits& limits, std::string_view phase,
                    const Progress& progress, const std::function<void(std::string_view)>& visit);

}  // namespace shardmat
