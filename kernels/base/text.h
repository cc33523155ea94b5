// Numbers for people, and the nearest right spelling of a wrong word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardmat {

/// "1.50 GB" (powers of ten).
std::string human_bytes(double bytes);
/// "238,145,032".
std::string human_count(std::int64_t count);
/// "1.23 ms", "45.6 µs".
std::string human_seconds(double seconds);
/// Of what became (1 + change) times as much: "+12.3 %", "-4.5 %"; "+0.0 %" for what rounds to that.
std::string human_change(double change);

/// The candidate with the smallest edit distance to `word`, or empty if none is near enough to suggest.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b or c".
std::string join_choices(const std::vector<std::string>& choices);

}  // namespace shardmat
