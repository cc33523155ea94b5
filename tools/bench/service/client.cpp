#include "tools/bench/service/client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr std::size_t kFirstBuffer = std::size_t{64} << 10, kHeadReserve = 4096;

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Field names of the server have one spelling.
std::string_view field_of(std::string_view head, std::string_view name) {
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
    const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    if (line.size() > name.size() + 1 && line.substr(0, name.size()) == name && line[name.size()] == ':')
      return line.substr(name.size() + 2);
  }
  return {};
}

Request request_of(std::string_view type, std::string_view method, std::string_view target,
                   std::span<const std::byte> body) {
  return {fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n", method, target,
                      type, body.size()),
          body,
          {}};
}

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Request make_request(std::string_view method, std::string_view target, std::span<const std::byte> body) {
  return request_of("application/json", method, target, body);
}

Request numbers_request(std::string_view method, std::string_view target, std::span<const std::byte> body) {
  return request_of("application/octet-stream", method, target, body);
}

Request multiply_request(std::string_view matrix, std::span<const std::byte> body, std::int64_t columns) {
  const std::string query = columns == 1 ? "" : fmt::format("?k={}", columns);
  return numbers_request("POST", fmt::format("/v1/matrices/{}/multiply{}", matrix, query), body);
}

Request resident_request(std::string_view matrix, std::string_view x, std::string_view y) {
  return numbers_request("POST", fmt::format("/v1/matrices/{}/multiply?x={}&y={}", matrix, x, y), {});
}

std::string_view Reply::field(std::string_view name) const { return field_of(head, name); }

double Reply::seconds_of(std::string_view part) const {
  const std::string_view all = field("Server-Timing");
  const std::string word = fmt::format("{};dur=", part);
  const std::size_t at = all.find(word);
  return at == std::string_view::npos ? 0 : std::atof(std::string(all.substr(at + word.size())).c_str()) / 1000;
}

std::int64_t Reply::batch_columns() const {
  const std::string_view of_product = field("Shardmat-Batch");
  return number(of_product.empty() ? field("Shardmat-Merged") : of_product);
}

bool is_right(const Request& request, const Reply& reply) {
  if (reply.status == 200 && request.check) return request.check(reply.body);
  return reply.status != 200 || request.expected.empty() ||
         (reply.body.size() == request.expected.size() &&
          std::memcmp(reply.body.data(), request.expected.data(), reply.body.size()) == 0);
}

Connection::Connection(std::string socket) : path_(std::move(socket)), buffer_(kFirstBuffer) { reconnect(); }

Connection::~Connection() {
  if (socket_ >= 0) close(socket_);
}

void Connection::reconnect() {
  if (socket_ >= 0) close(socket_);
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.c_str(), std::min(path_.size(), sizeof address.sun_path - 1));
  if (socket_ < 0 || connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw Error(ErrorKind::resources, fmt::format("cannot connect to {}: {}", path_, std::strerror(errno)));
  request_ = nullptr;
  sent_ = total_ = have_ = head_ = wanted_ = 0;
}

void Connection::begin(const Request& request) {
  request_ = &request;
  sent_ = have_ = head_ = wanted_ = 0;
  total_ = request.head.size() + request.body.size();
}

void Connection::send_some() { send_some(Wait::no); }

void Connection::send_some(Wait wait) {
  const int flags = MSG_NOSIGNAL | (wait == Wait::no ? MSG_DONTWAIT : 0);
  while (sending()) {
    const std::size_t head = request_->head.size(), in_head = std::min(sent_, head), in_body = sent_ - in_head;
    iovec parts[2] = {
        {const_cast<char*>(request_->head.data()) + in_head, head - in_head},
        {const_cast<std::byte*>(request_->body.data()) + in_body, request_->body.size() - in_body},
    };
    msghdr message{};
    message.msg_iov = parts, message.msg_iovlen = 2;
    const ssize_t sent = sendmsg(socket_, &message, flags);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) return static_cast<void>(sent_ = total_);  // the server has answered early; the answer can still be read
    sent_ += static_cast<std::size_t>(sent);
  }
}

Connection::State Connection::receive_some() { return receive(Wait::no); }

Connection::State Connection::receive(Wait wait) {
  for (;;) {
    if (wanted_ > 0 && have_ == wanted_) return State::complete;
    const std::size_t room = (wanted_ > 0 ? wanted_ : buffer_.size()) - have_;
    if (room == 0) return State::ended;  // a head that long is none of this server's
    const ssize_t got = recv(socket_, buffer_.data() + have_, room, wait == Wait::no ? MSG_DONTWAIT : 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return State::busy;
    if (got <= 0) return State::ended;
    have_ += static_cast<std::size_t>(got);
    if (wanted_ > 0) continue;
    const std::size_t end = std::string_view(buffer_.data(), have_).find("\r\n\r\n");
    if (end == std::string_view::npos) continue;
    head_ = end + 2;
    const std::string_view length = field_of({buffer_.data(), head_}, "Content-Length");
    wanted_ = end + 4 + static_cast<std::size_t>(number(length));
    if (wanted_ > buffer_.size()) {  // the pages of a new buffer are touched once, here
      HostVector<char> larger(wanted_ + kHeadReserve);
      std::memset(larger.data(), 0, larger.size());
      std::copy_n(buffer_.data(), have_, larger.data());
      buffer_ = std::move(larger);
    }
  }
}

Reply Connection::reply() const {
  Reply reply;
  reply.head = {buffer_.data(), head_};
  reply.status = reply.head.size() > 12 ? static_cast<int>(number(reply.head.substr(9, 3))) : 0;
  reply.body = std::as_bytes(std::span(buffer_.data() + head_ + 2, wanted_ - head_ - 2));
  reply.closes = reply.field("Connection") == "close";
  return reply;
}

Reply Connection::ask(const Request& request) {
  if (wanted_ > 0 && reply().closes) reconnect();
  begin(request);
  send_some(Wait::yes);
  if (receive(Wait::yes) != State::complete)
    throw Error(ErrorKind::rank_lost, "the service ended a connection without a reply");
  return reply();
}

}  // namespace shardmat::tools::service_bench
