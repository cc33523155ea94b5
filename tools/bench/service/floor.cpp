#include "tools/bench/service/floor.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/base/error.h"
#include "tools/bench/service/client.h"
#include "tools/bench/service/load.h"

namespace shardmat::tools::service_bench {
namespace {

/// False if the other end has closed. Calls nothing but the kernel: it also runs in a fork of a process with threads.
bool move(int socket, std::byte* data, std::size_t bytes, bool receives) {
  while (bytes > 0) {
    const ssize_t moved = receives ? recv(socket, data, bytes, 0) : send(socket, data, bytes, MSG_NOSIGNAL);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    data += moved, bytes -= static_cast<std::size_t>(moved);
  }
  return true;
}

/// A message begins with its size.
[[noreturn]] void serve_echoes(int socket, std::byte* mapping, std::size_t most) {
  for (;;) {
    if (!move(socket, mapping, sizeof(std::uint64_t), true)) _exit(0);
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, mapping, sizeof bytes);
    if (bytes < sizeof bytes || bytes > most) _exit(1);
    if (!move(socket, mapping + sizeof bytes, bytes - sizeof bytes, true) || !move(socket, mapping, bytes, false)) _exit(0);
  }
}

}  // namespace

Echo::Echo(std::size_t most_bytes) : buffer_(std::max(most_bytes, sizeof(std::uint64_t))) {
  const auto fail = [](const char* what) {
    throw Error(ErrorKind::resources, fmt::format("cannot measure a socket's speed: {}: {}", what, std::strerror(errno)));
  };
  std::memset(static_cast<void*>(buffer_.data()), 1, buffer_.size());
  void* mapping = mmap(nullptr, buffer_.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (mapping == MAP_FAILED) fail("mmap");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
  process_ = fork();
  if (process_ < 0) fail("fork");
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    serve_echoes(ends[1], static_cast<std::byte*>(mapping), buffer_.size());
  }
  munmap(mapping, buffer_.size());
  close(ends[1]);
  socket_ = ends[0];
  seconds(buffer_.size());  // the other process touches its pages
}

Echo::~Echo() {
  close(socket_);
  waitpid(process_, nullptr, 0);
}

double Echo::seconds(std::size_t bytes) {
  const std::uint64_t size = std::clamp(bytes, sizeof(std::uint64_t), buffer_.size());
  std::memcpy(buffer_.data(), &size, sizeof size);
  const double began = now();
  if (!move(socket_, buffer_.data(), size, false) || !move(socket_, buffer_.data(), size, true))
    throw Error(ErrorKind::resources, "the process that sends bytes back has ended");
  return now() - began;
}

double wake_up_seconds(int runs) {
  Echo echo(sizeof(std::uint64_t));
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) times.push_back(echo.seconds(sizeof(std::uint64_t)) / 2);
  return median(std::move(times));
}

}  // namespace shardmat::tools::service_bench
