// Text files as batches of whole lines, from the start as often as wanted: plain ones straight out of the
// page cache, gzip ones through one bounded buffer (reading twice costs a second decompression, never the
// memory of the text). Line numbers are counted only when an error needs one, so that the text can be parsed
// in parallel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/progress.h"

namespace shardmat {

/// Sizes that a reader works with; the defaults are for files, tests take small ones.
struct ReadLimits {
  std::int64_t piece_bytes = 1 << 20;   ///< text parsed by one task
  std::int64_t batch_bytes = 64 << 20;  ///< text between two progress reports; a gzip buffer is at most a quarter of it
  /// Bytes a matrix may take at most, on top of what the machine has left.
  std::int64_t memory_bytes = std::numeric_limits<std::int64_t>::max();

  /// Throws Error(resources) naming the file if `bytes` are more than allowed or available.
  void require_memory(std::int64_t bytes, const std::filesystem::path& path) const;
};

/// A regular file mapped read-only. Throws Error(input) naming it and the remedy if it is missing or no
/// regular file.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string_view bytes() const { return {data_, size_}; }
  /// Asks the kernel to read these bytes ahead.
  void will_need(std::size_t begin, std::size_t size) const;
  /// Throws Error(input) if the file's size or time of change is not what it was when it was opened.
  void require_unchanged() const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t changed_ns_ = 0;
};

class TextSource {
 public:
  /// Opens plain text, or gzip if the name ends in ".gz".
  static std::unique_ptr<TextSource> open(const std::filesystem::path& path, const ReadLimits& limits);
  virtual ~TextSource() = default;

  /// The next call of next() gives the first batch again.
  virtual void rewind() = 0;
  /// Whole lines, each ended by '\n' (added where the last line of the file has none); empty at the end.
  /// Valid until the next call. Throws Error(input) if the compressed data is truncated or damaged.
  virtual std::string_view next() = 0;
  /// Bytes of the file behind the batches given so far.
  virtual std::int64_t consumed() const = 0;
  /// No more text than this can come out of the file.
  virtual std::int64_t most_text_bytes() const = 0;

  const MappedFile& file() const { return file_; }

 protected:
  explicit TextSource(const std::filesystem::path& path) : file_(path) {}
  MappedFile file_;
};

/// Thrown while parsing one line; `at` is any place in the line. Becomes Error(input) "path:line: what".
struct LineFault {
  const char* at;
  std::string what;
};

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

/// Calls visit on pieces of whole lines that together are the text from byte `from` on (the start of a line),
/// in parallel. If visits throw LineFault, the fault nearest to the start of the file is thrown as
/// Error(input).
void for_each_piece(TextSource& source, std::int64_t from, const ReadLimits& limits, std::string_view phase,
                    const Progress& progress, const std::function<void(std::string_view)>& visit);

}  // namespace shardmat
