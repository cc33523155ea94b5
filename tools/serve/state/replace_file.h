// Writes a small file so that at any moment, also after a loss of power, there is the old one or the new one, whole.
//
// Threads: any thread, one at a time for a file.
#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>

namespace shardmat::serve {

/// It keeps owner and mode; a new one has mode 0600. On disk when this returns. Or why not: then the old one stays.
[[nodiscard]] std::error_code replace_file(const std::filesystem::path& file, std::string_view text);

/// A folder with the names that it has now, on disk. Where that is impossible nothing happens.
void flush_folder(const std::filesystem::path& folder);

}  // namespace shardmat::serve
