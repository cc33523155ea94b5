#include "runtime/solvers/multigrid/prolong.h"

#include <cmath>
#include <utility>

#include "kernels/base/parallel.h"
#include "runtime/solvers/multigrid/blocks.h"
#include "runtime/solvers/multigrid/galerkin.h"

namespace shardmat::multigrid {
namespace {

/// A mode is spanned by those before it if less than this share of its square is left.
constexpr double kSpanned = 1e-16;

}  // namespace

NodeRows tentative(const Aggregates& aggregates, const Modes& modes, const std::shared_ptr<const Nodes>& nodes,
                   Modes& coarse, std::int64_t least) {
  const int s = modes.size, m = modes.count;
  const std::int64_t rows = std::ssize(aggregates.of_node), entries = std::int64_t{s} * m;
  NodeRows t{s, m, nodes, moved_nodes(aggregates.count, least, nodes->ranks()), {0}, {}, {}};
  // Blocks have the order of the rows; members of each aggregate, by their blocks.
  HostVector<std::int64_t> start(at(aggregates.count + 1), 0), member;
  t.start.resize(at(rows + 1)), t.start[0] = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int32_t a = aggregates.of_node[at(i)];
    t.start[at(i) + 1] = t.start[at(i)] + (a >= 0 ? 1 : 0);
    if (a >= 0) ++start[at(a) + 1];
  }
  for (std::int64_t a = 0; a < aggregates.count; ++a) start[at(a) + 1] += start[at(a)];
  t.column.resize(at(t.start.back()));
  t.value.resize(at(t.blocks() * entries));
  member.resize(t.column.size());
  parallel_ranges(rows, grain_of(rows, rows * entries), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (aggregates.of_node[at(i)] < 0) continue;
      const std::int64_t k = t.start[at(i)];
      t.column[at(k)] = aggregates.of_node[at(i)];
      std::copy_n(modes.value.data() + i * entries, entries, t.block(k));
    }
  });
  HostVector<std::int64_t> next(start.begin(), start.end() - 1);
  for (std::int64_t k = 0; k < t.blocks(); ++k) member[at(next[at(t.column[at(k)])]++)] = k;
  coarse.size = coarse.count = m;
  coarse.value.assign(at(t.cols->local_count() * m * m), 0.0);
  parallel_ranges(aggregates.count, grain_of(aggregates.count, t.blocks() * entries * m),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t a = begin; a < end; ++a) {
                      double* const factor = coarse.value.data() + a * m * m;
                      const auto each_row = [&](auto use) {
                        for (std::int64_t k = start[at(a)]; k < start[at(a) + 1]; ++k)
                          for (int r = 0; r < s; ++r) use(t.block(member[at(k)]) + r * m);
                      };
                      const auto dot = [&](int c, int e) {
                        double sum = 0;
                        each_row([&](const double* row) { sum += row[c] * row[e]; });
                        return sum;
                      };
                      for (int c = 0; c < m; ++c) {
                        const double before = dot(c, c);
                        for (int pass = 0; pass < 2; ++pass)  // the second makes up for rounding in thin aggregates
                          for (int e = 0; e < c; ++e) {
                            const double d = dot(c, e);
                            factor[e * m + c] += d;
                            each_row([&](double* row) { row[c] -= d * row[e]; });
                          }
                        const double after = dot(c, c), norm = after > kSpanned * before ? std::sqrt(after) : 0;
                        factor[c * m + c] = norm;
                        each_row([&](double* row) { row[c] *= norm > 0 ? 1 / norm : 0; });
                      }
                    }
                  });
  t.cols->add_home(coarse.value, std::int64_t{m} * m);
  return t;
}

Modes restricted(const NodeRows& t, const Modes& v) {
  const int s = t.row_size, m = t.col_size;
  Modes out{m, v.count, HostVector<double>(at(t.cols->local_count() * m * v.count), 0.0)};
  for (std::int64_t i = 0; i < t.count(); ++i)
    for (std::int64_t k = t.start[at(i)]; k < t.start[at(i) + 1]; ++k)
      for (int r = 0; r < s; ++r)
        for (int c = 0; c < m; ++c)
          for (int e = 0; e < v.count; ++e)
            out.value[at((std::int64_t{t.column[at(k)]} * m + c) * v.count + e)] +=
                t.block(k)[r * m + c] * v.value[at((i * s + r) * v.count + e)];
  t.cols->add_home(out.value, std::int64_t{m} * v.count);
  return out;
}

NodeRows smoothed(const NodeRows& t, const NodeRows& a, const HostVector<double>& inverse, double omega) {
  NodeRows p = multiply(a, WithGhostRows(t, a.cols));
  const int s = p.row_size, m = p.col_size;
  const std::int64_t entries = p.block_entries();
  parallel_ranges(p.count(), p.grain(), [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> product(at(entries));
    for (std::int64_t i = begin; i < end; ++i) {
      const double* const of_t = t.start[at(i)] < t.start[at(i) + 1] ? t.block(t.start[at(i)]) : nullptr;
      const std::int32_t column = of_t == nullptr ? -1 : p.cols->local(t.cols->global(t.column[at(t.start[at(i)])]));
      for (std::int64_t k = p.start[at(i)]; k < p.start[at(i) + 1]; ++k) {
        double* const block = p.block(k);
        std::fill(product.begin(), product.end(), 0.0);
        add_product<0, 0>(inverse.data() + i * s * s, block, product.data(), s, m);
        const bool own = p.column[at(k)] == column;
        for (std::int64_t e = 0; e < entries; ++e) block[e] = (own ? of_t[e] : 0) - omega * product[at(e)];
      }
    }
  });
  return p;
}

}  // namespace shardmat::multigrid
