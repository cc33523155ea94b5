#include "partition/readers/text_source.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

/// A line longer than this means that the file is no text.
constexpr std::int64_t kLongestLine = 16 << 20;
/// Deflate cannot make text more than this many times smaller.
constexpr std::int64_t kBestCompression = 1032;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", path.string(), what));
}

[[noreturn]] void fail_long_line(const std::filesystem::path& path) {
  fail(path, fmt::format("there is a line of more than {}, so it is no matrix in text; check that it is the right file",
                         human_bytes(static_cast<double>(kLongestLine))));
}

bool is_gzip(const InputFile& file) {
  char magic[2] = {};
  file.read(magic, 0, std::min<std::int64_t>(2, file.size()));
  return magic[0] == '\x1f' && (file.size() < 2 || magic[1] == '\x8b');
}

/// Splits a batch after the first '\n' at or behind every multiple of piece_bytes.
std::vector<std::string_view> split(std::string_view batch, std::int64_t piece_bytes) {
  const auto step = static_cast<std::size_t>(std::max<std::int64_t>(1, piece_bytes));
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0; begin < batch.size();) {
    const std::size_t end = step >= batch.size() - begin ? batch.size() : batch.find('\n', begin + step - 1) + 1;
    pieces.push_back(batch.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

void run_tasks(std::int64_t tasks, const std::function<void(std::int64_t)>& body) {
  if (tasks == 1) body(0);  // small files need no threads
  else parallel_tasks(tasks, body);
}

using Buffer = HostVector<char>;

/// Buffers that tasks take and give back, so that there are no more than threads, and their pages are touched once.
class BufferPool {
 public:
  Buffer take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return {};
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give(Buffer buffer) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(buffer));
  }

 private:
  std::mutex mutex_;
  std::vector<Buffer> free_;
};

class PlainText final : public TextSource {
 public:
  PlainText(const std::filesystem::path& path, const ReadLimits& limits)
      : TextSource(path), block_bytes_(std::clamp<std::int64_t>(limits.batch_bytes, 1, kBlock)) {
    if (file_.size() > 1 && is_gzip(file_)) fail(path, "it is gzip data; rename it so that its name ends in .gz");
  }

  void rewind() override { position_ = 0; }

  std::string_view next() override {
    const std::string_view lines =
        lines_from(position_, position_, std::min(position_ + block_bytes_, file_.size()), block_);
    position_ = std::min(position_ + static_cast<std::int64_t>(lines.size()), file_.size());
    return lines;
  }

  void visit_pieces(const TextRange& range, const ReadLimits& limits, const PieceVisit& visit,
                    const std::function<void(std::int64_t)>& after_batch) override {
    const std::int64_t batch = std::max<std::int64_t>(1, limits.batch_bytes), last_byte = std::min(range.to, file_.size());
    const std::int64_t step = std::clamp<std::int64_t>(limits.piece_bytes, 1, batch);
    BufferPool buffers;
    for (std::int64_t begin = range.from; begin < last_byte; begin += batch) {
      const std::int64_t end = begin + std::min(batch, last_byte - begin);
      file_.will_need(end, batch);
      run_tasks((end - begin + step - 1) / step, [&](std::int64_t i) {
        const std::int64_t first = begin + i * step, last = std::min(first + step, end);
        Buffer buffer = buffers.take();
        // A line belongs to the piece in which it begins: at `body`, or behind a '\n'.
        const std::int64_t start = first == range.body ? first : first - 1;
        const std::string_view lines = lines_from(start, first, last, buffer);
        if (!lines.empty()) visit(lines, start + (lines.data() - buffer.data()));
        buffers.give(std::move(buffer));
      });
      after_batch(end);
    }
  }

  bool is_seekable() const override { return true; }

  std::int64_t most_text_bytes() const override { return file_.size() + 1; }

 private:
  static constexpr std::int64_t kBlock = 1 << 18;  ///< text that next() gives
  static constexpr std::int64_t kSlack = 256;      ///< read behind a piece, for the end of its last line

