// How fast this machine moves memory that does not fit its caches: the yardstick of products whose matrix does not fit
// either.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/isa.h"

namespace shardmat::tools {

/// A loop over large arrays on host threads.
struct StreamLoop {
  std::string name;
  double bytes = 0;  ///< that one call moves
  std::function<void()> run;
};

/// Three arrays of f64, and two loops over them that use the instruction set of the caller and its threads.
class Streams {
 public:
  /// Throws Error(resources) without memory for them.
  Streams();

  /// "triad": a = b + s·c, 32 bytes an entry, since memory reads a line before it is written (J. McCalpin's STREAM); "sum":
  /// one array is read, 8 bytes an entry. Valid as long as this object.
  std::vector<StreamLoop> loops();

 private:
  void triad();
  void sum();

  static constexpr std::int64_t kEntries = std::int64_t{1} << 25;  // 256 MB an array, above all caches

  Buffer a_, b_, c_;
  double total_ = 0;  ///< of sum(), so that it is not left out
};

}  // namespace shardmat::tools
