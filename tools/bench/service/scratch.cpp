#include "tools/bench/service/scratch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/base/error.h"

namespace shardmat::tools::service_bench {
namespace {

/// The service that this process leaves behind when it is killed ends within seconds, and writes until then.
constexpr const char* kClean = "trap '' INT TERM HUP; read -r end || sleep 5; rm -rf \"$1\"";

}  // namespace

Scratch::Scratch() {
  std::string name = (std::filesystem::temp_directory_path() / "shardmat-bench-XXXXXX").string();
  const auto fail = [&] {
    throw Error(ErrorKind::resources, fmt::format("cannot make the folder {}: {}", name, std::strerror(errno)));
  };
  if (mkdtemp(name.data()) == nullptr) fail();
  path_ = name;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  std::string shell = "sh", option = "-c", script = kClean;
  char* words[] = {shell.data(), option.data(), script.data(), shell.data(), name.data(), nullptr};
  errno = posix_spawn(&cleaner_, "/bin/sh", &actions, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[0]);
  pipe_ = ends[1];
  if (errno != 0) fail();
}

Scratch::~Scratch() {
  [[maybe_unused]] const ssize_t written = write(pipe_, "done\n", 5);
  close(pipe_);
  waitpid(cleaner_, nullptr, 0);
}

}  // namespace shardmat::tools::service_bench