  /// The lines that begin in [first, last) of the file, the last of them whole. The buffer gets the file from `start` on;
  /// if that is first - 1, lines begin behind a '\n' there or later, else one begins at first.
  std::string_view lines_from(std::int64_t start, std::int64_t first, std::int64_t last, Buffer& buffer) const {
    if (first >= last) return {};
    std::int64_t filled = 0;
    const auto fill = [&](std::int64_t end) {
      end = std::min(end, file_.size());
      if (const auto needed = static_cast<std::size_t>(end - start) + 1; buffer.size() < needed) buffer.resize(needed);
      file_.read(buffer.data() + filled, start + filled, end - start - filled);
      filled = end - start;
    };
    fill(std::min(last, file_.size() - kSlack) + kSlack);
    const std::string_view text(buffer.data(), static_cast<std::size_t>(last - start));
    const std::size_t begin = start == first ? 0 : text.find('\n') + 1;  // npos + 1 = 0
    if (start != first && (begin == 0 || begin == text.size())) return {};
    auto search = static_cast<std::size_t>(last - start) - 1;
    while (true) {
      const std::size_t end = std::string_view(buffer.data(), static_cast<std::size_t>(filled)).find('\n', search);
      if (end != std::string_view::npos) return {buffer.data() + begin, end + 1 - begin};
      if (start + filled == file_.size()) break;
      if (filled - static_cast<std::int64_t>(begin) > kLongestLine) fail_long_line(file_.path());
      search = static_cast<std::size_t>(filled);
      fill(start + 2 * filled);
    }
    buffer[static_cast<std::size_t>(filled)] = '\n';  // which the last line of the file lacks
    return {buffer.data() + begin, static_cast<std::size_t>(filled) + 1 - begin};
  }

  std::int64_t block_bytes_;
  std::int64_t position_ = 0;  ///< start of the next batch
  Buffer block_;
};

