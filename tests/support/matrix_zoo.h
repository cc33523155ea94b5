// Small matrices with every shape that has broken a sparse kernel somewhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/matrix/csr.h"

namespace shardmat::test {

struct NamedMatrix {
  std::string name;
  HostCsr matrix;
};

/// 0×0, no rows, no columns, empty rows, one dense row, one dense column, row lengths 31/32/33, power law, banded, diagonal,
/// hexahedral elasticity-like blocks, symmetric ones, wide and tall rectangles. Deterministic; values in [-1, 1), exact
/// zeros among them.
std::vector<NamedMatrix> matrix_zoo();

/// The symmetric matrix with the lower triangle and the diagonal of a square one.
HostCsr mirrored(const HostCsr& matrix);

/// A deterministic value in [-1, 1) for a counter.
double value_of(std::uint64_t counter);

}  // namespace shardmat::test
