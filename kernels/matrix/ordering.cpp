#include "kernels/matrix/ordering.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/base/error.h"

namespace shardmat {

HostVector<std::int64_t> order_by_row_length(std::span<const std::int64_t> row_ptr) {
  const std::size_t rows = row_ptr.empty() ? 0 : row_ptr.size() - 1;
  const auto length = [&](std::int64_t row) {
    return row_ptr[static_cast<std::size_t>(row) + 1] - row_ptr[static_cast<std::size_t>(row)];
  };
  HostVector<std::int64_t> order(rows);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return length(a) > length(b); });
  return order;
}

HostVector<std::int64_t> invert_permutation(std::span<const std::int64_t> permutation) {
  HostVector<std::int64_t> inverse(permutation.size());
  std::fill(inverse.begin(), inverse.end(), -1);
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    const std::int64_t old = permutation[i];
    if (old < 0 || old >= static_cast<std::int64_t>(permutation.size()) || inverse[static_cast<std::size_t>(old)] >= 0)
      throw Error(ErrorKind::input,
                  fmt::format("entry {} of the permutation is {}, which is out of range or there twice", i, old));
    inverse[static_cast<std::size_t>(old)] = static_cast<std::int64_t>(i);
  }
  return inverse;
}

}  // namespace shardmat
