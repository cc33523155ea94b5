// Prepares text from a file for a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardmat {

constexpr std::size_t kShownInMessages = 200;  ///< most bytes of a file's text that a message repeats

/// The first `most` bytes of the text, then "…" if it is longer. Control characters are escaped ("\x1b"), so that they
/// cannot control a terminal; UTF-8 stays.
std::string shortened(std::string_view text, std::size_t most = kShownInMessages);

}  // namespace shardmat
