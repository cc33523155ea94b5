#include "runtime/solvers/multigrid/node_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "kernels/base/parallel.h"
#include "kernels/blocks/dense_blocks.h"
#include "runtime/solvers/multigrid/blocks.h"
#include "runtime/solvers/multigrid/form_rows.h"

namespace shardmat::multigrid {
namespace {

constexpr std::int64_t kWorkOfSorting = 8;  ///< a column, in values

/// The rows of `lists` with the numbers of `cols`; equal columns are added.
NodeRows numbered(const Lists& lists, int row_size, int col_size, std::shared_ptr<const Nodes> rows,
                  std::shared_ptr<const Nodes> cols) {
  NodeRows m{row_size, col_size, std::move(rows), std::move(cols), {}, {}, {}};
  const std::int64_t count = lists.count(), entries = m.block_entries();
  HostVector<std::int32_t> local(lists.id.size());
  HostVector<std::int64_t> order(lists.id.size());
  const std::int64_t grain = grain_of(count, std::ssize(lists.id) * (entries + kWorkOfSorting));
  m.start.resize(at(count + 1));
  m.start[0] = 0;
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
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
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
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

void add_row_to(Lists& lists, const NodeRows& m, std::int64_t i) {
  const std::int64_t begin = m.start[at(i)], end = m.start[at(i) + 1];
  for (std::int64_t k = begin; k < end; ++k) lists.id.push_back(m.cols->global(m.column[at(k)]));
  lists.value.insert(lists.value.end(), m.block(begin), m.block(end));
  lists.start.push_back(std::ssize(lists.id));
}

}  // namespace

std::int64_t NodeRows::find(std::int64_t i, std::int32_t wanted) const {
  const auto begin = column.begin() + start[at(i)], end = column.begin() + start[at(i) + 1];
  const auto found = std::lower_bound(begin, end, wanted);
  return found != end && *found == wanted ? found - column.begin() : -1;
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

WithGhostRows::WithGhostRows(const NodeRows& m, const std::shared_ptr<const Nodes>& nodes) : own_(m), cols_(m.cols) {
  Communicator& ranks = nodes->ranks();
  if (ranks.size() == 1) return;
  Lists wanted;
  wanted.each = m.block_entries();
  for (const std::int32_t node : nodes->wanted()) add_row_to(wanted, m, node);
  const Lists come = nodes->fetch(wanted);
  const std::vector<std::int64_t>& starts = m.cols->starts();
  HostVector<std::int64_t> ghosts;
  const HostVector<std::int64_t>&before = m.cols->ghosts(), more = ghosts_in(come, starts, ranks);
  std::set_union(before.begin(), before.end(), more.begin(), more.end(), std::back_inserter(ghosts));
  cols_ = std::make_shared<const Nodes>(starts, std::move(ghosts), ranks);
  of_ghosts_ = numbered(come, m.row_size, m.col_size, nodes, cols_);
  number_ = numbers_in(*m.cols, *cols_);
}

NodeRows brought_home(NodeRows m, bool square) {
  const Nodes& rows = *m.rows;
  Communicator& ranks = rows.ranks();
  const std::int64_t own = rows.own(), entries = m.block_entries();
  if (ranks.size() == 1) {
    m.rows = std::make_shared<const Nodes>(rows.starts(), HostVector<std::int64_t>(), ranks);
    if (square) m.cols = m.rows;
    return m;
  }
  Lists of_ghosts;
  of_ghosts.each = entries;
  for (std::int64_t g = own; g < m.count(); ++g) add_row_to(of_ghosts, m, g);
  const Lists come = rows.send_home(of_ghosts);
  const std::vector<std::int64_t>& starts = m.cols->starts();
  // The ghosts that are still columns, and those that came.
  HostVector<char> used(at(m.cols->local_count()), 0);
  for (std::int64_t k = 0; k < m.start[at(own)]; ++k) used[at(m.column[at(k)])] = 1;
  HostVector<std::int64_t> still, ghosts;
  for (std::int64_t g = m.cols->own(); g < m.cols->local_count(); ++g)
    if (used[at(g)] != 0) still.push_back(m.cols->global(g));
  const HostVector<std::int64_t> more = ghosts_in(come, starts, ranks);
  std::set_union(still.begin(), still.end(), more.begin(), more.end(), std::back_inserter(ghosts));
  const auto cols = std::make_shared<const Nodes>(starts, std::move(ghosts), ranks);
  const HostVector<std::int32_t> number = numbers_in(*m.cols, *cols);
  // What came of each row.
  HostVector<std::int64_t> first(at(own + 1), 0), which(rows.wanted().size());
  for (const std::int32_t node : rows.wanted()) ++first[at(node) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  HostVector<std::int64_t> next(first.begin(), first.end() - 1);
  for (std::size_t i = 0; i < which.size(); ++i) which[at(next[at(rows.wanted()[i])]++)] = static_cast<std::int64_t>(i);
  HostVector<std::int32_t> local(come.id.size());
  parallel_ranges(std::ssize(local), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) local[at(k)] = cols->local(come.id[at(k)]);
  });
  NodeRows out{m.row_size, m.col_size, nullptr, cols, {}, {}, {}};
  out.rows = square ? cols : std::make_shared<const Nodes>(rows.starts(), HostVector<std::int64_t>(), ranks);
  const auto each_block = [&](std::int64_t i, auto use) SHARDMAT_INLINE_LAMBDA {
    for (std::int64_t k = m.start[at(i)]; k < m.start[at(i) + 1]; ++k) use(number[at(m.column[at(k)])], m.block(k));
    for (std::int64_t w = first[at(i)]; w < first[at(i) + 1]; ++w)
      for (std::int64_t k = come.start[at(which[at(w)])]; k < come.start[at(which[at(w)]) + 1]; ++k)
        use(local[at(k)], come.value.data() + k * entries);
  };
  form_rows(
      own, cols->local_count(), (m.blocks() + std::ssize(come.id)) * entries, each_block,
      [entries](double* sum, const double* block) SHARDMAT_INLINE_LAMBDA {
        for (std::int64_t e = 0; e < entries; ++e) sum[e] += block[e];
      },
      out);
  return out;
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
  Communicator& ranks = m.rows->ranks();
  auto cols = std::make_shared<const Nodes>(m.rows->starts(), HostVector<std::int64_t>(), ranks);
  return {m.col_size, m.row_size, m.cols, std::move(cols), columns.start, columns.row, std::move(values)};
}

HostVector<double> inverse_diagonal(const NodeRows& m) {
  const std::int64_t entries = m.block_entries();
  HostVector<double> inverse(at(m.count() * entries));
  parallel_ranges(m.count(), m.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double* const to = inverse.data() + i * entries;
      const std::int64_t k = m.find(i, static_cast<std::int32_t>(i));
      if (k < 0) std::fill_n(to, entries, 0.0);
      else invert_symmetric(m.block(k), to, m.row_size);
    }
  });
  return inverse;
}

void invert_symmetric(const double* a, double* inverse, int s) { blocks::invert_symmetric<0>(a, inverse, s); }

}  // namespace shardmat::multigrid
