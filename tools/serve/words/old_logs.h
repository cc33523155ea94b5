// Logs that were written before.
//
// Threads: any.
#pragma once

#include <filesystem>

namespace shardmat::serve {

/// Makes room for a new log: LOG becomes LOG.1, LOG.1 becomes LOG.2, and so on; LOG.3 goes. Nothing happens without a LOG.
void keep_old_logs(const std::filesystem::path& log) noexcept;

}  // namespace shardmat::serve
