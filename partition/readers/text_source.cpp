#include "partition/readers/text_source.h"

#include <fmt/format.h>

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
#include "partition/files/compression/compression.h"
#include "partition/files/first_bytes.h"

namespace shardmat {
namespace {

/// A line longer than this means that the file is no text.
constexpr std::int64_t kLongestLine = 16 << 20;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", path.string(), what));
}

[[noreturn]] void fail_long_line(const std::filesystem::path& path) {
  fail(path, fmt::format("there is a line of more than {}, so it is no matrix in text; check that it is the right file",
                         human_bytes(static_cast<double>(kLongestLine))));
}

std::string start_of(const InputFile& file) {
  std::string bytes(static_cast<std::size_t>(std::min<std::int64_t>(8, file.size())), '\0');
  file.read(bytes.data(), 0, std::ssize(bytes));
  return bytes;
}

constexpr char kEndMark = '\x1a';  // Ctrl-Z

/// Where the blanks and Ctrl-Z at the end of the text begin.
std::size_t blank_end_of(std::string_view text) { return text.find_last_not_of(" \t\r\n\x1a") + 1; }  // npos + 1 = 0

/// The length of the text without Ctrl-Z at its end, with which DOS ends files, and without what blanks follow it.
std::size_t without_end_mark(std::string_view text) {
  return std::min(text.size(), text.find(kEndMark, blank_end_of(text)));
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
    const std::string start = start_of(file_);
    if (const Compression* const one = compression_of_bytes(start))
      fail(path, fmt::format("it is {} data; rename it so that its name ends in {}", one->name, one->suffix));
    if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff"))
      fail(path, "it is text in UTF-16; save it in UTF-8 or ASCII");
    size_ = text_bytes();
  }

  void rewind() override { position_ = 0; }

  std::string_view next() override {
    const std::string_view lines = lines_from(position_, position_, std::min(position_ + block_bytes_, size_), block_);
    position_ = std::min(position_ + static_cast<std::int64_t>(lines.size()), size_);
    return lines;
  }

