// What clients may call things, and how a request's target is read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardmat::serve {

/// A letter or digit, then at most 63 letters, digits, dots, lines and underscores.
bool is_matrix_name(std::string_view text);
/// 1 to 128 letters, digits, dots, lines and underscores: harmless in headers and logs.
bool is_request_id(std::string_view text);

/// "/v1/matrices/a/multiply?k=2" in parts.
struct Target {
  std::vector<std::string> path;             ///< "v1", "matrices", "a", "multiply"
  std::map<std::string, std::string> query;  ///< "k" = "2"
};
/// Nothing for a target that is not a path, has an escape that is none, or names one query parameter twice.
std::optional<Target> parse_target(std::string_view target);

/// The whole text as a number; nothing if it is none, or not finite.
std::optional<double> parse_number(std::string_view text);
std::optional<long long> parse_whole(std::string_view text);
/// Reads a parameter that is 0 or 1. Returns what is wrong with it, or nothing.
std::string read_flag(const std::string& key, std::string_view value, bool& flag);

}  // namespace shardmat::serve
