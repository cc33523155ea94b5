#include "tools/serve/words/log_writer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace shardmat::serve {
namespace {

constexpr double kEndSeconds = 1;

/// A line, or the descriptor to which the following lines go.
struct Item {
  std::string line;
  int descriptor = -1;
};

/// Writes all bytes. Returns how many were written before an error, which errno has.
std::size_t write_all(int descriptor, std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written > 0) {
      done += static_cast<std::size_t>(written);
    } else if (written < 0 && errno == EAGAIN) {  // somebody else set O_NONBLOCK
      pollfd watched{descriptor, POLLOUT, 0};
      poll(&watched, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      break;
    }
  }
  return done;
}

}  // namespace

struct LogWriter::State {
  State(int first_descriptor, Words own_words, std::size_t most)
      : words(std::move(own_words)), most_bytes(most), descriptor(first_descriptor) {}

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return !items.empty() || ending; });
      if (items.empty()) break;
      Item item = std::move(items.front());
      items.pop_front();
      bytes -= item.line.size();
      const std::uint64_t untold = item.line.empty() ? 0 : dropped - told;
      lock.unlock();
      if (item.descriptor >= 0) {
        close(std::exchange(descriptor, item.descriptor));
        partial = failing = false;
      }
      const bool told_now = untold > 0 && put(words.missing(untold));
      const bool written = item.line.empty() || put(item.line);
      lock.lock();
      if (told_now) told += untold;
      if (!written) ++dropped;
      if (items.empty()) changed.notify_all();
    }
    close(descriptor);
    ended = true;
    changed.notify_all();
  }

  /// On the thread. False if not all of the line could be written.
  bool put(const std::string& line) {
    const std::string text = partial ? "\n" + line : line;
    const std::size_t written = write_all(descriptor, text);
    const bool whole = written == text.size();
    const int error = errno;
    if (written > 0) partial = !whole;
    if (!whole && !failing && words.failed) words.failed(std::strerror(error));
    failing = !whole;
    return whole;
  }

  const Words words;
  const std::size_t most_bytes;
  int descriptor;                         ///< the thread's
  bool partial = false, failing = false;  ///< the thread's: the file ends inside a line; the last line was not written

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> items;
  std::size_t bytes = 0;
  std::uint64_t dropped = 0, told = 0;
  bool ending = false, ended = false;
};

LogWriter::LogWriter(int descriptor, Words words, std::size_t most_bytes)
    : state_(std::make_shared<State>(descriptor, std::move(words), most_bytes)) {
  std::thread([state = state_] { state->run(); }).detach();
}

LogWriter::~LogWriter() {
  std::unique_lock lock(state_->mutex);
  state_->ending = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, std::chrono::duration<double>(kEndSeconds), [&] { return state_->ended; });
}

void LogWriter::write(std::string line) {
  const std::lock_guard lock(state_->mutex);
  if (state_->bytes + line.size() > state_->most_bytes) {
    ++state_->dropped;
    return;
  }
  state_->bytes += line.size();
  state_->items.push_back({std::move(line), -1});
  state_->changed.notify_all();
}

void LogWriter::reopen(int descriptor) {
  const std::lock_guard lock(state_->mutex);
  state_->items.push_back({"", descriptor});
  state_->changed.notify_all();
}

void LogWriter::flush(double seconds) {
  std::unique_lock lock(state_->mutex);
  // One that is being written has left the queue: an empty line comes behind it.
  state_->items.push_back({"", -1});
  state_->changed.notify_all();
  state_->changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return state_->items.empty(); });
}

std::uint64_t LogWriter::dropped() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

}  // namespace shardmat::serve
