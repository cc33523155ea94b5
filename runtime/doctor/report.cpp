// A report of the doctor as text and as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/base/text.h"
#include "runtime/doctor/doctor.h"
#include "runtime/doctor/host_files.h"

namespace shardmat::doctor {
namespace {

constexpr std::size_t kColumns = 110;
constexpr const char *kBold = "\033[1m", *kWarning = "\033[1;33m", *kFine = "\033[1;32m", *kPlain = "\033[0m";

/// "  label          value", with further lines below the value.
std::string row(const std::string& label, const std::string& value) {
  constexpr std::size_t kIndent = 17;
  std::string text = fmt::format("  {:<14} ", label);
  for (const char c : value) text += c == '\n' ? "\n" + std::string(kIndent, ' ') : std::string(1, c);
  return text + "\n";
}

/// Lines end between words. A text of several lines stays as it is.
std::string wrapped(const std::string& text) {
  if (text.find('\n') != std::string::npos) return text;
  std::string lines;
  std::size_t width = 0;
  for (const std::string& word : words_of(text, " ")) {
    if (width > 0 && width + 1 + word.size() > kColumns) lines += "\n", width = 0;
    else if (width > 0) lines += " ", ++width;
    lines += word;
    width += word.size();
  }
  return lines;
}

}  // namespace

std::string to_text(const Report& report, bool colour) {
  const auto in = [&](const char* how, const std::string& text) { return colour ? how + text + kPlain : text; };
  std::string text;
  for (const Section& section : report.sections) {
    std::string rows;
    for (const auto& [label, value] : section.rows)
      if (!value.empty()) rows += row(label, wrapped(value));
    if (!rows.empty()) text += in(kBold, section.title) + "\n" + rows;
  }
  text += fmt::format("\n{}, {}, {}\n",
                      in(report.findings.empty() ? kFine : kWarning, human_count(std::ssize(report.findings), "finding")),
                      human_count(report.ranks, "rank"), human_seconds(report.seconds));
  for (const Finding& finding : report.findings)
    text += "\n" + in(kWarning, finding.name) + "\n" + row("found", wrapped(finding.what)) +
            row("why it matters", wrapped(finding.why)) + row("remedy", wrapped(finding.remedy));
  return text;
}

std::string to_json(const Report& report) {
  using nlohmann::ordered_json;
  ordered_json findings = ordered_json::array();
  for (const Finding& finding : report.findings)
    findings.push_back({{"name", finding.name}, {"what", finding.what}, {"why", finding.why}, {"remedy", finding.remedy}});
  const ordered_json json{{"findings", findings},
                          {"ranks", report.ranks},
                          {"seconds", report.seconds},
                          {"facts", ordered_json::parse(report.facts)}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace shardmat::doctor
