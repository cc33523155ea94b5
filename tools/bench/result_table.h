// A table of results that people read as text and programs as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shardmat::tools {

/// What stands in a table: a figure or a word, and how it is printed.
struct Cell {
  nlohmann::ordered_json value;  ///< null: nothing was measured
  std::string text;

  static Cell none() { return {nullptr, "–"}; }
  static Cell word(const std::string& text) { return {text, text}; }
  static Cell count(std::int64_t value);
  /// A share of 1, printed as "12.3 %".
  static Cell percent(double share);
  /// A share of the copy bandwidth, printed as a percentage up to 100 and else as "caches": memory alone is not that fast.
  static Cell share_of_copy(double share);
  static Cell figure(double value, int digits, const std::string& unit = "");
};

struct Column {
  std::string key, heading;  ///< in JSON and in text
  bool in_text = true;       ///< false: only in JSON
};

struct ResultTable {
  std::string title;
  std::vector<std::string> notes;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;

  /// Words to the left, the other columns to the right.
  std::string text() const;
  /// {"title", "notes", "rows": [{key: value}]}.
  nlohmann::ordered_json json() const;
};

}  // namespace shardmat::tools
