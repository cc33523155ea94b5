// The matrix of a 27-point stencil, for tests that may not use the generators.
#pragma once

#include <cstdint>
#include <iterator>

#include "kernels/matrix/csr.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat::test {

/// Each of length × n × n points, a line after the other, with itself and its neighbours.
inline HostCsr stencil27(int length, int n) {
  HostCsr m;
  m.rows = m.cols = static_cast<std::int64_t>(length) * n * n;
  const auto inside = [](int i, int end) { return i >= 0 && i < end; };
  for (int z = 0; z < n; ++z)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < length; ++x) {
        for (int d = 0; d < 27; ++d) {
          const int i = x + d % 3 - 1, j = y + d / 3 % 3 - 1, k = z + d / 9 - 1;
          if (!inside(i, length) || !inside(j, n) || !inside(k, n)) continue;
          m.col_idx.push_back((static_cast<std::int64_t>(k) * n + j) * length + i);
          m.values.push_back(value_of(m.values.size()));
        }
        m.row_ptr.push_back(std::ssize(m.values));
      }
  return m;
}

}  // namespace shardmat::test
