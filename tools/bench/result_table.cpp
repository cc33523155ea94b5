#include "tools/bench/result_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/text.h"
#include "tools/bench/scaling_notes.h"

namespace shardmat::tools {
namespace {

constexpr std::size_t kLineWidth = 120;

/// Characters, not bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

Cell Cell::count(std::int64_t value) { return {value, human_count(value)}; }

Cell Cell::percent(double share) { return {share, fmt::format("{:.1f} %", 100 * share)}; }

Cell Cell::share_of_copy(double share) { return share > 1 ? Cell{share, "caches"} : percent(share); }

Cell Cell::figure(double value, int digits, const std::string& unit) {
  return {value, fmt::format("{:.{}f}{}", value, digits, unit)};
}

std::string ResultTable::text() const {
  std::string result = title + "\n";
  std::string paragraph;  // lines that go on, up to one that ends a sentence
  for (const std::string& note : notes) {
    paragraph += (paragraph.empty() ? "" : " ") + note;
    if (!note.ends_with('.') && &note != &notes.back()) continue;
    result += wrapped(paragraph, 2, kLineWidth);
    paragraph.clear();
  }
  if (rows.empty()) return result + "  (nothing was measured)\n";
  std::vector<std::size_t> width;
  std::vector<bool> words;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    width.push_back(width_of(columns[c].heading));
    words.push_back(rows.front()[c].value.is_string());
    for (const auto& row : rows) width[c] = std::max(width[c], width_of(row[c].text));
  }
  const auto line = [&](const auto& text_of) {
    std::string text;
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (columns[c].in_text)
        text += words[c] ? fmt::format("  {:<{}}", text_of(c), width[c]) : fmt::format("  {:>{}}", text_of(c), width[c]);
    result += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  line([&](std::size_t c) { return columns[c].heading; });
  for (const auto& row : rows) line([&](std::size_t c) { return row[c].text; });
  return result;
}

nlohmann::ordered_json ResultTable::json() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    nlohmann::ordered_json object;
    for (std::size_t c = 0; c < columns.size(); ++c) object[columns[c].key] = row[c].value;
    all.push_back(object);
  }
  return {{"title", title}, {"notes", notes}, {"rows", all}};
}

}  // namespace shardmat::tools
