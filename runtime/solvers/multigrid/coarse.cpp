#include "runtime/solvers/multigrid/coarse.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

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
    require_host_memory(8 * (slot * ranks.size() + n * n), "the last level of multigrid");
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

/// In place, by Gauss and Jordan. A symmetric A is positive but for directions that are left out: rows are not exchanged.
void invert(HostVector<double>& a, std::int64_t n, bool symmetric) {
  std::vector<double> before(at(n)), column(at(n));
  std::vector<std::int64_t> taken(at(n));  // the row that became row k
  for (std::int64_t k = 0; k < n; ++k) {
    taken[at(k)] = k;
    before[at(k)] = a[at(k * n + k)];
    if (!symmetric)  // the largest entry of the column
      for (std::int64_t i = 0; i < n; ++i) before[at(k)] = std::max(before[at(k)], std::abs(a[at(i * n + k)]));
  }
  for (std::int64_t k = 0; k < n; ++k) {
    double* const pivot_row = a.data() + k * n;
    if (!symmetric) {
      for (std::int64_t i = k + 1; i < n; ++i)
        if (std::abs(a[at(i * n + k)]) > std::abs(a[at(taken[at(k)] * n + k)])) taken[at(k)] = i;
      if (taken[at(k)] != k) std::swap_ranges(pivot_row, pivot_row + n, a.data() + taken[at(k)] * n);
    }
    if (!((symmetric ? pivot_row[k] : std::abs(pivot_row[k])) > kLost * before[at(k)])) {
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
    invert(dense, n, symmetric);
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
