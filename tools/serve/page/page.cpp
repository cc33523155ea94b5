#include "tools/serve/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/serve/gate/sha256.h"
#include "tools/serve/http/names.h"
#include "tools/serve/page/page_files.h"

namespace shardmat::serve {
namespace {

using json = nlohmann::ordered_json;

/// Nothing but this service's own files runs, is shown, or is spoken to; no other page shows this one in a frame.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'";

/// Where page_reply() puts what it knows.
constexpr std::string_view kBody = "<!--body-->", kMessage = "<!--message-->", kStatus = "<!--status-->";

const PageFile* find_file(std::string_view name) {
  const auto files = page_files();
  const auto found = std::find_if(files.begin(), files.end(), [&](const PageFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::string type_of(std::string_view name) {
  const std::string_view suffix = name.substr(name.rfind('.') + 1);
  if (suffix == "html") return "text/html; charset=utf-8";
  if (suffix == "css") return "text/css; charset=utf-8";
  if (suffix == "svg") return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

/// A browser asks each time whether it has the newest text, and gets it only if not.
Reply text_reply(const RequestHead& head, std::string type, std::string text) {
  std::string tag = "\"";
  const Sha256 hash = sha256(text);
  for (std::size_t i = 0; i < 16; ++i) tag += fmt::format("{:02x}", hash[i]);
  tag += '"';
  Reply reply;
  reply.content_type = std::move(type);
  reply.fields = {{"ETag", tag},
                  {"Cache-Control", "private, no-cache"},
                  {"Content-Security-Policy", kPolicy},
                  {"Referrer-Policy", "same-origin"},
                  {"Cross-Origin-Opener-Policy", "same-origin"},
                  {"Cross-Origin-Resource-Policy", "same-origin"}};
  const std::string& had = head.field("If-None-Match");
  if (had == "*" || had.find(tag) != std::string::npos) reply.status = 304;
  else reply.text = std::move(text);
  return reply;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c == '&') result += "&amp;";
    else if (c == '<') result += "&lt;";
    else if (c == '>') result += "&gt;";
    else if (c == '"') result += "&quot;";
    else result += c;
  return result;
}

/// A string or a number of the object as text; "–" if it is not there.
std::string cell(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return "–";
  return escaped(found->is_string() ? found->get<std::string>() : found->dump());
}

std::string table(std::string_view caption, std::initializer_list<std::pair<const char*, const char*>> columns,
                  const json& rows, std::string_view otherwise) {
  if (rows.empty()) return fmt::format("<h2>{}</h2>\n<p>{}</p>\n", caption, otherwise);
  std::string text = fmt::format("<h2>{}</h2>\n<table><thead><tr>", caption);
  for (const auto& [name, heading] : columns) text += fmt::format("<th scope=\"col\">{}</th>", heading);
  text += "</tr></thead>\n<tbody>";
  for (const json& row : rows) {
    text += "<tr>";
    for (const auto& [name, heading] : columns) text += fmt::format("<td>{}</td>", cell(row, name));
    text += "</tr>\n";
  }
  return text + "</tbody></table>\n";
}

std::string plain_text(const PlainStatus& status) {
  std::string text = fmt::format(
      "<p>The service is <b>{}</b>{}. Its ranks: {}. Reload the page to see this anew.</p>\n", cell(status.now, "state"),
      status.now.contains("reason") ? ": " + cell(status.now, "reason") : "", cell(status.now, "phase"));
  text += table("Ranks", {{"rank", "rank"}, {"host", "host"}, {"device", "device"}, {"threads", "threads"}},
                status.ranks["ranks"], "No rank is there yet.");
  text +=
      table("Matrices", {{"name", "name"}, {"state", "state"}, {"rows", "rows"}, {"cols", "columns"}, {"nnz", "nonzeros"}},
            status.matrices["matrices"], "No matrix is loaded: <code>shardmat client load NAME FILE</code>");
  text +=
      table("Jobs",
            {{"id", "job"}, {"matrix", "matrix"}, {"state", "state"}, {"iteration", "iteration"}, {"residual", "residual"}},
            status.jobs["jobs"], "There is no job.");
  return text;
}

void put(std::string& text, std::string_view mark, std::string_view in_place) {
  if (const std::size_t at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), in_place);
}

}  // namespace

Reply page_file_reply(const RequestHead& head, std::string_view name) {
  const PageFile* file = name == "index.html" ? nullptr : find_file(name);
  if (file == nullptr) return problem_reply(404, "no_path", "the page has no such file");
  return text_reply(head, type_of(name), std::string(file->text));
}

Reply page_reply(const RequestHead& head, const PlainStatus* status, std::string_view message) {
  std::string text(find_file("index.html")->text);
  put(text, kBody, status != nullptr ? "known" : "unknown");
  put(text, kMessage, escaped(message));
  put(text, kStatus, status != nullptr ? plain_text(*status) : "");
  Reply reply = text_reply(head, type_of("index.html"), std::move(text));
  reply.fields.emplace_back("Vary", "Cookie, Authorization");
  if (!message.empty()) reply.status = 401;
  return reply;
}

std::string form_field(std::string_view form, std::string_view name) {
  std::string query(form);
  std::replace(query.begin(), query.end(), '+', ' ');
  const auto target = parse_target("/?" + query);
  if (!target) return "";
  const auto found = target->query.find(std::string(name));
  return found == target->query.end() ? "" : found->second;
}

}  // namespace shardmat::serve
