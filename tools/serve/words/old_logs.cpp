#include "tools/serve/words/old_logs.h"

#include <string>
#include <system_error>

namespace shardmat::serve {

void keep_old_logs(const std::filesystem::path& log) noexcept {
  constexpr int kOldLogs = 3;
  try {
    const auto name = [&](int age) {
      return age == 0 ? log : std::filesystem::path(log.string() + "." + std::to_string(age));
    };
    std::error_code ignored;
    if (!std::filesystem::exists(log, ignored)) return;
    for (int age = kOldLogs; age > 0; --age) std::filesystem::rename(name(age - 1), name(age), ignored);
  } catch (const std::exception&) {  // no memory: the log goes on as it is
  }
}

}  // namespace shardmat::serve
