// JSON that was read from a file, with bounds on its size and its nesting before anything is made of it: a deeply nested
// document would overflow the stack of whatever walks through it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace shardmat {

constexpr int kMostJsonDepth = 64;                 ///< of arrays and objects within each other
constexpr std::int64_t kMostJsonBytes = 16 << 20;  ///< which take some hundred MB when they are parsed

constexpr std::int64_t kMostDescriptorBytes = 1 << 20;  ///< of an attribute of an HDF5 file

/// Parses one JSON document. Throws Error(input) "source: what" if it has more than `most_bytes`, is nested more than
/// kMostJsonDepth deep, or is no JSON.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& source,
                                  std::int64_t most_bytes = kMostJsonBytes);

/// Parses a regular file. Throws also what InputFile throws.
nlohmann::ordered_json read_json(const std::filesystem::path& path, std::int64_t most_bytes = kMostJsonBytes);

}  // namespace shardmat
