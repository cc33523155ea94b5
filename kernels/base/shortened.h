// Text that was read from a file, made fit for a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardmat {

constexpr std::size_t kShownInMessages = 200;  ///< bytes of a file's text that a message repeats at most

/// At most `most` bytes of the text, then "…" if there are more. Control characters are escaped ("\x1b"), so that no
/// terminal obeys them; UTF-8 stays.
std::string shortened(std::string_view text, std::size_t most = kShownInMessages);

}  // namespace shardmat
