// How urgent a request for a product is.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace shardmat::serve {

enum class Priority { high, normal, low };

constexpr std::array<std::string_view, 3> kPriorityNames{"high", "normal", "low"};

constexpr std::string_view priority_name(Priority priority) { return kPriorityNames[static_cast<std::size_t>(priority)]; }
constexpr std::optional<Priority> parse_priority(std::string_view text) {
  for (std::size_t i = 0; i < kPriorityNames.size(); ++i)
    if (kPriorityNames[i] == text) return static_cast<Priority>(i);
  return std::nullopt;
}

}  // namespace shardmat::serve
