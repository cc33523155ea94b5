#include "tools/serve/observe/rank_bytes.h"

namespace shardmat::serve {
namespace {

/// The least bytes that a product moves, on all ranks. They grow evenly with its columns.
double product_bytes(const Matrix& matrix, std::int64_t columns) {
  double bytes = 0;
  for (const service::Loaded& rank : matrix.ranks) {
    if (rank.widths.empty()) return 0;
    const service::WidthTime &first = rank.widths.front(), &last = rank.widths.back();
    const double own = static_cast<double>(sizeof(double)) * static_cast<double>(rank.rows + rank.cols);
    const double step = last.width > first.width
                            ? static_cast<double>(last.bytes - first.bytes) / static_cast<double>(last.width - first.width)
                            : own / static_cast<double>(matrix.ranks.size());
    bytes += static_cast<double>(first.bytes) + step * static_cast<double>(columns - first.width);
  }
  return bytes;
}

}  // namespace

double moved_bytes(const Matrix& matrix, const FinishedProduct& product) {
  const auto times = static_cast<double>((product.columns + product.width - 1) / product.width);
  return times * product_bytes(matrix, product.width);
}

HeldBytes held_bytes(const Service& service, std::size_t rank, const Rights& rights) {
  HeldBytes held;
  const auto of_rank = [&](const auto& bytes) { return rank < bytes.size() ? bytes[rank] : std::int64_t{0}; };
  for (const auto& [name, matrix] : service.matrices()) {
    if (!rights.may_use(name) || rank >= matrix->ranks.size()) continue;
    held.matrices += matrix->ranks[rank].bytes + matrix->ranks[rank].solve_bytes;
    held.solvers += matrix->solvers.bytes(rank);
  }
  for (const auto& [number, vector] : service.vectors().all())
    if (!vector.lost && vector.is_visible_to(rights)) held.vectors += of_rank(vector.bytes_of_ranks);
  return held;
}

}  // namespace shardmat::serve
