#include "runtime/solvers/multigrid/node_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "kernels/base/parallel.h"
#include "runtime/solvers/multigrid/blocks.h"

namespace shardmat::multigrid {
namespace {

/// The columns of `lists` that this rank does not have, ascending.
HostVector<std::int64_t> ghosts_in(const Lists& lists, const std::vector<std::int64_t>& starts, const Communicator& ranks) {
  const std::int64_t first = starts[at(ranks.rank())], end = starts[at(ranks.rank()) + 1];
  HostVector<std::int64_t> ghosts;
  for (const std::int64_t id : lists.id)
    if (id < first || id >= end) ghosts.push_back(id);
  std::sort(ghosts.begin(), ghosts.end());
  ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
  return ghosts;
}

/// The rows of `lists` with the numbers of `cols`; equal columns are added.
NodeRows numbered(const Lists& lists, int row_size, int col_size, std::shared_ptr<const Nodes> rows,
                  std::shared_ptr<const Nodes> cols) {
  NodeRows m{row_size, col_size, std::move(rows), std::move(cols), {}, {}, {}};
  const std::int64_t count = lists.count(), entries = m.block_entries();
  HostVector<std::int32_t> local(lists.id.size());
  HostVector<std::int64_t> order(lists.id.size());
  m.start.resize(at(count + 1));
  m.start[0] = 0;
  parallel_ranges(count, kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = lists.start[at(i)], last = lists.start[at(i) + 1];
      for (std::int64_t k = first; k < last; ++k) local[at(k)] = m.cols->local(lists.id[at(k)]), order[at(k)] = k;
      std::sort(order.begin() + first, order.begin() + last, [&](std::int64_t a, std::int64_t b) {
        return local[at(a)] != local[at(b)] ? local[at(a)] < local[at(b)] : a < b;
      });
      std::int64_t different = 0;
      for (std::int64_t k = first; k < last; ++k)
        different += k == first || local[at(order[at(k)])] != local[at(order[at(k - 1)])] ? 1 : 0;
      m.start[at(i) + 1] = different;
    }
  });
  std::partial_sum(m.start.begin(), m.start.end(), m.start.begin());
  m.column.resize(at(m.start.back()));
  m.value.resize(at(m.start.back() * entries));
  parallel_ranges(count, kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t to = m.start[at(i)] - 1;
      for (std::int64_t k = lists.start[at(i)]; k < lists.start[at(i) + 1]; ++k) {
        const std::int64_t from = order[at(k)];
        const double* const block = lists.value.data() + from * entries;
        if (k == lists.start[at(i)] || local[at(from)] != m.column[at(to)]) {
          m.column[at(++to)] = local[at(from)];
          std::copy_n(block, entries, m.block(to));
        } else {
          for (std::int64_t e = 0; e < entries; ++e) m.block(to)[e] += block[e];
        }
      }
    }
  });
  return m;
}

}  // namespace

std::int64_t NodeRows::find(std::int64_t i, std::int32_t wanted) const {
  const auto begin = column.begin() + start[at(i)], end = column.begin() + start[at(i) + 1];
  const auto found = std::lower_bound(begin, end, wanted);
  return found != end && *found == wanted ? found - column.begin() : -1;
}

Lists to_lists(const NodeRows& m) {
  Lists lists;
  lists.each = m.block_entries();
  lists.start = m.start;
  lists.id.resize(m.column.size());
  for (std::size_t k = 0; k < m.column.size(); ++k) lists.id[k] = m.cols->global(m.column[k]);
  lists.value = m.value;
  return lists;
}

NodeRows from_lists(const Lists& lists, int row_size, int col_size, std::shared_ptr<const Nodes> rows,
                    const std::vector<std::int64_t>& starts) {
  Communicator& ranks = rows->ranks();
  auto cols = std::make_shared<const Nodes>(starts, ghosts_in(lists, starts, ranks), ranks);
  return numbered(lists, row_size, col_size, std::move(rows), std::move(cols));
}

NodeRows square_from_lists(const Lists& lists, int size, const std::vector<std::int64_t>& starts, Communicator& ranks) {
  const auto nodes = std::make_shared<const Nodes>(starts, ghosts_in(lists, starts, ranks), ranks);
  return numbered(lists, size, size, nodes, nodes);
}

WithGhostRows::WithGhostRows(const NodeRows& m, const std::shared_ptr<const Nodes>& nodes) : m_(m) {
  Communicator& ranks = nodes->ranks();
  if (ranks.size() == 1) return;
  const Lists come = nodes->fetch(to_lists(m));
  const std::vector<std::int64_t>& starts = m.cols->starts();
  HostVector<std::int64_t> ghosts;
  const HostVector<std::int64_t> before = m.cols->ghosts(), more = ghosts_in(come, starts, ranks);
  std::set_union(before.begin(), before.end(), more.begin(), more.end(), std::back_inserter(ghosts));
  const auto cols = std::make_shared<const Nodes>(starts, std::move(ghosts), ranks);
  const NodeRows ghost_rows = numbered(come, m.row_size, m.col_size, nodes, cols);
  // Own rows stay in order: their columns have the same order among more ghosts.
  HostVector<std::int32_t> number(at(m.cols->local_count()));
  std::iota(number.begin(), number.begin() + m.cols->own(), 0);
  for (std::int64_t g = m.cols->own(); g < m.cols->local_count(); ++g) number[at(g)] = cols->local(m.cols->global(g));
  NodeRows& all = all_.emplace(NodeRows{m.row_size, m.col_size, nodes, cols, m.start, {}, m.value});
  all.column.resize(m.column.size());
  parallel_ranges(m.blocks(), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) all.column[at(k)] = number[at(m.column[at(k)])];
  });
  for (std::int64_t i = 0; i < ghost_rows.count(); ++i)
    all.start.push_back(all.start.back() + ghost_rows.start[at(i) + 1] - ghost_rows.start[at(i)]);
  all.column.insert(all.column.end(), ghost_rows.column.begin(), ghost_rows.column.end());
  all.value.insert(all.value.end(), ghost_rows.value.begin(), ghost_rows.value.end());
}

