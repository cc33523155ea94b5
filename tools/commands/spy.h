// A picture of where the nonzeros of a matrix are: one pixel for many entries, darker for more of them.
#pragma once

#include <cstdint>
#include <filesystem>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"

namespace shardmat::tools {

/// Throws Error(usage) in a build without libpng; for asking before long work.
void require_png();

/// Counts the nonzeros of each pixel. Give it all rows, in any slices; then write the picture.
class Spy {
 public:
  /// `size` pixels for the longer of rows and columns; a matrix with fewer gets the largest squares that fit.
  Spy(std::int64_t rows, std::int64_t cols, std::int64_t size);
  void add(std::int64_t first_row, const CsrView& slice);
  /// White without nonzeros, else from light to black with the logarithm of their number. The file appears when it is whole.
  /// Throws Error(resources) if it cannot be written.
  void write_png(const std::filesystem::path& path) const;

 private:
  std::int64_t rows_, cols_;
  std::int64_t height_, width_;  ///< of counts
  std::int64_t zoom_;            ///< pixels a count, in both directions
  HostVector<std::int64_t> counts_;
};

}  // namespace shardmat::tools