/// Concatenated gzip members are one text, as gzip itself has it.
class GzipText final : public TextSource {
 public:
  GzipText(const std::filesystem::path& path, const ReadLimits& limits) : TextSource(path) {
    if (file_.size() == 0) fail(path, "the file is empty; copy or write it again");
    if (!is_gzip(file_)) fail(path, "it is not gzip data; rename it without .gz if it is plain text");
    compressed_.resize(static_cast<std::size_t>(std::min(file_.size(), kCompressed)));
    const std::int64_t enough = std::min(limits.batch_bytes / 4, 16 * file_.size());
    buffer_.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(enough, 64, kLongestLine)));
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw Error(ErrorKind::resources, "zlib cannot start: out of memory");
  }
  ~GzipText() override { inflateEnd(&stream_); }
  GzipText(const GzipText&) = delete;
  GzipText& operator=(const GzipText&) = delete;

  void rewind() override {
    inflateReset(&stream_);
    stream_.avail_in = 0;
    fetched_ = 0;
    given_ = filled_ = 0;
    ended_ = false;
  }

  std::string_view next() override {
    std::move(buffer_.begin() + static_cast<std::ptrdiff_t>(given_), buffer_.begin() + static_cast<std::ptrdiff_t>(filled_),
              buffer_.begin());
    filled_ -= given_;
    given_ = 0;
    while (true) {
      fill();
      given_ = std::string_view(buffer_.data(), filled_).rfind('\n') + 1;  // npos + 1 = 0
      if (given_ > 0) return {buffer_.data(), given_};
      if (ended_) return last_line();
      if (buffer_.size() >= static_cast<std::size_t>(kLongestLine)) fail_long_line(file_.path());
      buffer_.resize(buffer_.size() * 2);
    }
  }

  void visit_pieces(const TextRange& range, const ReadLimits& limits, const PieceVisit& visit,
                    const std::function<void(std::int64_t)>& after_batch) override {
    if (range.to < most_text_bytes()) throw Error(ErrorKind::internal, "a range of compressed text has an end");
    std::int64_t offset = 0;
    rewind();
    for (std::string_view batch = next(); !batch.empty(); batch = next()) {
      const auto size = static_cast<std::int64_t>(batch.size());
      const std::int64_t skipped = std::clamp<std::int64_t>(range.from - offset, 0, size);
      const auto pieces = split(batch.substr(static_cast<std::size_t>(skipped)), limits.piece_bytes);
      run_tasks(std::ssize(pieces), [&](std::int64_t i) {
        const std::string_view piece = pieces[static_cast<std::size_t>(i)];
        visit(piece, offset + (piece.data() - batch.data()));
      });
      offset += size;
      after_batch(consumed());
    }
  }

  std::int64_t most_text_bytes() const override {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - 1,
                                                             static_cast<std::uint64_t>(file_.size()) * kBestCompression)) +
           1;
  }
  bool is_seekable() const override { return false; }

 private:
  static constexpr std::int64_t kCompressed = 1 << 18;  ///< compressed bytes read at a time

  /// Bytes of the file that zlib has taken.
  std::int64_t consumed() const { return fetched_ - static_cast<std::int64_t>(stream_.avail_in); }

  std::string_view last_line() {
    if (filled_ == 0) return {};
    if (filled_ == buffer_.size()) buffer_.resize(filled_ + 1);
    buffer_[filled_++] = '\n';
    given_ = filled_;
    return {buffer_.data(), given_};
  }

  void fetch() {
    const std::int64_t size = std::min(std::ssize(compressed_), file_.size() - fetched_);
    file_.read(compressed_.data(), fetched_, size);
    fetched_ += size;
    stream_.next_in = reinterpret_cast<Bytef*>(compressed_.data());
    stream_.avail_in = static_cast<uInt>(size);
  }

  /// Decompresses until the buffer is full or the file ends.
  void fill() {
    while (filled_ < buffer_.size() && !ended_) {
      if (stream_.avail_in == 0) fetch();
      const auto wanted = static_cast<uInt>(buffer_.size() - filled_);
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data() + filled_);
      stream_.avail_out = wanted;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      filled_ += wanted - stream_.avail_out;
      const bool all_taken = consumed() == file_.size();
      if (status == Z_STREAM_END) {
        ended_ = all_taken;
        if (!ended_) inflateReset(&stream_);
      } else if (status != Z_OK || (all_taken && stream_.avail_out > 0)) {
        fail_gzip(status);
      }
    }
  }

  [[noreturn]] void fail_gzip(int status) const {
    if (status == Z_MEM_ERROR)
      throw Error(ErrorKind::resources, fmt::format("{}: no memory to decompress it", file_.path().string()));
    if (consumed() == file_.size() && (status == Z_OK || status == Z_BUF_ERROR))
      fail(file_.path(), fmt::format("the gzip data ends too early, after {} bytes; the file is truncated, copy or "
                                     "write it again",
                                     file_.size()));
    fail(file_.path(), fmt::format("the gzip data is damaged near byte {} of {} ({}); copy or write it again", consumed(),
                                   file_.size(), stream_.msg != nullptr ? stream_.msg : "unexpected data"));
  }

  z_stream stream_{};
  Buffer compressed_;
  std::int64_t fetched_ = 0;  ///< bytes of the file read so far
  Buffer buffer_;
  std::size_t given_ = 0;   ///< end of the batch in the buffer
  std::size_t filled_ = 0;  ///< end of the text in the buffer
  bool ended_ = false;
};

/// The fault nearest to the start of the text, of all that visits have met so far.
class FirstFault {
 public:
  /// Visits the piece unless a fault before it is known.
  void visit(std::string_view piece, std::int64_t offset, const std::function<void(std::string_view)>& visit) {
    if (offset > at_.load(std::memory_order_relaxed)) return;
    try {
      visit(piece);
    } catch (LineFault& fault) {
      const std::int64_t at = offset + (fault.at - piece.data());
      const std::scoped_lock lock(mutex_);
      if (at >= at_) return;
      at_ = at;
      first_ = {at, std::move(fault.what), std::move(fault.setting)};
    }
  }
  void throw_if_any() const {
    if (at_ != kNone) throw first_;
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> at_{kNone};  ///< in the text
  TextFault first_{};
  std::mutex mutex_;
};

}  // namespace

