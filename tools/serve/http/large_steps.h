// How bodies move through Asio.
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>

#include "tools/serve/http/event_loop.h"

namespace shardmat::serve {

/// Asio moves 64 KiB at a time unless this completion condition asks for more. It also notes how many bytes were moved. A
/// client of this host (`awake` is not null) that keeps up finds the event loop awake.
struct InLargeSteps {
  std::uint64_t* moved;
  EventLoop* awake;
  std::size_t operator()(const boost::system::error_code& error, std::size_t bytes) const {
    constexpr std::size_t kStepBytes = std::size_t{4} << 20, kMuch = 16 << 10;
    constexpr double kAwakeSeconds = 100e-6;  // for the next part of a body
    if (awake != nullptr && (bytes == 0 || bytes >= *moved + kMuch)) awake->stay_awake(kAwakeSeconds);
    *moved = bytes;
    return error ? 0 : kStepBytes;
  }
};

}  // namespace shardmat::serve
