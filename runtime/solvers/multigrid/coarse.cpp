#include "runtime/solvers/multigrid/coarse.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/host/lanes.h"

namespace shardmat::multigrid {
namespace {

/// A pivot that has lost all but this share of its diagonal entry is none.
constexpr double kLost = 1e-13;

/// All nodes for ranks that have some, none for others. Collective.
std::shared_ptr<const Nodes> all_nodes(const Nodes& nodes) {
  HostVector<std::int64_t> others;
  for (std::int64_t j = 0; nodes.own() > 0 && j < nodes.all(); ++j)
    if (j < nodes.first() || j >= nodes.first() + nodes.own()) others.push_back(j);
  return std::make_shared<const Nodes>(nodes.starts(), std::move(others), nodes.ranks());
}

/// The rows of these nodes, row-major. Collective.
HostVector<double> dense_rows(const NodeRows& a, const std::shared_ptr<const Nodes>& nodes) {
  const WithGhostRows rows(a, nodes);
  const std::int64_t size = a.row_size, n = nodes->local_count() * size;
  return nodes->ranks().run_agreed([&] {
    require_host_memory(8 * 3 * n * n, "the last level of multigrid");
    HostVector<double> dense(at(n * n), 0.0);
    for (std::int64_t i = 0; i < nodes->local_count(); ++i)
      rows.each_block(i, [&](std::int32_t column, const double* block) {
        double* const to = dense.data() + nodes->global(i) * size * n + rows.cols()->global(column) * size;
        for (std::int64_t r = 0; r < size; ++r) std::copy_n(block + r * size, size, to + r * n);
      });
    return dense;
  });
}

/// The modes of these nodes, one row an unknown. Collective.
HostVector<double> modes_of(const Modes& modes, const Nodes& nodes) {
  const std::int64_t entries = std::int64_t{modes.size} * modes.count;
  const HostVector<double> of_ghosts = nodes.fetch<double>(modes.value, entries);
  HostVector<double> all(at(nodes.local_count() * entries));
  for (std::int64_t i = 0; i < nodes.local_count(); ++i)
    std::copy_n(i < nodes.own() ? modes.value.data() + i * entries : of_ghosts.data() + (i - nodes.own()) * entries, entries,
                all.data() + nodes.global(i) * entries);
  return all;
}

/// Adds largest diagonal entry · v·vᵀ / vᵀ·v for each of `count` vectors.
void stiffen(HostVector<double>& a, std::int64_t n, const HostVector<double>& vectors, int count) {
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, a[at(i * n + i)]);
  for (int v = 0; v < count; ++v) {
    double square = 0;
    for (std::int64_t i = 0; i < n; ++i) square += vectors[at(i * count + v)] * vectors[at(i * count + v)];
    if (square == 0) continue;  // of a body that coarser levels do not have
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        a[at(i * n + j)] += largest / square * vectors[at(i * count + v)] * vectors[at(j * count + v)];
  }
}

/// row += Σ factor[b]·rows[b], for kBlock rows of n values, `n` apart. n is a multiple of kBlock.
constexpr int kBlock = 16;
SHARDMAT_INLINE void add_rows(const double* factor, const double* rows, std::int64_t n, double* row) {
  constexpr int kLanes = 8;
  for (std::int64_t j = 0; j < n; j += kLanes) {
    Lanes<double, kLanes> sum = load<kLanes>(row + j);
    for (int b = 0; b < kBlock; ++b) sum += factor[b] * load<kLanes>(rows + b * n + j);
    store(row + j, sum);
  }
}

/// In place, by Gauss and Jordan without exchanges: A is symmetric and positive but for directions that are left out.
/// `before`: what its diagonal was at first.
void invert_positive(double* a, std::int64_t n, const double* before) {
  std::vector<double> column(at(n));
  for (std::int64_t k = 0; k < n; ++k) {
    double* const pivot_row = a + k * n;
    if (!(pivot_row[k] > kLost * before[k])) {
      std::fill_n(pivot_row, n, 0.0);
      for (std::int64_t i = 0; i < n; ++i) a[i * n + k] = 0;
      continue;
    }
    const double inverse = 1 / pivot_row[k];
    for (std::int64_t i = 0; i < n; ++i) column[at(i)] = a[i * n + k];
    pivot_row[k] = 1;
    for (std::int64_t j = 0; j < n; ++j) pivot_row[j] *= inverse;
    for (std::int64_t i = 0; i < n; ++i) {
      if (i == k || column[at(i)] == 0) continue;
      a[i * n + k] = 0;
      for (std::int64_t j = 0; j < n; ++j) a[i * n + j] -= column[at(i)] * pivot_row[j];
    }
  }
}

/// The same for many rows, kBlock pivots at a time.
void invert_positive_in_blocks(HostVector<double>& a, std::int64_t rows) {
  const std::int64_t n = (rows + kBlock - 1) / kBlock * kBlock;
  HostVector<double> all(at(n * n), 0.0);  // whole blocks: further rows of the identity
  std::vector<double> before(at(n), 1.0), pivots(at(kBlock * n));
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(a.data() + i * rows, rows, all.data() + i * n);
  for (std::int64_t i = 0; i < rows; ++i) before[at(i)] = all[at(i * n + i)];
  for (std::int64_t i = rows; i < n; ++i) all[at(i * n + i)] = 1;
  for (std::int64_t k = 0; k < n; k += kBlock) {
    double inverse[kBlock * kBlock];
    for (int b = 0; b < kBlock; ++b) std::copy_n(all.data() + (k + b) * n + k, kBlock, inverse + b * kBlock);
    invert_positive(inverse, kBlock, before.data() + k);
    std::fill(pivots.begin(), pivots.end(), 0.0);
    for (int b = 0; b < kBlock; ++b) {
      add_rows(inverse + b * kBlock, all.data() + k * n, n, pivots.data() + b * n);
      std::copy_n(inverse + b * kBlock, kBlock, pivots.data() + b * n + k);
    }
    parallel_ranges(n, grain_of(n, n * n), [&](std::int64_t begin, std::int64_t end) {
      run_compiled_for(best_isa(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
        for (std::int64_t i = begin; i < end; ++i) {
          if (i >= k && i < k + kBlock) continue;
          double factor[kBlock];
          double* const row = all.data() + i * n;
          for (int b = 0; b < kBlock; ++b) factor[b] = -row[k + b], row[k + b] = 0;
          add_rows(factor, pivots.data(), n, row);
        }
      });
    });
    std::copy(pivots.begin(), pivots.end(), all.begin() + k * n);
  }
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(all.data() + i * n, rows, a.data() + i * rows);
}

/// row -= factor·other, for n values, a multiple of kLanes.
constexpr int kLanesOfAny = 8;
SHARDMAT_INLINE void subtract_row(double factor, const double* other, std::int64_t n, double* row) {
  for (std::int64_t j = 0; j < n; j += kLanesOfAny)
    store(row + j, load<kLanesOfAny>(row + j) - factor * load<kLanesOfAny>(other + j));
}

/// In place, by Gauss and Jordan with exchanges of rows.
void invert_any(HostVector<double>& given, std::int64_t rows) {
  constexpr std::int64_t kEntriesAThread = 1 << 17;  // of one pivot's work: starting threads takes as long as fewer
  const std::int64_t n = (rows + kLanesOfAny - 1) / kLanesOfAny * kLanesOfAny;
  HostVector<double> a(at(rows * n), 0.0);  // further columns of zeros
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(given.data() + i * rows, rows, a.data() + i * n);
  std::vector<double> before(at(rows)), column(at(rows));
  std::vector<std::int64_t> taken(at(rows));  // the row that became row k
  for (std::int64_t k = 0; k < rows; ++k) {
    taken[at(k)] = k;
    for (std::int64_t i = 0; i < rows; ++i) before[at(k)] = std::max(before[at(k)], std::abs(a[at(i * n + k)]));
  }
  for (std::int64_t k = 0; k < rows; ++k) {
    double* const pivot_row = a.data() + k * n;
    for (std::int64_t i = k + 1; i < rows; ++i)
      if (std::abs(a[at(i * n + k)]) > std::abs(a[at(taken[at(k)] * n + k)])) taken[at(k)] = i;
    if (taken[at(k)] != k) std::swap_ranges(pivot_row, pivot_row + n, a.data() + taken[at(k)] * n);
    if (!(std::abs(pivot_row[k]) > kLost * before[at(k)])) {
      std::fill_n(pivot_row, n, 0.0);
      for (std::int64_t i = 0; i < rows; ++i) a[at(i * n + k)] = 0;
      continue;
    }
    const double inverse = 1 / pivot_row[k];
    for (std::int64_t i = 0; i < rows; ++i) column[at(i)] = a[at(i * n + k)];
    pivot_row[k] = 1;
    for (std::int64_t j = 0; j < n; ++j) pivot_row[j] *= inverse;
    parallel_ranges(rows, kEntriesAThread / n + 1, [&](std::int64_t begin, std::int64_t end) {
      run_compiled_for(best_isa(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
        for (std::int64_t i = begin; i < end; ++i) {
          if (i == k || column[at(i)] == 0) continue;
          a[at(i * n + k)] = 0;
          subtract_row(column[at(i)], pivot_row, n, a.data() + i * n);
        }
      });
    });
  }
  for (std::int64_t k = rows - 1; k >= 0; --k)
    if (taken[at(k)] != k)
      for (std::int64_t i = 0; i < rows; ++i) std::swap(a[at(i * n + k)], a[at(i * n + taken[at(k)])]);
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(a.data() + i * n, rows, given.data() + i * rows);
}

}  // namespace

