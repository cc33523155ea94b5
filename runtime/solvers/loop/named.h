// Errors for names that are not in a list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardmat {

/// Throws Error(usage): there is no `what` of this name; the nearest one and all others. `setting`: as of Error.
[[noreturn]] void refuse_name(std::string_view what, std::string_view given, const std::vector<std::string>& names,
                              const std::string& setting);

/// The entry of a list with this name; see refuse_name(). `names`: further ones that callers take before they look here.
template <class List>
const auto& find_named(const List& list, std::string_view what, std::string_view given, const std::string& setting,
                       std::vector<std::string> names = {}) {
  for (const auto& entry : list) {
    if (entry.name == given) return entry;
    names.emplace_back(entry.name);
  }
  refuse_name(what, given, names, setting);
}

}  // namespace shardmat
