#pragma once

#include <cstddef>
#include <cstdint>

namespace shardmat {

/// An index of the library as one of the standard library. REQUIRES: i >= 0.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace shardmat
