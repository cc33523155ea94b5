#include "tools/serve/http/reply_header.h"

#include <boost/beast/http/status.hpp>
#include <string_view>
#include <utility>

namespace shardmat::serve {
namespace {

constexpr std::size_t kUsualHeaderBytes = 512;

/// The present second, formatted once.
const std::string& date_now() {
  static std::time_t second = 0;
  static std::string text;
  if (const std::time_t now = std::time(nullptr); now != second) second = now, text = http_date(now);
  return text;
}

}  // namespace

std::string http_date(std::time_t seconds) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm time{};
  gmtime_r(&seconds, &time);
  char rest[32];  // without the words, which strftime() would take from the locale
  std::strftime(rest, sizeof rest, " %Y %H:%M:%S GMT", &time);
  const std::string day = std::to_string(time.tm_mday);
  return std::string(kDays[time.tm_wday]) + ", " + (day.size() < 2 ? "0" : "") + day + " " + kMonths[time.tm_mon] + rest;
}

std::string header_of(const Reply& reply, std::size_t bytes, const std::string& request_id, const char* connection) {
  const auto reason = boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(reply.status));
  std::string text;
  text.reserve(kUsualHeaderBytes);
  const auto add = [&](const auto&... parts) { (text.append(parts), ...); };
  add("HTTP/1.1 ", std::to_string(reply.status), " ", std::string_view(reason.data(), reason.size()));
  add("\r\nDate: ", date_now(), "\r\nX-Request-Id: ", request_id, "\r\n");
  const bool has_body = reply.status != 204 && reply.status != 304;
  if (has_body) add("Content-Type: ", reply.content_type, "\r\nX-Content-Type-Options: nosniff\r\n");
  if (has_body && !reply.stream) add("Content-Length: ", std::to_string(bytes), "\r\n");
  for (const auto& [name, value] : reply.fields) add(name, ": ", value, "\r\n");
  if (*connection != '\0') add("Connection: ", connection, "\r\n");
  add("\r\n");
  return text;
}

Reply too_many_connections() {
  Problem problem;
  problem.status = 503, problem.code = "too_many_connections", problem.retry_after_seconds = 1;
  problem.text = "there are too many connections; try again later";
  return problem_reply(std::move(problem));
}

}  // namespace shardmat::serve