void ReadLimits::require_memory(std::int64_t bytes, const std::filesystem::path& path) const {
  if (bytes > memory_bytes)
    throw Error(ErrorKind::resources,
                fmt::format("{}: reading it needs {} of memory but only {} is allowed", path.string(),
                            human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(memory_bytes))));
  require_host_memory(bytes, fmt::format("reading {}", path.string()).c_str());
}

void ReadLimits::require_budget(std::int64_t bytes, const InputFile& file) const {
  require_memory(bytes, file.path());
  require_plausible(bytes, file);
}

void ReadLimits::require_plausible(std::int64_t bytes, const InputFile& file) {
  require_plausible(bytes, file.path(), file.size());
}

void ReadLimits::require_plausible(std::int64_t bytes, const std::filesystem::path& path, std::int64_t file_bytes) {
  const std::int64_t budget = kFreeBytes + kBytesPerByte * std::min(file_bytes, std::int64_t{1} << 50);
  if (bytes > budget)
    fail(path, fmt::format(
                   "its {} ask for {} of memory; a file of this size may ask for {}. Check the sizes in it, leave out empty "
                   "rows, or store it without compression",
                   human_bytes(static_cast<double>(file_bytes)), human_bytes(static_cast<double>(bytes)),
                   human_bytes(static_cast<double>(budget))));
}

std::unique_ptr<TextSource> TextSource::open(const std::filesystem::path& path, const ReadLimits& limits) {
  if (path.extension() == ".gz") return std::make_unique<GzipText>(path, limits);
  return std::make_unique<PlainText>(path, limits);
}

LineCursor::LineCursor(TextSource& source) : source_(source) { source_.rewind(); }

std::string_view LineCursor::next() {
  if (rest_.empty()) rest_ = source_.next();
  if (rest_.empty()) return {};
  const std::string_view line = rest_.substr(0, rest_.find('\n') + 1);
  rest_.remove_prefix(line.size());
  offset_ += static_cast<std::int64_t>(line.size());
  ++line_;
  return line;
}

void LineCursor::fail(const std::string& what, const std::string& setting) const {
  const std::string path = source_.file().path().string();
  throw Error(ErrorKind::input, fmt::format("{}: {}", line_ == 0 ? path : fmt::format("{}:{}", path, line_), what), setting);
}

void fail_at(TextSource& source, const TextFault& fault) {
  std::int64_t line = 1, offset = fault.offset;
  source.rewind();
  for (std::string_view batch = source.next(); !batch.empty(); batch = source.next()) {
    const auto counted = static_cast<std::size_t>(std::min(offset, static_cast<std::int64_t>(batch.size())));
    line += std::count(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(counted), '\n');
    offset -= static_cast<std::int64_t>(counted);
    if (offset == 0) break;
  }
  throw Error(ErrorKind::input, fmt::format("{}:{}: {}", source.file().path().string(), line, fault.what), fault.setting);
}

void for_each_piece(TextSource& source, const TextRange& range, const ReadLimits& limits,
                    const std::function<void(std::string_view)>& visit,
                    const std::function<void(std::int64_t)>& after_batch) {
  FirstFault fault;
  source.visit_pieces(
      range, limits, [&](std::string_view piece, std::int64_t offset) { fault.visit(piece, offset, visit); },
      [&](std::int64_t consumed) {
        fault.throw_if_any();
        after_batch(consumed);
      });
}

void for_each_piece(TextSource& source, std::int64_t from, const ReadLimits& limits, std::string_view phase,
                    const Progress& progress, const std::function<void(std::string_view)>& visit) {
  try {
    for_each_piece(source, TextRange{from, from}, limits, visit,
                   [&](std::int64_t consumed) { report(progress, phase, consumed, source.file().size()); });
  } catch (const TextFault& fault) {
    fail_at(source, fault);
  }
}

}  // namespace shardmat
