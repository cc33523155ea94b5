#include "tools/serve/ranks/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat::serve {

ProcessHandle::ProcessHandle(pid_t process) : descriptor_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {}
ProcessHandle::~ProcessHandle() {
  if (descriptor_ >= 0) close(descriptor_);
}
ProcessHandle::ProcessHandle(ProcessHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
ProcessHandle& ProcessHandle::operator=(ProcessHandle&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

bool ProcessHandle::ended() const {
  if (descriptor_ < 0) return true;
  pollfd watched{descriptor_, POLLIN, 0};
  return poll(&watched, 1, 0) > 0;
}

void ProcessHandle::signal(int number) const {
  if (descriptor_ >= 0) syscall(SYS_pidfd_send_signal, descriptor_, number, nullptr, 0);
}

namespace {

/// Of <linux/pidfd.h>, which older headers do not have.
struct PidfdInfo {
  std::uint64_t mask, cgroup;
  std::uint32_t ids[11];
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoExit = 1 << 3;

ProcessEnd end_of(int status) {
  if (WIFSIGNALED(status)) return {WTERMSIG(status), 0};
  return {0, WEXITSTATUS(status)};
}

}  // namespace

ProcessHandle::Told ProcessHandle::how_it_ended() const {
  PidfdInfo info{};
  info.mask = kInfoExit;
  if (descriptor_ < 0 || ioctl(descriptor_, _IOWR(0xFF, 11, PidfdInfo), &info) != 0) return {};
  if ((info.mask & kInfoExit) == 0) return {true, std::nullopt};
  return {false, end_of(info.exit_code)};
}

std::string ProcessEnd::text() const {
  if (signal != 0) return fmt::format("signal {} ({})", signal, strsignal(signal));
  return fmt::format("exit code {}", exit_code);
}

namespace {

/// In the child: becomes the program, or writes the reason to `report`.
[[noreturn]] void become(std::vector<char*>& words, int log, int report, pid_t parent) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, 0), dup2(log, 1), dup2(log, 2);
  syscall(SYS_close_range, 3U, ~0U, 4U /* close on exec */);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  execvp(words[0], words.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(127);
}

}  // namespace

pid_t start_process(const std::vector<std::string>& command, const std::filesystem::path& log) {
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (output < 0) throw Error(ErrorKind::resources, fmt::format("{}: {}", log.string(), std::strerror(errno)), "state");
  const struct Closes {
    int descriptor;
    ~Closes() { close(descriptor); }
  } at_end{output};
  return start_process(command, output);
}

pid_t start_process(const std::vector<std::string>& command, int output) {
  const auto fail = [&](int error) {
    throw Error(ErrorKind::resources, fmt::format("{} cannot be started: {}", command.front(), std::strerror(error)),
                "launcher");
  };
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(errno);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) become(words, output, ends[1], parent);
  const int fork_error = errno;
  close(ends[1]);
  int error = 0;
  const bool failed = child < 0 || read(ends[0], &error, sizeof error) > 0;
  close(ends[0]);
  if (child < 0) fail(fork_error);
  if (failed) {
    waitpid(child, nullptr, 0);
    fail(error);
  }
  return child;
}

std::string reap(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return "unknown";
  return end_of(status).text();
}

}  // namespace shardmat::serve
