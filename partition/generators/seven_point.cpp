#include "partition/generators/seven_point.h"

namespace shardmat {
namespace {

/// Calls f(node, p) in parallel for the nodes [begin, end).
template <class F>
void for_nodes(const Grid& grid, std::int64_t begin, std::int64_t end, const F& f) {
  for_node_pieces(begin, end, 1, [&](std::int64_t first, std::int64_t last) {
    GridPoint p = grid.point(first);
    for (std::int64_t node = first; node < last; ++node, grid.advance(p)) f(node, p);
  });
}

}  // namespace

void SevenPointSource::count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const {
  for_nodes(grid(), begin, end, [&](std::int64_t node, const GridPoint& p) {
    std::int64_t length = 1;
    for (std::size_t d = 0; d < 3 && !grid().is_clamped(p); ++d) length += grid().last(p, d) - grid().first(p, d);
    lengths[node - begin] = length;
  });
}

void SevenPointSource::fill(std::int64_t begin, std::int64_t end, HostCsr& part) const {
  const std::int64_t stride[3] = {1, grid().size[0], grid().size[0] * grid().size[1]};
  for_nodes(grid(), begin, end, [&](std::int64_t node, const GridPoint& p) {
    auto at = static_cast<std::size_t>(part.row_ptr[static_cast<std::size_t>(node - begin)]);
    const auto write = [&](std::int64_t column, double value) {
      part.col_idx[at] = column;
      part.values[at++] = value;
    };
    if (grid().is_clamped(p)) return write(node, 1);
    double below[3], above[3], sum = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      below[d] = coupling(p, d, -1);
      above[d] = coupling(p, d, 1);
      sum += below[d] + above[d];
    }
    for (std::size_t d = 3; d-- > 0;)
      if (grid().first(p, d) < p[d]) write(node - stride[d], below[d]);
    write(node, -sum);
    for (std::size_t d = 0; d < 3; ++d)
      if (grid().last(p, d) > p[d]) write(node + stride[d], above[d]);
  });
}

}  // namespace shardmat
