#include "partition/readers/text_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/narrow.h"
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

std::int64_t change_time_ns(const struct stat& status) {
  return status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

class PlainText final : public TextSource {
 public:
  PlainText(const std::filesystem::path& path, const ReadLimits& limits)
      : TextSource(path), batch_bytes_(static_cast<std::size_t>(std::max<std::int64_t>(1, limits.batch_bytes))) {
    const std::string_view text = file_.bytes();
    if (text.substr(0, 2) == "\x1f\x8b") fail(path, "it is gzip data; rename it so that its name ends in .gz");
    const std::size_t last = text.rfind('\n');
    whole_ = last == std::string_view::npos ? 0 : last + 1;
    if (text.size() - whole_ > static_cast<std::size_t>(kLongestLine)) fail_long_line(path);
    if (whole_ < text.size()) tail_ = std::string(text.substr(whole_)) + '\n';
  }

  void rewind() override {
    position_ = 0;
    tail_given_ = false;
  }

  std::string_view next() override {
    const std::string_view text = file_.bytes();
    if (position_ < whole_) {
      const std::size_t begin = position_;
      position_ = batch_bytes_ >= whole_ - begin ? whole_ : text.find('\n', begin + batch_bytes_ - 1) + 1;
      file_.will_need(position_, batch_bytes_);
      return text.substr(begin, position_ - begin);
    }
    if (tail_given_) return {};
    tail_given_ = true;
    return tail_;
  }

  std::int64_t consumed() const override {
    return static_cast<std::int64_t>(tail_given_ ? file_.bytes().size() : position_);
  }
  std::int64_t most_text_bytes() const override { return static_cast<std::int64_t>(file_.bytes().size()) + 1; }

 private:
  std::size_t batch_bytes_;
  std::size_t whole_ = 0;     ///< end of the last line that has its '\n'
  std::size_t position_ = 0;  ///< start of the next batch, at most whole_
  std::string tail_;          ///< the last line if it has no '\n' in the file
  bool tail_given_ = false;
};

/// Concatenated gzip members are one text, as gzip itself has it.
class GzipText final : public TextSource {
 public:
  GzipText(const std::filesystem::path& path, const ReadLimits& limits) : TextSource(path) {
    const std::string_view data = file_.bytes();
    if (data.empty()) fail(path, "the file is empty; copy or write it again");
    if (data.substr(0, std::min<std::size_t>(2, data.size())) != std::string_view("\x1f\x8b").substr(0, data.size()))
      fail(path, "it is not gzip data; rename it without .gz if it is plain text");
    const std::int64_t enough = std::min(limits.batch_bytes / 4, 16 * static_cast<std::int64_t>(data.size()));
    buffer_.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(enough, 64, kLongestLine)));
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw Error(ErrorKind::resources, "zlib cannot start: out of memory");
  }
  ~GzipText() override { inflateEnd(&stream_); }
  GzipText(const GzipText&) = delete;
  GzipText& operator=(const GzipText&) = delete;

  void rewind() override {
    inflateReset(&stream_);
    stream_.avail_in = 0;
    input_ = given_ = filled_ = 0;
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

  std::int64_t consumed() const override { return static_cast<std::int64_t>(input_); }
  std::int64_t most_text_bytes() const override {
    return static_cast<std::int64_t>(file_.bytes().size()) * kBestCompression + 1;
  }

 private:
  std::string_view last_line() {
    if (filled_ == 0) return {};
    if (filled_ == buffer_.size()) buffer_.resize(filled_ + 1);
    buffer_[filled_++] = '\n';
    given_ = filled_;
    return {buffer_.data(), given_};
  }

  /// Decompresses until the buffer is full or the file ends.
  void fill() {
    const std::string_view data = file_.bytes();
    while (filled_ < buffer_.size() && !ended_) {
      const auto offered = static_cast<uInt>(std::min<std::size_t>(data.size() - input_, 1 << 30));
      const auto wanted = static_cast<uInt>(buffer_.size() - filled_);
      // zlib's interface is not const-correct; it does not write to its input.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data() + input_));
      stream_.avail_in = offered;
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data() + filled_);
      stream_.avail_out = wanted;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      input_ += offered - stream_.avail_in;
      filled_ += wanted - stream_.avail_out;
      if (status == Z_STREAM_END) {
        ended_ = input_ == data.size();
        if (!ended_) inflateReset(&stream_);
      } else if (status != Z_OK || (input_ == data.size() && stream_.avail_out > 0)) {
        fail_gzip(status);
      }
    }
  }

  [[noreturn]] void fail_gzip(int status) const {
    const std::size_t size = file_.bytes().size();
    if (status == Z_MEM_ERROR)
      throw Error(ErrorKind::resources, fmt::format("{}: no memory to decompress it", file_.path().string()));
    if (input_ == size && (status == Z_OK || status == Z_BUF_ERROR))
      fail(file_.path(), fmt::format("the gzip data ends too early, after {} bytes; the file is truncated, copy or "
                                     "write it again",
                                     size));
    fail(file_.path(), fmt::format("the gzip data is damaged near byte {} of {} ({}); copy or write it again", input_, size,
                                   stream_.msg != nullptr ? stream_.msg : "unexpected data"));
  }

  z_stream stream_{};
  HostVector<char> buffer_;
  std::size_t input_ = 0;   ///< bytes of the file given to zlib
  std::size_t given_ = 0;   ///< end of the batch in the buffer
  std::size_t filled_ = 0;  ///< end of the text in the buffer
  bool ended_ = false;
};

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

