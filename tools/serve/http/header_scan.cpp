#include "tools/serve/http/header_scan.h"

#include <strings.h>

#include <algorithm>

namespace shardmat::serve {
namespace {

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_token_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

/// What is wrong with a line of the header, given without its end.
std::string line_fault(std::string_view line, bool first) {
  if (std::any_of(line.begin(), line.end(), is_control)) return "the header has a control character";
  if (first) return line.empty() ? "the request begins with an empty line" : "";
  if (line.empty()) return "";
  if (line.front() == ' ' || line.front() == '\t') return "a header field is folded over two lines";
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return "a header field has no colon";
  const std::string_view name = line.substr(0, colon);
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_token_character))
    return "the name of a header field is empty or has a wrong character";
  return "";
}

std::size_t count(const Fields& fields, const char* name) {
  return static_cast<std::size_t>(
      std::count_if(fields.begin(), fields.end(), [&](const auto& f) { return strcasecmp(f.first.c_str(), name) == 0; }));
}

const std::string& value(const Fields& fields, const char* name) {
  return std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return strcasecmp(f.first.c_str(), name) == 0; })
      ->second;
}

}  // namespace

HeaderScanner::Found HeaderScanner::scan(std::string_view arrived) {
  while (true) {
    const std::size_t end = arrived.find('\n', line_);
    std::string_view line = arrived.substr(line_, std::min(end, arrived.size()) - line_);
    if (end == std::string_view::npos) {
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      // A long line is not waited for if it is wrong already.
      return {0, std::any_of(line.begin(), line.end(), is_control) ? "the header has a control character" : ""};
    }
    if (line.empty() || line.back() != '\r') return {0, "a line of the header does not end with CR and LF"};
    line.remove_suffix(1);
    if (std::string fault = line_fault(line, line_ == 0); !fault.empty()) return {0, std::move(fault)};
    line_ = end + 1;
    if (line.empty()) return {line_, ""};
  }
}

std::size_t empty_lines(std::string_view arrived) {
  std::size_t bytes = 0;
  while (arrived.substr(bytes, 2) == "\r\n") bytes += 2;
  return bytes;
}

std::string framing_fault(const Fields& fields, bool is_1_1) {
  const std::size_t lengths = count(fields, "Content-Length"), encodings = count(fields, "Transfer-Encoding");
  if (lengths > 1) return "Content-Length is there twice";
  if (lengths > 0 && encodings > 0) return "there are both Content-Length and Transfer-Encoding";
  if (lengths > 0) {
    const std::string& text = value(fields, "Content-Length");
    if (text.empty() || text.size() > 18 || !std::all_of(text.begin(), text.end(), is_digit))
      return "Content-Length is no number";
  }
  const std::size_t hosts = count(fields, "Host");
  if (hosts > 1) return "Host is there twice";
  if (hosts == 0 && is_1_1) return "Host is missing";
  return "";
}

std::string trace_id_of(std::string_view traceparent) {
  const auto is_hex = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
  if (traceparent.size() != 55 || traceparent.substr(0, 3) != "00-" || traceparent[35] != '-' || traceparent[52] != '-')
    return "";
  for (const auto& [begin, length] : {std::pair{3, 32}, {36, 16}, {53, 2}})
    for (int i = begin; i < begin + length; ++i)
      if (!is_hex(traceparent[static_cast<std::size_t>(i)])) return "";
  const std::string_view id = traceparent.substr(3, 32);
  if (id.find_first_not_of('0') == std::string_view::npos) return "";
  return std::string(id);
}

}  // namespace shardmat::serve
