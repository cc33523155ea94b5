// What to say when a file is not there.
#pragma once

#include <filesystem>

namespace shardmat {

/// Throws Error(input) with the most similar name in the same directory.
[[noreturn]] void fail_missing(const std::filesystem::path& path);

}  // namespace shardmat
