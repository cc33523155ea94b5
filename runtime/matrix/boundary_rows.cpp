#include "runtime/matrix/boundary_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/base/parallel.h"
#include "runtime/context/context.h"
#include "runtime/matrix/load_part.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/matrix/reorder_rows.h"

namespace shardmat {
namespace {

/// Boundary rows in the first half of the part.
std::int64_t before_middle(const BoundaryRows& boundary) {
  const auto first = boundary.of_row.begin();
  return std::count(first, first + std::ssize(boundary.of_row) / 2, 1);
}

/// Nonzeros of a rank.
struct RankShare {
  std::int64_t all = 0;
  std::int64_t interior = 0;  ///< of rows that need no x of other ranks
  std::int64_t before = 0;    ///< of those before the first row that does, in the order that the rows get

  bool overlaps() const { return 2 * before >= all; }
};

/// "12 %", or "12 to 40 %".
std::string percent(const std::vector<RankShare>& ranks, std::int64_t RankShare::*part) {
  double least = 100, most = 0;
  for (const RankShare& rank : ranks) {
    if (rank.all == 0) continue;
    const double share = 100.0 * static_cast<double>(rank.*part) / static_cast<double>(rank.all);
    least = std::min(least, share), most = std::max(most, share);
  }
  const std::string from = fmt::format("{:.0f}", least), to = fmt::format("{:.0f}", most);
  return from == to ? to + " %" : fmt::format("{} to {} %", from, to);
}

std::string why_rows_wait(const std::vector<RankShare>& ranks, const MatrixOptions& options) {
  const bool all_overlap = std::all_of(ranks.begin(), ranks.end(), [](const RankShare& rank) { return rank.overlaps(); });
  const bool in_best_order =
      std::all_of(ranks.begin(), ranks.end(), [](const RankShare& rank) { return rank.before == rank.interior; });
  if (all_overlap && in_best_order) return {};
  const std::string some_wait = all_overlap ? "" : "; ranks where they hold less than half wait for x";
  if (in_best_order)
    return fmt::format("rows that need no x of other ranks hold {} of a rank's nonzeros{}",
                       percent(ranks, &RankShare::interior), some_wait);
  return fmt::format(
      "the rows lie {}: those before the first row that needs x of other ranks hold {} of a rank's nonzeros, all that need "
      "none hold {}{}",
      options.natural_order ? "in their natural order" : "on the map of another matrix", percent(ranks, &RankShare::before),
      percent(ranks, &RankShare::interior), some_wait);
}

bool order_is_given(const LoadedPart& part, const MatrixOptions& options) {
  return options.natural_order || options.y_rows || (part.square() && options.x_rows);
}

/// Moves boundary rows last if that pays. Of this rank alone.
RankShare order_rows(LoadedPart& part, bool ordered, const Context& context, Boundary& found) {
  const auto rank = static_cast<std::size_t>(context.communicator().rank());
  const std::vector<std::int64_t>& starts = part.of_x().starts;
  const BoundaryRows boundary = find_boundary_rows(part.csr.view(), starts[rank], starts[rank + 1]);
  RankShare share{part.csr.nnz(), part.csr.nnz() - boundary.nnz, part.csr.nnz() - boundary.nnz};
  std::int64_t rows = boundary.rows;
  if (ordered) {
    rows = boundary.rows_from_first();
    share.before = part.csr.row_ptr.empty() ? 0 : part.csr.row_ptr[static_cast<std::size_t>(part.csr.rows - rows)];
  }
  if (!share.overlaps()) return share;
  found.rows = rows, found.interior_nnz = share.before;
  if (rows == 0 || ordered) return share;
  const HostVector<std::int64_t> order = boundary.order();
  part.y.places = part.y.places.empty() ? order : in_order(part.y.places, order);
  part.y.ids = in_order(part.y.ids, order);
  part.value_starts = in_order(part.value_starts, order);
  move_boundary_last(part.csr, boundary);
  return share;
}

}  // namespace

std::int64_t BoundaryRows::rows_from_first() const { return of_row.end() - std::find(of_row.begin(), of_row.end(), 1); }

HostVector<std::int64_t> BoundaryRows::order() const {
  HostVector<std::int64_t> order(of_row.size());
  std::size_t interior = 0, last = of_row.size() - static_cast<std::size_t>(rows);
  for (std::size_t i = 0; i < of_row.size(); ++i) order[of_row[i] != 0 ? last++ : interior++] = static_cast<std::int64_t>(i);
  std::rotate(order.end() - rows, order.end() - rows + before_middle(*this), order.end());
  return order;
}

BoundaryRows find_boundary_rows(const CsrView& part, std::int64_t begin, std::int64_t end) {
  BoundaryRows boundary;
  boundary.of_row.resize(static_cast<std::size_t>(part.rows));
  std::atomic<std::int64_t> rows = 0, nnz = 0;
  part.col_idx.visit([&](const auto& columns) {
    parallel_ranges(part.rows, 1 << 12, [&](std::int64_t first, std::int64_t last) {
      std::int64_t their_rows = 0, their_nnz = 0;
      for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(last); ++row) {
        const std::int64_t from = part.row_ptr[row], to = part.row_ptr[row + 1];
        const bool waits = std::any_of(columns.begin() + from, columns.begin() + to,
                                       [&](std::int64_t column) { return column < begin || column >= end; });
        boundary.of_row[row] = waits ? 1 : 0;
        if (waits) ++their_rows, their_nnz += to - from;
      }
      rows += their_rows, nnz += their_nnz;
    });
  });
  boundary.rows = rows, boundary.nnz = nnz;
  return boundary;
}

void move_boundary_last(CompactCsr& part, const BoundaryRows& boundary) {
  reorder_rows(part, boundary.order(), part.rows - boundary.rows);
}

bool may_overlap(const MatrixOptions& options, std::int64_t columns, std::int64_t column_block, const Context& context) {
  if (options.overlap == Overlap::no || context.communicator().size() == 1) return false;
  if (column_block > 0 && column_block < columns) return false;
  if (options.overlap == Overlap::yes || columns == 1) return true;
  const std::size_t entry_bytes = static_cast<std::size_t>(columns) * size_of(options.type);
  return context.device().backend == Backend::cuda && !is_half(options.type) && entry_bytes % 16 == 0;
}

Boundary find_boundary(LoadedPart& part, const MatrixOptions& options, Context& context) {
  Communicator& communicator = context.communicator();
  Boundary found;
  if (!may_overlap(options, options.right_hand_sides, options.column_block, context)) return found;
  const RankShare mine =
      communicator.run_agreed([&] { return order_rows(part, order_is_given(part, options), context, found); });
  const std::vector<RankShare> ranks = communicator.all_gather(mine);
  found.overlaps = std::all_of(ranks.begin(), ranks.end(), [](const RankShare& rank) { return rank.overlaps(); });
  found.why_rows_wait = why_rows_wait(ranks, options);
  return found;
}

}  // namespace shardmat
