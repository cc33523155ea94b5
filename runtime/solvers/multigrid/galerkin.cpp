#include "runtime/solvers/multigrid/galerkin.h"

#include <numeric>
#include <utility>

#include "runtime/solvers/multigrid/blocks.h"
#include "runtime/solvers/multigrid/form_rows.h"

namespace shardmat::multigrid {
namespace {

/// Which blocks of P stand in each of its columns, own and ghosts.
struct Columns {
  HostVector<std::int64_t> start, row, block;
};
Columns columns_of(const NodeRows& p) {
  Columns c;
  c.start.assign(at(p.cols->local_count() + 1), 0);
  for (const std::int32_t j : p.column) ++c.start[at(j) + 1];
  std::partial_sum(c.start.begin(), c.start.end(), c.start.begin());
  c.row.resize(p.column.size()), c.block.resize(p.column.size());
  HostVector<std::int64_t> next(c.start.begin(), c.start.end() - 1);
  for (std::int64_t i = 0; i < p.count(); ++i)
    for (std::int64_t k = p.start[at(i)]; k < p.start[at(i) + 1]; ++k) {
      const std::int64_t to = next[at(p.column[at(k)])]++;
      c.row[at(to)] = i, c.block[at(to)] = k;
    }
  return c;
}

/// Rows of coarse nodes that lie on other ranks go there; all ranks add what they get to their own.
NodeRows brought_home(NodeRows c, const std::shared_ptr<const Nodes>& rows) {
  Communicator& ranks = rows->ranks();
  if (ranks.size() == 1) {
    c.rows = c.cols = rows;
    return c;
  }
  return square_from_lists(rows->bring_home(to_lists(c)), c.row_size, rows->starts(), ranks);
}

void mend_diagonal(NodeRows& c) {
  const int m = c.row_size;
  for (std::int64_t i = 0; i < c.count(); ++i) {
    const std::int64_t k = c.find(i, static_cast<std::int32_t>(i));
    if (k < 0) continue;
    double* const d = c.block(k);
    double trace = 0;
    for (int r = 0; r < m; ++r) trace += d[r * m + r];
    for (int r = 0; r < m; ++r)
      if (d[r * m + r] == 0) d[r * m + r] = trace > 0 ? trace / m : 1;
  }
}

}  // namespace

NodeRows multiply(const NodeRows& a, const NodeRows& b) {
  NodeRows out{a.row_size, b.col_size, a.rows, b.cols, {}, {}, {}};
  const std::int64_t columns = b.cols->local_count();
  const auto each = [&](std::int64_t i, auto use) SHARDMAT_INLINE_LAMBDA {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
      const std::int64_t j = a.column[at(k)];
      for (std::int64_t l = b.start[at(j)]; l < b.start[at(j) + 1]; ++l) use(b.column[at(l)], a.block(k), b.block(l));
    }
  };
  form_pattern(a.count(), columns, each, out);
  with_sizes(a.row_size, b.col_size, [&]<int kS, int kM>(Known<kS>, Known<kM>) {
    const int s = a.row_size, m = b.col_size;
    form_values(
        columns, each,
        [s, m](const double* x, const double* y, double* sum)
            SHARDMAT_INLINE_LAMBDA { add_product<kS, kM>(x, y, sum, s, m); },
        out);
  });
  return out;
}

NodeRows galerkin(const NodeRows& a, const NodeRows& p) {
  const NodeRows ap = multiply(a, *WithGhostRows(p, a.cols));
  const Columns columns = columns_of(p);
  NodeRows c{p.col_size, p.col_size, nullptr, ap.cols, {}, {}, {}};
  const auto each = [&](std::int64_t g, auto use) SHARDMAT_INLINE_LAMBDA {
    for (std::int64_t t = columns.start[at(g)]; t < columns.start[at(g) + 1]; ++t) {
      const std::int64_t i = columns.row[at(t)];
      const double* const of_p = p.block(columns.block[at(t)]);
      for (std::int64_t l = ap.start[at(i)]; l < ap.start[at(i) + 1]; ++l) use(ap.column[at(l)], of_p, ap.block(l));
    }
  };
  form_pattern(p.cols->local_count(), ap.cols->local_count(), each, c);
  with_sizes(p.row_size, p.col_size, [&]<int kS, int kM>(Known<kS>, Known<kM>) {
    const int s = p.row_size, m = p.col_size;
    form_values(
        ap.cols->local_count(), each,
        [s, m](const double* x, const double* y, double* sum)
            SHARDMAT_INLINE_LAMBDA { add_transposed_product<kS, kM>(x, y, sum, s, m); },
        c);
  });
  NodeRows coarse = brought_home(std::move(c), p.cols);
  mend_diagonal(coarse);
  return coarse;
}

}  // namespace shardmat::multigrid
