#include "tools/http_client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "kernels/base/error.h"

namespace shardmat::tools {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;

[[noreturn]] void fail_ended() {
  throw Error(ErrorKind::rank_lost, "the service ended before it answered; see what it printed");
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Status and fields of a header without its last line.
void parse_header(std::string_view header, HttpReply& reply) {
  std::size_t end = std::min(header.find("\r\n"), header.size());
  if (end < 12 || header.substr(0, 5) != "HTTP/") fail_ended();
  reply.status = std::atoi(std::string(header.substr(9, 3)).c_str());
  while (end < header.size()) {
    header.remove_prefix(end + 2);
    end = std::min(header.find("\r\n"), header.size());
    const std::string_view line = header.substr(0, end);
    const std::size_t colon = line.find(": ");
    if (colon != std::string_view::npos) reply.fields[lower(std::string(line.substr(0, colon)))] = line.substr(colon + 2);
  }
}

}  // namespace

HttpClient::HttpClient(const std::string& unix_socket) : socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool fits = unix_socket.size() < sizeof address.sun_path;
  if (fits) std::memcpy(address.sun_path, unix_socket.c_str(), unix_socket.size());
  if (fits && socket_ >= 0 && connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
  const char* why = fits ? std::strerror(errno) : "the path is too long for a socket";
  if (socket_ >= 0) close(socket_);
  throw Error(ErrorKind::resources,
              fmt::format("no service listens on {} ({}); start it with: shardmat serve --library DIR", unix_socket, why),
              "unix");
}

HttpClient::~HttpClient() { close(socket_); }

void HttpClient::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;  // the service has answered early and closed; its answer can still be read
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void HttpClient::fill() {
  const std::size_t had = buffer_.size();
  buffer_.resize(had + kReadBytes);
  const ssize_t got = recv(socket_, buffer_.data() + had, kReadBytes, 0);
  buffer_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  if (got == 0 || (got < 0 && errno != EINTR)) fail_ended();
}

HttpReply HttpClient::send(const std::string& method, const std::string& target, std::span<const std::byte> body,
                           const std::string& content_type) {
  write(fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n", method, target,
                    content_type, body.size()));
  write({reinterpret_cast<const char*>(body.data()), body.size()});
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) fill();
  HttpReply reply;
  parse_header(std::string_view(buffer_).substr(0, end), reply);
  buffer_.erase(0, end + 4);
  reply.body.resize(std::strtoull(reply.fields["content-length"].c_str(), nullptr, 10));
  std::size_t had = std::min(buffer_.size(), reply.body.size());
  std::copy_n(buffer_.data(), had, reply.body.data());
  buffer_.erase(0, had);
  while (had < reply.body.size()) {
    const ssize_t got = recv(socket_, reply.body.data() + had, reply.body.size() - had, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) fail_ended();
    had += static_cast<std::size_t>(std::max<ssize_t>(0, got));
  }
  return reply;
}

}  // namespace shardmat::tools
