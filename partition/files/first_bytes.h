// The beginning of a file, to find out what it is.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace shardmat {

/// Begins text that an editor of Windows wrote.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Up to `most` bytes of a regular file from `offset` on, as many as there are; none of anything else, such as a pipe. Never
/// blocks, does not throw. Leaves out a byte order mark at the start.
std::string first_bytes(const std::filesystem::path& path, std::size_t most, std::size_t offset = 0);

}  // namespace shardmat
