#include "runtime/service/engine/control.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "comm/communicator.h"
#include "comm/mpi_session.h"

namespace shardmat::service {
namespace {

/// How often a rank says that it is alive while it carries out a command.
constexpr int kAliveMilliseconds = 500;
/// How long a rank waits for the next command without sleeping.
constexpr std::chrono::microseconds kAwake{200};

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool fits = path.size() < sizeof address.sun_path;
  if (fits) std::memcpy(address.sun_path, path.c_str(), path.size());
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fits && descriptor >= 0 && connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return descriptor;
  const char* why = fits ? std::strerror(errno) : "the path is too long for a socket";
  if (descriptor >= 0) close(descriptor);
  throw Error(ErrorKind::resources, fmt::format("no service listens on {} ({}); it starts its workers itself", path, why),
              "control");
}

/// The front end is gone, or does not want this rank any more.
[[noreturn]] void leave() { MpiSession::leave(static_cast<int>(ErrorKind::rank_lost)); }

}  // namespace

Control::Control(const std::string& path, const Hello& hello, bool has_core)
    : socket_(connect_to(path)), stop_(eventfd(0, EFD_CLOEXEC)), has_core_(has_core) {
  send({0, hello});
  const int arena = receive_descriptor(socket_);
  if (arena < 0) leave();
  arena_.emplace(Arena::map(arena));
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
    if (!reader_.receive(socket_, FrameReader::Wait::no)) leave();
    if (reader_.has_more()) return;
    sched_yield();
  }
  if (!reader_.receive(socket_)) leave();
}

void Control::answer(decltype(Answer::what) what) {
  send({working_on_.exchange(0), std::move(what)});
  answered_ = Clock::now();
}

void Control::send(const Answer& answer) {
  const std::lock_guard lock(sending_);
  if (!send_frame(socket_, encode(answer))) leave();
}

void Control::watch() {
  std::array<pollfd, 2> watched{pollfd{socket_, POLLRDHUP, 0}, pollfd{stop_, POLLIN, 0}};
  std::uint64_t before = 0;
  while (true) {
    const int events = poll(watched.data(), watched.size(), kAliveMilliseconds);
    if (events < 0 && errno != EINTR) leave();
    if (watched[1].revents != 0) return;
    if (watched[0].revents != 0) leave();
    const std::uint64_t now = working_on_, deferred = deferred_;
    if (events == 0 && now != 0 && now == before) send({now, Alive{}});
    else if (events == 0 && deferred != 0) send({deferred, Alive{}});
    before = now;
  }
}

}  // namespace shardmat::service