[[noreturn]] void fail_at(TextSource& source, std::int64_t offset, const std::string& what) {
  std::int64_t line = 1;
  source.rewind();
  for (std::string_view batch = source.next(); !batch.empty(); batch = source.next()) {
    const auto counted = static_cast<std::size_t>(std::min(offset, static_cast<std::int64_t>(batch.size())));
    line += std::count(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(counted), '\n');
    offset -= static_cast<std::int64_t>(counted);
    if (offset == 0) break;
  }
  throw Error(ErrorKind::input, fmt::format("{}:{}: {}", source.file().path().string(), line, what));
}

/// Visits the pieces in parallel; throws the first fault by position. `offset` is where the batch starts in
/// the text.
void visit_batch(TextSource& source, std::string_view batch, std::int64_t offset, const ReadLimits& limits,
                 const std::function<void(std::string_view)>& visit) {
  const std::vector<std::string_view> pieces = split(batch, limits.piece_bytes);
  std::vector<LineFault> faults(pieces.size(), LineFault{nullptr, {}});
  std::atomic<std::int64_t> first_wrong{static_cast<std::int64_t>(pieces.size())};
  const auto visit_piece = [&](std::int64_t i) {
    if (i > first_wrong.load(std::memory_order_relaxed)) return;
    try {
      visit(pieces[static_cast<std::size_t>(i)]);
    } catch (LineFault& fault) {
      faults[static_cast<std::size_t>(i)] = std::move(fault);
      std::int64_t known = first_wrong.load();
      while (i < known && !first_wrong.compare_exchange_weak(known, i)) {
      }
    }
  };
  if (pieces.size() == 1) visit_piece(0);  // small files need no threads
  else parallel_tasks(static_cast<std::int64_t>(pieces.size()), visit_piece);
  const auto wrong = static_cast<std::size_t>(first_wrong.load());
  if (wrong < pieces.size()) fail_at(source, offset + (faults[wrong].at - batch.data()), faults[wrong].what);
}

}  // namespace

void ReadLimits::require_memory(std::int64_t bytes, const std::filesystem::path& path) const {
  if (bytes > memory_bytes)
    throw Error(ErrorKind::resources,
                fmt::format("{}: reading it needs {} of memory but only {} is allowed", path.string(),
                            human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(memory_bytes))));
  require_host_memory(bytes, fmt::format("reading {}", path.string()).c_str());
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  struct stat status {};
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const int error = errno;
  if (descriptor_ < 0)
    fail(path, error == ENOENT ? std::string("there is no such file; check the path")
                               : fmt::format("it cannot be opened: {}", std::strerror(error)));
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    fail(path, known && S_ISDIR(status.st_mode) ? "it is a directory; give a file"
                                                : "it is not a regular file; write its data to a file first");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  changed_ns_ = change_time_ns(status);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) {
    const int reason = errno;
    ::close(descriptor_);
    throw Error(ErrorKind::resources,
                fmt::format("{}: it cannot be mapped into memory: {}", path.string(), std::strerror(reason)));
  }
  data_ = static_cast<const char*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
  ::close(descriptor_);
}

void MappedFile::will_need(std::size_t begin, std::size_t size) const {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (begin >= size_) return;
  const std::size_t from = begin / page * page;
  ::madvise(const_cast<char*>(data_) + from, std::min(size, size_ - begin) + (begin - from), MADV_WILLNEED);
}

void MappedFile::require_unchanged() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || static_cast<std::size_t>(status.st_size) != size_ ||
      change_time_ns(status) != changed_ns_)
    fail(path_, "the file was changed while it was read; read it again when its writer is done");
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

void LineCursor::fail(const std::string& what) const {
  throw Error(ErrorKind::input, fmt::format("{}:{}: {}", source_.file().path().string(), line_, what));
}

void for_each_piece(TextSource& source, std::int64_t from, const ReadLimits& limits, std::string_view phase,
                    const Progress& progress, const std::function<void(std::string_view)>& visit) {
  const auto total = static_cast<std::int64_t>(source.file().bytes().size());
  std::int64_t offset = 0;
  source.rewind();
  for (std::string_view batch = source.next(); !batch.empty(); batch = source.next()) {
    const auto size = static_cast<std::int64_t>(batch.size());
    const std::int64_t skipped = std::clamp<std::int64_t>(from - offset, 0, size);
    visit_batch(source, batch.substr(static_cast<std::size_t>(skipped)), offset + skipped, limits, visit);
    offset += size;
    report(progress, phase, source.consumed(), total);
  }
}

}  // namespace shardmat