NodeRows dense_inverse(const NodeRows& a, const Modes& free, bool symmetric) {
  const Nodes& nodes = *a.rows;
  Communicator& ranks = nodes.ranks();
  const std::shared_ptr<const Nodes> all = all_nodes(nodes);
  const std::int64_t size = a.row_size, n = all->local_count() * size;
  HostVector<double> dense = dense_rows(a, all);
  const HostVector<double> vectors = modes_of(free, *all);
  Lists lists;
  lists.each = size * size;
  ranks.run_agreed([&] {
    stiffen(dense, n, vectors, free.count);
    if (symmetric) invert_positive_in_blocks(dense, n);
    else invert_any(dense, n);
    const std::int64_t first = nodes.first() * size;
    for (std::int64_t i = 0; i < nodes.own(); ++i) {
      for (std::int64_t j = 0; j < nodes.all(); ++j) {
        lists.id.push_back(j);
        for (std::int64_t r = 0; r < size; ++r)
          for (std::int64_t c = 0; c < size; ++c)
            lists.value.push_back(dense[at((first + i * size + r) * n + j * size + c)]);
      }
      lists.start.push_back(std::ssize(lists.id));
    }
  });
  return square_from_lists(lists, a.row_size, nodes.starts(), ranks);
}

}  // namespace shardmat::multigrid
