// Parses JSON from a file. Size and depth are limited before parsing: a deeply nested document would overflow the stack of
// any recursive function.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace shardmat {

constexpr int kMostJsonDepth = 64;                 ///< nesting depth of arrays and objects
constexpr std::int64_t kMostJsonBytes = 16 << 20;  ///< parsing so much text takes some hundred MB

constexpr std::int64_t kMostDescriptorBytes = 1 << 20;  ///< of an attribute of an HDF5 file

/// Parses one JSON document. Throws Error(input) "source: what" for more than `most_bytes`, for a depth over kMostJsonDepth,
/// and for invalid JSON.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& source,
                                  std::int64_t most_bytes = kMostJsonBytes);

/// Parses a regular file. Throws also what InputFile throws.
nlohmann::ordered_json read_json(const std::filesystem::path& path, std::int64_t most_bytes = kMostJsonBytes);

}  // namespace shardmat
