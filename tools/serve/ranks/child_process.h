// Processes: one that this process starts and that does not outlive it, and handles of any process by which it can be
// watched and ended without mistaking it for another one, and which may tell how it ended.
//
// Threads: one at a time. The thread that starts a child must live as long as the child should.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace shardmat::serve {

/// How a process ended: by a signal, or with an exit code.
struct ProcessEnd {
  int signal = 0;  ///< 0: none
  int exit_code = 0;

  /// "signal 9 (Killed)", "exit code 1".
  std::string text() const;
};

/// A handle of a process that stays right when the process has ended. Move-only.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  /// Empty if there is no such process.
  explicit ProcessHandle(pid_t process);
  ~ProcessHandle();
  ProcessHandle(ProcessHandle&& other) noexcept;
  ProcessHandle& operator=(ProcessHandle&& other) noexcept;

  explicit operator bool() const { return descriptor_ >= 0; }
  /// Can be read once the process has ended.
  int descriptor() const { return descriptor_; }
  bool ended() const;
  void signal(int number) const;

  /// How a process ended that need not be a child of this one. Linux tells it from 6.15 on, once the parent has taken note.
  struct Told {
    bool later = false;             ///< not known yet: ask again
    std::optional<ProcessEnd> end;  ///< nothing if it is not known yet, or never will be
  };
  Told how_it_ended() const;

 private:
  int descriptor_ = -1;
};

/// Starts a program in a session of its own, with nothing to read, and with both outputs appended to `log`. It gets SIGTERM
/// when this process ends. Throws Error(resources) if the program cannot be started.
pid_t start_process(const std::vector<std::string>& command, const std::filesystem::path& log);
/// The same, with both outputs going to the descriptor `output`, which stays the caller's.
pid_t start_process(const std::vector<std::string>& command, int output);

/// Takes the exit status of a child that has ended, and says in words how: "exit code 1", "signal 9 (Killed)".
std::string reap(pid_t child);

}  // namespace shardmat::serve
