// Formats numbers for people, and suggests spellings.
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
/// "1 nonzero", "2,000 nonzeros". `plural`: of nouns that take more than an s.
std::string human_count(std::int64_t count, std::string_view noun, std::string_view plural = {});
/// "1.23 ms", "45.6 µs", "12.5 h": at most 11 characters.
std::string human_seconds(double seconds);
/// A relative change in percent: "+12.3 %", "-4.5 %". Changes that round to zero give "+0.0 %".
std::string human_change(double change);

/// The candidate with the smallest edit distance to `word`, or empty if no candidate is near enough.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b or c".
std::string join_choices(const std::vector<std::string>& choices);

}  // namespace shardmat
