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

/// All rows of A on every rank, row-major.
HostVector<double> gathered(const NodeRows& a) {
  const Nodes& nodes = *a.rows;
  Communicator& ranks = nodes.ranks();
  const std::int64_t n = nodes.all() * a.row_size, size = a.row_size;
  std::int64_t most = 0;
  for (std::size_t p = 0; p + 1 < nodes.starts().size(); ++p)
    most = std::max(most, nodes.starts()[p + 1] - nodes.starts()[p]);
  const std::int64_t slot = most * size * n;
  HostVector<double> slots = ranks.run_agreed([&] {
    require_host_memory(8 * (slot * ranks.size() + 2 * n * n), "the last level of multigrid");
    HostVector<double> all(at(slot * ranks.size()), 0.0);
    double* const mine = all.data() + slot * ranks.rank();
    for (std::int64_t i = 0; i < a.count(); ++i)
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
        const std::int64_t j = a.cols->global(a.column[at(k)]);
        for (std::int64_t r = 0; r < size; ++r)
          std::copy_n(a.block(k) + r * size, size, mine + (i * size + r) * n + j * size);
      }
    return all;
  });
  if (ranks.size() == 1) return slots;
  ranks.all_gather_slots(slots.data(), at(slot) * sizeof(double));
  HostVector<double> dense;
  dense.reserve(at(n * n));
  for (std::size_t p = 0; p + 1 < nodes.starts().size(); ++p) {
    const double* const from = slots.data() + slot * static_cast<std::int64_t>(p);
    dense.insert(dense.end(), from, from + (nodes.starts()[p + 1] - nodes.starts()[p]) * size * n);
  }
  return dense;
}

/// The modes of all ranks, row-major, one row an unknown.
HostVector<double> gathered(const Modes& modes, const Nodes& nodes) {
  Communicator& ranks = nodes.ranks();
  if (ranks.size() == 1) return modes.value;
  const std::int64_t entries = std::int64_t{modes.size} * modes.count;
  std::int64_t most = 0;
  for (std::size_t p = 0; p + 1 < nodes.starts().size(); ++p)
    most = std::max(most, nodes.starts()[p + 1] - nodes.starts()[p]);
  HostVector<double> slots(at(most * entries * ranks.size()), 0.0);
  std::copy(modes.value.begin(), modes.value.end(), slots.begin() + most * entries * ranks.rank());
  ranks.all_gather_slots(slots.data(), at(most * entries) * sizeof(double));
  HostVector<double> all;
  for (std::size_t p = 0; p + 1 < nodes.starts().size(); ++p) {
    const double* const from = slots.data() + most * entries * static_cast<std::int64_t>(p);
    all.insert(all.end(), from, from + (nodes.starts()[p + 1] - nodes.starts()[p]) * entries);
  }
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
    parallel_ranges(n, kRowGrain, [&](std::int64_t begin, std::int64_t end) {
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

/// In place, by Gauss and Jordan with exchanges of rows.
void invert_any(HostVector<double>& a, std::int64_t n) {
  std::vector<double> before(at(n)), column(at(n));
  std::vector<std::int64_t> taken(at(n));  // the row that became row k
  for (std::int64_t k = 0; k < n; ++k) {
    taken[at(k)] = k;
    for (std::int64_t i = 0; i < n; ++i) before[at(k)] = std::max(before[at(k)], std::abs(a[at(i * n + k)]));
  }
  for (std::int64_t k = 0; k < n; ++k) {
    double* const pivot_row = a.data() + k * n;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::abs(a[at(i * n + k)]) > std::abs(a[at(taken[at(k)] * n + k)])) taken[at(k)] = i;
    if (taken[at(k)] != k) std::swap_ranges(pivot_row, pivot_row + n, a.data() + taken[at(k)] * n);
    if (!(std::abs(pivot_row[k]) > kLost * before[at(k)])) {
      std::fill_n(pivot_row, n, 0.0);
      for (std::int64_t i = 0; i < n; ++i) a[at(i * n + k)] = 0;
      continue;
    }
    const double inverse = 1 / pivot_row[k];
    for (std::int64_t i = 0; i < n; ++i) column[at(i)] = a[at(i * n + k)];
    pivot_row[k] = 1;
    for (std::int64_t j = 0; j < n; ++j) pivot_row[j] *= inverse;
    parallel_ranges(n, kRowGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const double factor = column[at(i)];
        if (i == k || factor == 0) continue;
        double* const row = a.data() + i * n;
        row[k] = 0;
        for (std::int64_t j = 0; j < n; ++j) row[j] -= factor * pivot_row[j];
      }
    });
  }
  for (std::int64_t k = n - 1; k >= 0; --k)
    if (taken[at(k)] != k)
      for (std::int64_t i = 0; i < n; ++i) std::swap(a[at(i * n + k)], a[at(i * n + taken[at(k)])]);
}

}  // namespace

NodeRows dense_inverse(const NodeRows& a, const Modes& free, bool symmetric) {
  const Nodes& nodes = *a.rows;
  Communicator& ranks = nodes.ranks();
  const std::int64_t size = a.row_size, n = nodes.all() * size;
  HostVector<double> dense = gathered(a);
  const HostVector<double> vectors = gathered(free, nodes);
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
