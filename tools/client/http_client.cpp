#include "tools/client/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat::tools {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::size_t kLongestHeader = std::size_t{1} << 20;

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

HttpClient::HttpClient(Connect connect, std::string host, std::string token, RetryLimit retries)
    : connect_(std::move(connect)), retries_(retries), channel_(connect_()), fields_(fmt::format("Host: {}\r\n", host)) {
  if (!token.empty()) fields_ += fmt::format("Authorization: Bearer {}\r\n", token);
}

void HttpClient::fill() {
  const std::size_t had = buffer_.size();
  buffer_.resize(had + kReadBytes);
  const std::size_t got = channel_->read(buffer_.data() + had, kReadBytes);
  buffer_.resize(had + got);
  if (got == 0) fail_ended();
}

/// Sends a request and reads the header of its reply.
HttpReply HttpClient::begin(const std::string& method, const std::string& target, std::span<const std::byte> body,
                            const std::string& content_type) {
  if (!std::exchange(is_whole_, false)) fail_ended();
  if (closes_ || (buffer_.empty() && channel_->has_ended())) channel_ = connect_(), buffer_.clear();
  const std::string header = fmt::format("{} {} HTTP/1.1\r\n{}Content-Type: {}\r\nContent-Length: {}\r\n\r\n", method,
                                         target, fields_, content_type, body.size());
  // If the service has answered early and closed, its answer can still be read.
  if (channel_->write(header)) channel_->write({reinterpret_cast<const char*>(body.data()), body.size()});
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (buffer_.size() > kLongestHeader) throw Error(ErrorKind::resources, "what listens there does not speak HTTP", "url");
    fill();
  }
  HttpReply reply;
  parse_header(std::string_view(buffer_).substr(0, end), reply);
  buffer_.erase(0, end + 4);
  const auto connection = reply.fields.find("connection");
  closes_ = connection != reply.fields.end() && connection->second == "close";
  return reply;
}

void HttpClient::read_body(HttpReply& reply) {
  reply.body.resize(std::strtoull(reply.fields["content-length"].c_str(), nullptr, 10));
  std::size_t had = std::min(buffer_.size(), reply.body.size());
  std::copy_n(buffer_.data(), had, reply.body.data());
  buffer_.erase(0, had);
  while (had < reply.body.size()) {
    const std::size_t got = channel_->read(reply.body.data() + had, reply.body.size() - had);
    if (got == 0) fail_ended();
    had += got;
  }
  is_whole_ = true;
}

HttpReply HttpClient::send(const std::string& method, const std::string& target, std::span<const std::byte> body,
                           const std::string& content_type) {
  HttpReply reply = begin(method, target, body, content_type);
  read_body(reply);
  return reply;
}

HttpReply HttpClient::follow(const std::string& target, double silence,
                             const std::function<void(const std::string&)>& take) {
  HttpReply reply = begin("GET", target, {}, "application/json");
  if (reply.status != 200 || reply.fields.contains("content-length")) {
    read_body(reply);
    return reply;
  }
  channel_->wait_at_least(silence);
  while (true) {
    for (std::size_t end = 0; (end = buffer_.find('\n')) != std::string::npos;) {
      const std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      take(line);
    }
    char bytes[4096];
    const std::size_t got = channel_->read(bytes, sizeof bytes);
    if (got == 0) return reply;
    buffer_.append(bytes, got);
  }
}

}  // namespace shardmat::tools
