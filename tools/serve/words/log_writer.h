// Writes the lines of a log on a thread of its own. A pipe that nobody reads, or a disk that is slow or full, never holds up
// the thread of the event loop: lines wait in a bounded queue, and those that find no room are counted.
//
// Threads: any thread, several at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace shardmat::serve {

class LogWriter {
 public:
  struct Words {
    /// The line that tells in the log itself how many lines are missing there.
    std::function<std::string(std::uint64_t dropped)> missing;
    /// Called on the writer's thread when a line cannot be written, and the line before could. May be empty.
    std::function<void(const std::string& why)> failed = {};
  };

  /// Takes over the descriptor, which may be one that cannot be written. `most_bytes`: of lines that wait.
  LogWriter(int descriptor, Words words, std::size_t most_bytes = 1 << 20);
  /// Gives the lines that wait a second; those that nobody takes are lost.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// `line` has its end. Never blocks.
  void write(std::string line);
  /// Lines from now on go to this descriptor, which the writer takes over.
  void reopen(int descriptor);
  /// Waits until all lines are written, at most so many seconds.
  void flush(double seconds);
  /// Lines that were not written.
  std::uint64_t dropped() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< shared with the thread, which may hang in a write for ever
};

}  // namespace shardmat::serve
