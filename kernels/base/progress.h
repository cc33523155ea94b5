// Progress of long work. The library never prints; a program passes a function that prints.
// Ownership: a std::function, which owns what it captures. Nothing is collective.
// Threads: each function says which thread calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace shardmat {

/// Called with the name of the phase and the work done out of `total` (bytes, rows or entries). May be empty.
/// Called from one thread at a time.
using Progress = std::function<void(std::string_view phase, std::int64_t done, std::int64_t total)>;

inline void report(const Progress& progress, std::string_view phase, std::int64_t done, std::int64_t total) {
  if (progress) progress(phase, done, total);
}

}  // namespace shardmat
