#include "partition/hdf5/run_helper.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

using Clock = std::chrono::steady_clock;

class Descriptor {
 public:
  explicit Descriptor(int id) : id_(id) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int id() const { return id_; }
  void close() {
    if (id_ >= 0) ::close(id_);
    id_ = -1;
  }

 private:
  int id_;
};

[[noreturn]] void fail_start(const std::string& name, const std::string& why) {
  throw Error(ErrorKind::resources, fmt::format("cannot start the helper program {}: {}", name, why));
}

/// The folder of the program or shared library that has this code, which may have been moved since it was installed.
std::filesystem::path own_folder() {
  Dl_info info{};
  std::error_code error;
  const bool found = ::dladdr(reinterpret_cast<void*>(&fail_start), &info) != 0;
  const std::filesystem::path file = found ? std::filesystem::canonical(info.dli_fname, error) : std::filesystem::path();
  return file.has_parent_path() ? file.parent_path() : "/";
}

std::string find_program(const std::string& name) {
  if (const char* chosen = std::getenv("SHARDMAT_H5CHECK"); chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code error;
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::vector<std::filesystem::path> places{here, here.parent_path() / "libexec" / "shardmat",
                                                  own_folder().parent_path() / "libexec" / "shardmat",
                                                  SHARDMAT_HELPERS_INSTALLED, SHARDMAT_HELPERS_BUILT};
  for (const std::filesystem::path& place : places)
    if (::access((place / name).c_str(), X_OK) == 0) return (place / name).string();
  fail_start(name, fmt::format("it is in none of {}; install it there, or say where it is by SHARDMAT_H5CHECK",
                               fmt::join(std::vector<std::string>(places.begin(), places.end()), ", ")));
}

/// Of this process's environment, what a program needs to be loaded.
std::vector<std::string> small_environment() {
  std::vector<std::string> variables;
  for (const char* name : {"LD_LIBRARY_PATH", "PATH"})
    if (const char* value = std::getenv(name); value != nullptr) variables.push_back(fmt::format("{}={}", name, value));
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Its own process group, so that a Ctrl-C at the terminal reaches this process alone, and signals as at the start.
pid_t spawn(const std::string& program, const std::vector<std::string>& arguments, int input, int output) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words{program}, environment = small_environment();
  words.insert(words.end(), arguments.begin(), arguments.end());
  pid_t child = -1;
  const int error =
      ::posix_spawn(&child, program.c_str(), &files, &attributes, pointers(words).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) fail_start(program, std::strerror(error));
  return child;
}

enum class Output { complete, late, too_long };

/// Takes the output up to its end, the deadline, or `most` bytes.
Output read_output(int from, Clock::time_point deadline, std::int64_t most, std::string& output) {
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{from, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(0, left)));
    // What is there already counts, also if this process was stopped meanwhile.
    if (ready == 0 && left <= 0) return Output::late;
    if (ready <= 0) continue;
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Output::complete;
    if (static_cast<std::int64_t>(output.size()) + got > most) return Output::too_long;
    output.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

/// Kills and collects the program where nobody has done so.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  ~Child() {
    if (id_ < 0) return;
    ::kill(id_, SIGKILL);
    collect(Clock::now() + kMostSecondsToDie);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill() { ::kill(id_, SIGKILL); }

  /// True with its status once it has ended; -1 if that is not to be known. False at the deadline.
  bool collect(Clock::time_point deadline, int* status = nullptr) {
    for (;;) {
      int ended_with = -1;
      const pid_t ended = ::waitpid(id_, &ended_with, WNOHANG);
      if (ended == id_ || (ended < 0 && errno != EINTR)) {  // or someone else waits for all children
        id_ = -1;
        if (status != nullptr) *status = ended < 0 ? -1 : ended_with;
        return true;
      }
      if (Clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  /// A process in a call to a file system that hangs does not die even then.
  static constexpr std::chrono::seconds kMostSecondsToDie{2};

 private:
  pid_t id_;
};

}  // namespace

HelperResult run_helper(const std::string& name, const std::vector<std::string>& arguments, int input,
                        const HelperLimits& limits) {
  const std::string program = find_program(name);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_start(name, std::strerror(errno));
  Descriptor from(ends[0]), to(ends[1]);
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.seconds));
  Child child(spawn(program, arguments, input, to.id()));
  to.close();
  HelperResult result;
  const Output output = read_output(from.id(), deadline, limits.output_bytes, result.output);
  result.too_long = output == Output::too_long;
  result.timed_out = output == Output::late;
  if (output != Output::complete) child.kill();
  int status = -1;
  if (!child.collect(std::max(deadline, Clock::now() + Child::kMostSecondsToDie), &status)) {
    result.timed_out = true;
    return result;
  }
  if (status == -1) result.succeeded = !result.output.empty() && result.output.back() == '\n';
  else result.succeeded = output == Output::complete && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (status != -1 && WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.how_it_ended = result.signal == 0 ? "failed" : fmt::format("crashed ({})", ::strsignal(result.signal));
  return result;
}

}  // namespace shardmat
