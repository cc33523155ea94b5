#include "tools/serve/observe/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace shardmat::serve {

void log_line(std::string text) {
  // Clients choose some of the words; they cannot make lines of their own.
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  // Without a check: the service goes on when nobody reads its log any more.
  std::fputs(fmt::format("shardmat-serve: {}\n", text).c_str(), stderr);
}

}  // namespace shardmat::serve
