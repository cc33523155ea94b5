#include "tools/serve/http/head_parser.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>
#include <utility>

#include "tools/serve/http/header_scan.h"
#include "tools/serve/http/names.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {

namespace http = boost::beast::http;

namespace {

Problem malformed(const std::string& why) { return make_problem(400, "malformed", "this is no HTTP/1.1 request: " + why); }

std::optional<Problem> fault_of(const RequestHead& head, unsigned version) {
  if (version != 11 && version != 10) return malformed("it has another version");
  if (std::string fault = framing_fault(head.fields, version == 11); !fault.empty()) return malformed(fault);
  if (head.fields.size() > kMostFields)
    return make_problem(431, "header_too_long", fmt::format("there are more than {} header fields", kMostFields));
  if (std::any_of(head.fields.begin(), head.fields.end(),
                  [](const auto& field) { return strcasecmp(field.first.c_str(), "Transfer-Encoding") == 0; }))
    return make_problem(411, "length_required", "send the body with Content-Length, not with Transfer-Encoding");
  if (const std::string& coding = head.field("Content-Encoding");
      !coding.empty() && strcasecmp(coding.c_str(), "identity") != 0)
    return make_problem(415, "content_encoding", "bodies are not decoded here: send the body without Content-Encoding");
  return std::nullopt;
}

/// Proxies are asked for "http://host/path", and every server has to take it: the host then counts, not the field Host.
/// False for a malformed one.
bool take_absolute_form(RequestHead& head) {
  const std::size_t scheme = strncasecmp(head.target.c_str(), "http://", 7) == 0    ? 7
                             : strncasecmp(head.target.c_str(), "https://", 8) == 0 ? 8
                                                                                    : 0;
  if (scheme == 0) return true;
  const std::size_t end = std::min(head.target.find_first_of("/?", scheme), head.target.size());
  const std::string host = head.target.substr(scheme, end - scheme);
  if (host.empty() || host.find('@') != std::string::npos) return false;
  for (auto& [name, value] : head.fields)
    if (strcasecmp(name.c_str(), "Host") == 0) value = host;
  head.target.erase(0, end);
  if (head.target.empty() || head.target.front() != '/') head.target.insert(0, "/");
  return true;
}

}  // namespace

ParsedHead parse_head(std::string_view header) {
  ParsedHead parsed;
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kMostHeaderBytes);
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());  // boost::none would refuse every body
  boost::system::error_code error;
  parser.put(boost::asio::buffer(header.data(), header.size()), error);
  if (error || !parser.is_header_done()) {
    parsed.problem = malformed(error.message());
    return parsed;
  }
  const auto& message = parser.get();
  RequestHead& head = parsed.head;
  head.method = std::string(message.method_string());
  head.target = std::string(message.target());
  for (const auto& field : message) head.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
  if (const std::string& id = head.field("X-Request-Id"); is_request_id(id)) head.request_id = id;
  head.trace_id = trace_id_of(head.field("traceparent"));
  parsed.problem = fault_of(head, message.version());
  if (!parsed.problem && !take_absolute_form(head)) parsed.problem = malformed("its target has no good host");
  if (parsed.problem) return parsed;
  parsed.is_1_0 = message.version() == 10;
  head.content_length = parser.content_length().value_or(0);
  parsed.keep_alive = message.keep_alive();
  return parsed;
}

}  // namespace shardmat::serve
