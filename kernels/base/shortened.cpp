#include "kernels/base/shortened.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardmat {

std::string shortened(std::string_view text, std::size_t most) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  std::size_t end = std::min(text.size(), most);
  while (end < text.size() && end > 0 && most - end < 3 && continues(text[end])) --end;  // cut no character in two
  std::string out;
  for (const char c : text.substr(0, end)) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\t' || c == '\r' || c == '\n') out += c == '\t' ? "\\t" : c == '\r' ? "\\r" : "\\n";
    else if (code < ' ' || code == 0x7f) out += fmt::format("\\x{:02x}", static_cast<unsigned>(code));
    else out += c;
  }
  return end < text.size() ? out + "…" : out;
}

}  // namespace shardmat