  void visit_pieces(const TextRange& range, const ReadLimits& limits, const PieceVisit& visit,
                    const std::function<void(std::int64_t)>& after_batch) override {
    const std::int64_t batch = std::max<std::int64_t>(1, limits.batch_bytes), last_byte = std::min(range.to, size_);
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

  std::int64_t most_text_bytes() const override { return size_ + 1; }

 private:
  static constexpr std::int64_t kBlock = 1 << 18;  ///< text that next() gives
  static constexpr std::int64_t kTail = 4096;      ///< read at a time from the end, where Ctrl-Z may be
  static constexpr std::int64_t kSlack = 256;      ///< read behind a piece, for the end of its last line

  /// The size of the file without the end marks, however many there are.
  std::int64_t text_bytes() const {
    std::int64_t bytes = file_.size();
    std::string block;
    for (std::int64_t end = file_.size(); end > 0; end -= std::ssize(block)) {
      block.resize(static_cast<std::size_t>(std::min(kTail, end)));
      const std::int64_t start = end - std::ssize(block);
      file_.read(block.data(), start, std::ssize(block));
      const std::size_t blank = blank_end_of(block);
      if (const std::size_t mark = block.find(kEndMark, blank); mark != std::string::npos)
        bytes = start + static_cast<std::int64_t>(mark);
      if (blank > 0) break;
    }
    return bytes;
  }

  /// The lines that begin in [first, last) of the file, the last of them whole. The buffer gets the file from `start` on;
  /// if that is first - 1, lines begin behind a '\n' there or later, else one begins at first.
  std::string_view lines_from(std::int64_t start, std::int64_t first, std::int64_t last, Buffer& buffer) const {
    if (first >= last) return {};
    std::int64_t filled = 0;
    const auto fill = [&](std::int64_t end) {
      end = std::min(end, size_);
      if (const auto needed = static_cast<std::size_t>(end - start) + 1; buffer.size() < needed) buffer.resize(needed);
      file_.read(buffer.data() + filled, start + filled, end - start - filled);
      filled = end - start;
    };
    fill(std::min(last, size_ - kSlack) + kSlack);
    const std::string_view text(buffer.data(), static_cast<std::size_t>(last - start));
    const std::size_t begin = start == first ? 0 : text.find('\n') + 1;  // npos + 1 = 0
    if (start != first && (begin == 0 || begin == text.size())) return {};
    auto search = static_cast<std::size_t>(last - start) - 1;
    while (true) {
      const std::size_t end = std::string_view(buffer.data(), static_cast<std::size_t>(filled)).find('\n', search);
      if (end != std::string_view::npos) return {buffer.data() + begin, end + 1 - begin};
      if (start + filled == size_) break;
      if (filled - static_cast<std::int64_t>(begin) > kLongestLine) fail_long_line(file_.path());
      search = static_cast<std::size_t>(filled);
      fill(start + 2 * filled);
    }
    buffer[static_cast<std::size_t>(filled)] = '\n';  // which the last line of the file lacks
    return {buffer.data() + begin, static_cast<std::size_t>(filled) + 1 - begin};
  }

  std::int64_t block_bytes_;
  std::int64_t size_ = 0;      ///< of the text
  std::int64_t position_ = 0;  ///< start of the next batch
  Buffer block_;
};

/// Concatenated members are one text, as gzip and others have it. Zeros behind the last one are padding.
class CompressedText final : public TextSource {
 public:
  CompressedText(const std::filesystem::path& path, const ReadLimits& limits, const Compression& compression)
      : TextSource(path), compression_(compression) {
    if (file_.size() == 0) fail(path, "the file is empty; copy or write it again");
    const std::string start = start_of(file_);  // a file may end in the middle of it
    if (!std::string_view(start).starts_with(compression.magic) && !compression.magic.starts_with(start))
      fail(path,
           fmt::format("it is not {} data; rename it without {} if it is plain text", compression.name, compression.suffix));
    if (compression.make == nullptr)
      fail(path, fmt::format("this build of shardmat cannot read {} data; decompress the file, or build with the package {}",
                             compression.name, compression.package));
    decompressor_ = compression.make();
    compressed_.resize(static_cast<std::size_t>(std::min(file_.size(), kCompressed)));
    const std::int64_t enough = std::min(limits.batch_bytes / 4, 16 * file_.size());
    buffer_.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(enough, 64, kLongestLine)));
  }

  void rewind() override {
    decompressor_->reset();
    in_ = {};
    fetched_ = text_bytes_ = 0;
    given_ = filled_ = 0;
    ended_ = in_member_ = padded_ = false;
  }

  std::string_view next() override {
    std::move(buffer_.begin() + static_cast<std::ptrdiff_t>(given_), buffer_.begin() + static_cast<std::ptrdiff_t>(filled_),
              buffer_.begin());
    filled_ -= given_;
    given_ = 0;
    while (true) {
      fill();
      const std::string_view text(buffer_.data(), filled_);  // what may be the end marks waits for what follows them
      given_ = text.substr(0, ended_ ? filled_ : without_end_mark(text)).rfind('\n') + 1;  // npos + 1 = 0
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
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() - 1 - kFreeText;
    return std::min(most / kMostExpansion, file_.size()) * kMostExpansion + kFreeText + 1;
  }
  bool is_seekable() const override { return false; }

 private:
  static constexpr std::int64_t kCompressed = 1 << 18;  ///< compressed bytes read at a time

  /// Bytes of the file that were decompressed.
  std::int64_t consumed() const { return fetched_ - std::ssize(in_); }

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
    in_ = {compressed_.data(), static_cast<std::size_t>(size)};
  }

  /// Decompresses until the buffer is full or the file ends.
  void fill() {
    while (filled_ < buffer_.size() && !ended_) {
      if (in_.empty()) fetch();
      if (!in_member_ && skip_padding()) continue;
      in_member_ = true;
      Decompressor::Step step;
      try {
        step = decompressor_->run(in_, buffer_.data() + filled_, buffer_.size() - filled_);
      } catch (const DamagedData& damage) {
        fail_data(fmt::format("is damaged near byte {} of {} ({}); copy", consumed(), file_.size(), damage.what));
      }
      in_.remove_prefix(step.taken);
      filled_ += step.given;
      text_bytes_ += static_cast<std::int64_t>(step.given);
      if (text_bytes_ > most_text_bytes())
        fail_data("has more text than any matrix of this size; check that it is the right file, or decompress");
      const bool all_taken = consumed() == file_.size();
      if (step.member_ended) end_member(all_taken);
      else if (all_taken && filled_ < buffer_.size())
        fail_data(fmt::format("ends too early, after {} bytes; the file is truncated, copy", file_.size()));
      else if (step.taken == 0 && step.given == 0 && !in_.empty())
        fail_data(fmt::format("is damaged near byte {} of {}; copy", consumed(), file_.size()));
    }
  }

  void end_member(bool all_taken) {
    in_member_ = false;
    if (all_taken) end_text();
    else decompressor_->reset();
  }

  /// Between members; true if it took zeros or the file ended.
  bool skip_padding() {
    if (consumed() == 0 || (!padded_ && in_.front() != '\0')) return false;
    padded_ = true;
    in_.remove_prefix(std::min(in_.size(), in_.find_first_not_of('\0')));
    if (!in_.empty())
      fail_data(
          fmt::format("is damaged near byte {} of {} (data behind a padding of zeros); copy", consumed(), file_.size()));
    if (consumed() == file_.size()) end_text();
    return true;
  }

  void end_text() {
    ended_ = true;
    filled_ = given_ + without_end_mark({buffer_.data() + given_, filled_ - given_});
  }

  [[noreturn]] void fail_data(const std::string& what) const {
    fail(file_.path(), fmt::format("the {} data {} or write it again", compression_.name, what));
  }

  const Compression& compression_;
  std::unique_ptr<Decompressor> decompressor_;
  Buffer compressed_;
  std::string_view in_;       ///< of compressed_, not yet decompressed
  std::int64_t fetched_ = 0;  ///< bytes of the file read so far
  std::int64_t text_bytes_ = 0;
  Buffer buffer_;
  std::size_t given_ = 0;   ///< end of the batch in the buffer
  std::size_t filled_ = 0;  ///< end of the text in the buffer
  bool ended_ = false, in_member_ = false, padded_ = false;
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
  if (const Compression* const one = compression_of(path)) return std::make_unique<CompressedText>(path, limits, *one);
  return std::make_unique<PlainText>(path, limits);
}

LineCursor::LineCursor(TextSource& source) : source_(source) { source_.rewind(); }

std::string_view LineCursor::next() {
  if (rest_.empty()) rest_ = source_.next();
  if (rest_.empty()) return {};
  std::string_view line = rest_.substr(0, rest_.find('\n') + 1);
  rest_.remove_prefix(line.size());
  offset_ += static_cast<std::int64_t>(line.size());
  ++line_;
  if (line_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
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
      range, limits,
      [&](std::string_view piece, std::int64_t offset) {
        const bool marked = offset == 0 && piece.starts_with(kByteOrderMark);
        if (marked) piece.remove_prefix(kByteOrderMark.size());
        fault.visit(piece, marked ? std::ssize(kByteOrderMark) : offset, visit);
      },
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
