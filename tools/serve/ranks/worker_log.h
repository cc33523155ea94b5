// What the ranks and their launcher print: each line goes to a file with the time. The last message of a rank explains why
// it ended, and the launcher may name a signal.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tools/serve/http/event_loop.h"
#include "tools/serve/words/log_writer.h"

namespace shardmat::serve {

/// A rank that a signal ended, as Open MPI's mpirun says it.
struct SignalledRank {
  int rank = -1, signal = 0;
};
/// "mpirun noticed that process rank 1 with PID 7 on node a exited on signal 9 (Killed)."
std::optional<SignalledRank> signalled_rank(std::string_view line);

class WorkerLog {
 public:
  /// Appends to the file, and begins it anew above `most_bytes`; see keep_old_logs(). Throws Error(resources) if it cannot
  /// be opened.
  WorkerLog(EventLoop& loop, const std::filesystem::path& file, std::uint64_t most_bytes = 16 << 20);
  ~WorkerLog();
  WorkerLog(const WorkerLog&) = delete;
  WorkerLog& operator=(const WorkerLog&) = delete;

  /// A descriptor for the outputs of a new launcher, which the caller closes once it has started. What an earlier one said
  /// is forgotten. Throws Error(resources) if no descriptor is left.
  int open_pipe();

  /// Writes a line of the service's own, with the time. It counts as nothing that a rank said.
  void note(std::string_view line);
  /// Takes what has come so far.
  void read();
  /// The last line that begins with "shardmat: ", without this; empty if there was none.
  const std::string& last_message() const { return last_message_; }
  const std::optional<SignalledRank>& signalled() const { return signalled_; }
  bool is_empty() const { return is_empty_; }
  const std::filesystem::path& file() const { return file_; }
  std::uint64_t lost_lines() const { return writer_.dropped(); }

 private:
  void take(std::string_view line);
  void begin_anew();
  void close_pipe();

  EventLoop& loop_;
  std::filesystem::path file_;
  std::uint64_t most_bytes_, bytes_ = 0;  ///< of the file
  LogWriter writer_;
  int pipe_ = -1;
  std::unique_ptr<ReadWatch> watch_;
  std::string rest_;  ///< of a line whose end has not come
  std::string last_message_;
  std::optional<SignalledRank> signalled_;
  bool is_empty_ = true;
};

}  // namespace shardmat::serve
