// The nonzeros of a matrix one by one, to compare with those of a converted one.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "kernels/matrix/csr.h"
#include "kernels/matrix/rows.h"

namespace shardmat::test {

using Nonzero = std::tuple<std::int64_t, std::int64_t, double>;  ///< row, column, value

/// In the order of the matrix.
inline std::vector<Nonzero> nonzeros_of(const HostCsr& matrix) {
  const Rows rows(matrix.view());
  std::vector<Nonzero> all;
  for (std::int64_t i = 0; i < rows.count(); ++i)
    for (std::int64_t k = rows.begin(i); k < rows.end(i); ++k) all.emplace_back(i, rows.column(k), rows.values()[k]);
  return all;
}

}  // namespace shardmat::test
