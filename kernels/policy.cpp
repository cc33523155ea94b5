#include "kernels/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat {

int Policy::at(std::string_view name) const {
  for (const auto& [key, value] : values_)
    if (key == name) return value;
  throw Error(ErrorKind::internal, fmt::format("policy '{}' has no '{}'", text(), name));
}

std::string Policy::text() const {
  std::string text;
  for (const auto& [key, value] : values_) text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  return text;
}

Policy Policy::with(std::string_view overrides) const {
  Policy result = *this;
  std::vector<std::string> known;
  for (const auto& [key, value] : values_) known.push_back(key);
  while (!overrides.empty()) {
    const std::string_view item = overrides.substr(0, overrides.find(','));
    overrides.remove_prefix(std::min(overrides.size(), item.size() + 1));
    const std::string_view key = item.substr(0, item.find('='));
    const std::string_view digits = key.size() < item.size() ? item.substr(key.size() + 1) : std::string_view{};
    const auto found = std::find(known.begin(), known.end(), key);
    if (found == known.end()) {
      const std::string near = nearest(key, known);
      throw Error(ErrorKind::usage,
                  known.empty()
                      ? fmt::format("policy {}: this kernel has nothing to set", item)
                      : fmt::format("policy: this kernel has no '{}'{}; it has {}", key,
                                    near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near), join_choices(known)),
                  "policy");
    }
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size())
      throw Error(ErrorKind::usage, fmt::format("policy {}: write {}=NUMBER", item, key), "policy");
    result.values_[static_cast<std::size_t>(found - known.begin())].second = value;
  }
  return result;
}

std::pair<std::string, std::string> Policy::split(std::string_view overrides) const {
  std::pair<std::string, std::string> result;
  while (!overrides.empty()) {
    const std::string_view item = overrides.substr(0, overrides.find(','));
    overrides.remove_prefix(std::min(overrides.size(), item.size() + 1));
    const std::string_view key = item.substr(0, item.find('='));
    const bool mine = std::any_of(values_.begin(), values_.end(), [&](const auto& value) { return value.first == key; });
    std::string& list = mine ? result.first : result.second;
    if (!list.empty()) list += ',';
    list += item;
  }
  return result;
}

std::string tunables_text(const Policy& layout, const Policy& policy) {
  const std::string of_format = layout.text(), of_kernel = policy.text();
  return of_format + (of_format.empty() || of_kernel.empty() ? "" : ",") + of_kernel;
}

}  // namespace shardmat
