#include "runtime/service/engine/control.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "runtime/service/engine/front_end.h"

namespace shardmat::service {
namespace {

/// How often a rank says that it is alive while it carries out a command.
constexpr int kAliveMilliseconds = 500;
/// How long a rank waits for the next command without sleeping.
constexpr std::chrono::microseconds kAwake{200};

}  // namespace

Control::Control(int socket, bool has_core) : socket_(socket), stop_(eventfd(0, EFD_CLOEXEC)), has_core_(has_core) {
  watcher_ = std::thread([this] { watch(); });
}

Control::~Control() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof one);
  if (watcher_.joinable()) watcher_.join();
  close(stop_);
  close(socket_);
}

Command Control::next() {
  while (true) {
    if (const auto message = reader_.next()) {
      Command command = decode_command(*message);
      working_on_ = command.number;
      const auto* product = std::get_if<Multiply>(&command.what);
      const bool was_lone = std::exchange(lone_, product == nullptr || product->columns.size() == 1);
      comes_soon_ = was_lone && lone_ && Clock::now() < answered_ + kAwake;
      return command;
    }
    receive();
  }
}

/// Reads what there is, and waits for it.
void Control::receive() {
  while (has_core_ && comes_soon_ && Clock::now() < answered_ + kAwake) {
    if (!reader_.receive(socket_, FrameReader::Wait::no)) leave_front_end();
    if (reader_.has_more()) return;
    sched_yield();
  }
  if (!reader_.receive(socket_)) leave_front_end();
}

void Control::answer(decltype(Answer::what) what) {
  send({working_on_.exchange(0), std::move(what)});
  answered_ = Clock::now();
}

void Control::send(const Answer& answer) {
  const std::lock_guard lock(sending_);
  if (!send_frame(socket_, encode(answer))) leave_front_end();
}

void Control::watch() {
  std::array<pollfd, 2> watched{pollfd{socket_, POLLRDHUP, 0}, pollfd{stop_, POLLIN, 0}};
  std::uint64_t before = 0;
  while (true) {
    const int events = poll(watched.data(), watched.size(), kAliveMilliseconds);
    if (events < 0 && errno != EINTR) leave_front_end();
    if (watched[1].revents != 0) return;
    if (watched[0].revents != 0) leave_front_end();
    const std::uint64_t now = working_on_, deferred = deferred_;
    if (events == 0 && now != 0 && now == before) send({now, Alive{}});
    else if (events == 0 && deferred != 0) send({deferred, Alive{}});
    before = now;
  }
}

}  // namespace shardmat::service
