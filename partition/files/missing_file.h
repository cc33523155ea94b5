// The error for a missing file.
#pragma once

#include <filesystem>

namespace shardmat {

/// Throws Error(input), which suggests the most similar name in the same directory.
[[noreturn]] void fail_missing(const std::filesystem::path& path);

}  // namespace shardmat
