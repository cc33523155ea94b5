#include "tools/serve/ranks/worker_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/words/old_logs.h"
#include "tools/serve/words/utc.h"

namespace shardmat::serve {
namespace {

/// Longer lines are cut.
constexpr std::size_t kMostLineBytes = 16 << 10;
/// Reads at a time: a rank that prints without end leaves the thread to others.
constexpr int kMostReads = 16;

int open_file(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (descriptor < 0) throw Error(ErrorKind::resources, fmt::format("{}: {}", file.string(), std::strerror(errno)), "state");
  return descriptor;
}

std::string with_time(std::string_view line) { return fmt::format("{} {}\n", utc(seconds_since_1970()), line); }

/// The whole number behind the first `words` in a line.
std::optional<int> number_behind(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  int number = 0;
  const char* const first = line.data() + at + words.size();
  if (std::from_chars(first, line.data() + line.size(), number).ptr == first) return std::nullopt;
  return number;
}

}  // namespace

std::optional<SignalledRank> signalled_rank(std::string_view line) {
  const auto rank = number_behind(line, "process rank "), signal = number_behind(line, "exited on signal ");
  if (!rank || !signal) return std::nullopt;
  return SignalledRank{*rank, *signal};
}

WorkerLog::WorkerLog(EventLoop& loop, const std::filesystem::path& file, std::uint64_t most_bytes)
    : loop_(loop),
      file_(file),
      most_bytes_(most_bytes),
      writer_(open_file(file),
              {[](std::uint64_t lost) { return with_time(fmt::format("{} lines of this log were lost", lost)); }}) {}

WorkerLog::~WorkerLog() {
  read();
  close_pipe();
}

void WorkerLog::close_pipe() {
  watch_.reset();
  if (pipe_ >= 0) close(std::exchange(pipe_, -1));
  if (!rest_.empty()) take(std::exchange(rest_, {}));
}

int WorkerLog::open_pipe() {
  read();
  close_pipe();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorKind::resources, fmt::format("a pipe for the ranks' log: {}", std::strerror(errno)), "state");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  pipe_ = ends[0];
  last_message_.clear(), signalled_.reset(), is_empty_ = true;
  watch_ = std::make_unique<ReadWatch>(loop_, pipe_, [this] { read(); });
  return ends[1];
}

void WorkerLog::note(std::string_view line) { writer_.write(with_time(line)); }

void WorkerLog::read() {
  char bytes[4096];
  for (int i = 0; pipe_ >= 0 && i < kMostReads; ++i) {
    const ssize_t size = ::read(pipe_, bytes, sizeof bytes);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return close_pipe();
    rest_.append(bytes, static_cast<std::size_t>(size));
    std::size_t begin = 0;
    for (std::size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
      take(std::string_view(rest_).substr(begin, end - begin));
    rest_.erase(0, begin);
    if (rest_.size() <= kMostLineBytes) continue;
    take(rest_);
    rest_.clear();
  }
}

void WorkerLog::take(std::string_view line) {
  constexpr std::string_view kOwn = "shardmat: ";
  is_empty_ = false;
  if (line.starts_with(kOwn)) last_message_ = line.substr(kOwn.size());
  if (auto found = signalled_rank(line)) signalled_ = found;
  std::string text = with_time(line);
  if (bytes_ > 0 && bytes_ + text.size() > most_bytes_) begin_anew();
  bytes_ += text.size();
  writer_.write(std::move(text));
}

/// A file that cannot be opened leaves the lines in the old one.
void WorkerLog::begin_anew() {
  bytes_ = 0;
  try {
    keep_old_logs(file_);
    writer_.reopen(open_file(file_));
  } catch (const Error&) {
  }
}

}  // namespace shardmat::serve