ByColumn by_column(const NodeRows& m) {
  const std::int64_t columns = m.cols->local_count(), parts = m.blocks() < (1 << 16) ? 1 : 8,
                     rows = (m.count() + parts - 1) / parts;
  ByColumn by;
  // How many blocks of each column stand in the rows of each part; then where the first of them goes.
  std::vector<HostVector<std::int64_t>> next(at(parts));
  const auto each_block = [&](std::int64_t part, auto use) {
    for (std::int64_t i = part * rows; i < std::min(m.count(), (part + 1) * rows); ++i)
      for (std::int64_t k = m.start[at(i)]; k < m.start[at(i) + 1]; ++k) use(i, k, at(m.column[at(k)]));
  };
  parallel_tasks(parts, [&](std::int64_t part) {
    next[at(part)].assign(at(columns), 0);
    each_block(part, [&](std::int64_t, std::int64_t, std::size_t column) { ++next[at(part)][column]; });
  });
  by.start.resize(at(columns + 1));
  std::int64_t all = 0;
  for (std::size_t column = 0; column < at(columns); ++column) {
    by.start[column] = all;
    for (HostVector<std::int64_t>& of_part : next) all += std::exchange(of_part[column], all);
  }
  by.start.back() = all;
  by.row.resize(at(all)), by.block.resize(at(all));
  parallel_tasks(parts, [&](std::int64_t part) {
    each_block(part, [&](std::int64_t i, std::int64_t k, std::size_t column) {
      const std::int64_t to = next[at(part)][column]++;
      by.row[at(to)] = static_cast<std::int32_t>(i), by.block[at(to)] = k;
    });
  });
  return by;
}

NodeRows transposed(const NodeRows& m, const ByColumn& columns) {
  const std::int64_t entries = m.block_entries();
  HostVector<double> values(m.value.size());
  parallel_ranges(m.blocks(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t to = begin; to < end; ++to) {
      const double* const from = m.block(columns.block[at(to)]);
      for (int c = 0; c < m.col_size; ++c)
        for (int r = 0; r < m.row_size; ++r) values[at(to * entries + c * m.row_size + r)] = from[r * m.col_size + c];
    }
  });
  const auto rows_of_result = std::make_shared<const Nodes>(m.cols->starts(), HostVector<std::int64_t>(), m.cols->ranks());
  if (m.cols->ranks().size() == 1)
    return {m.col_size, m.row_size, rows_of_result, m.rows, columns.start, columns.row, std::move(values)};
  Lists lists;
  lists.each = entries;
  lists.start = columns.start;
  lists.id.resize(columns.row.size());
  for (std::size_t k = 0; k < lists.id.size(); ++k) lists.id[k] = m.rows->global(columns.row[k]);
  lists.value = std::move(values);
  return from_lists(m.cols->bring_home(lists), m.col_size, m.row_size, rows_of_result, m.rows->starts());
}

HostVector<double> inverse_diagonal(const NodeRows& m) {
  const std::int64_t entries = m.block_entries();
  HostVector<double> inverse(at(m.count() * entries));
  parallel_ranges(m.count(), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double* const to = inverse.data() + i * entries;
      const std::int64_t k = m.find(i, static_cast<std::int32_t>(i));
      if (k < 0) std::fill_n(to, entries, 0.0);
      else invert_symmetric(m.block(k), to, m.row_size);
    }
  });
  return inverse;
}

void invert_symmetric(const double* a, double* inverse, int s) {
  constexpr int kMost = 12;
  constexpr double kSingular = 1e-13;
  // Gauss-Jordan with pivots on the diagonal; those that vanish beside what stood there are left out.
  double m[kMost][2 * kMost];
  bool left_out[kMost] = {}, done[kMost] = {};
  for (int i = 0; i < s; ++i)
    for (int j = 0; j < s; ++j) m[i][j] = a[i * s + j], m[i][s + j] = i == j ? 1 : 0;
  for (int step = 0; step < s; ++step) {
    const auto left = [&](int i) { return a[i * s + i] == 0 ? 0 : std::abs(m[i][i] / a[i * s + i]); };
    int pivot = -1;
    for (int i = 0; i < s; ++i)
      if (!done[i] && (pivot < 0 || left(i) > left(pivot))) pivot = i;
    done[pivot] = true;
    if (!(left(pivot) > kSingular)) {
      left_out[pivot] = true;
      continue;
    }
    const double factor = 1 / m[pivot][pivot];
    for (int j = 0; j < 2 * s; ++j) m[pivot][j] *= factor;
    for (int i = 0; i < s; ++i) {
      const double times = m[i][pivot];
      if (i == pivot || times == 0) continue;
      for (int j = 0; j < 2 * s; ++j) m[i][j] -= times * m[pivot][j];
    }
  }
  for (int i = 0; i < s; ++i)
    for (int j = 0; j < s; ++j) inverse[i * s + j] = left_out[i] || left_out[j] ? 0 : m[i][s + j];
}

}  // namespace shardmat::multigrid
