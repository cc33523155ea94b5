// The triangles of incomplete factors, solved by cuSPARSE (SpSV): what `bench factors` compares with.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/device.h"
#include "kernels/triangles/slices.h"

namespace shardmat::tools {

class LibrarySolves {
 public:
  virtual ~LibrarySolves() = default;
  /// Both triangles, with ones on their diagonals, in stream order: no reordering, no D⁻¹, no conversion.
  virtual void apply() = 0;
  /// The largest error of a row, ‖r − T·x‖∞ / ‖r‖∞, of the worse triangle after apply(). Waits for the stream.
  virtual double error() = 0;
};

/// Null if the program was built without CUDA, or on the host. Throws Error(resources) without memory. The stream outlives
/// it.
std::unique_ptr<LibrarySolves> make_library_solves(const triangles::HostFactors& factors, Stream& stream);

}  // namespace shardmat::tools
