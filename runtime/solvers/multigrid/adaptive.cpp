#include "runtime/solvers/multigrid/adaptive.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/base/parallel.h"
#include "partition/generators/counter_random.h"

namespace shardmat::multigrid {
namespace {

constexpr std::uint64_t kSeed = 0xada;
constexpr int kCyclesBetween = 4;  ///< until vectors are made orthogonal again
/// A vector is spanned by those before it if less than this share of its square is left.
constexpr double kNothingLeft = 1e-12;

/// Makes the last columns of `all` orthogonal to each other and to the columns before `first`, with a mean square of 1.
void make_orthogonal(Modes& all, int first, std::int64_t unknowns, Communicator& ranks) {
  const int n = all.count;
  const std::int64_t own = std::ssize(all.value) / n;
  std::vector<double> gram(at(n * n), 0.0);
  for (std::int64_t i = 0; i < own; ++i) {
    const double* const row = all.value.data() + i * n;
    for (int p = 0; p < n; ++p)
      for (int q = 0; q <= p; ++q) gram[at(p * n + q)] += row[p] * row[q];
  }
  ranks.all_reduce(std::span<double>(gram), Reduction::sum);
  for (int p = 0; p < n; ++p)
    for (int q = 0; q < p; ++q) gram[at(q * n + p)] = gram[at(p * n + q)];
  // Gram and Schmidt on the factors of the columns.
  std::vector<std::vector<double>> factors;
  const auto dot = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (int p = 0; p < n; ++p)
      for (int q = 0; q < n; ++q) sum += a[at(p)] * gram[at(p * n + q)] * b[at(q)];
    return sum;
  };
  for (int c = 0; c < n; ++c) {
    std::vector<double> of_c(at(n), 0.0);
    of_c[at(c)] = 1;
    for (const std::vector<double>& before : factors) {
      const double share = dot(before, of_c);
      for (int p = 0; p < n; ++p) of_c[at(p)] -= share * before[at(p)];
    }
    const double left = dot(of_c, of_c), whole = gram[at(c * n + c)];
    const double scale = left > kNothingLeft * whole && std::isfinite(left) ? 1 / std::sqrt(left) : 0;
    for (double& factor : of_c) factor *= scale;
    factors.push_back(std::move(of_c));
  }
  const double size = std::sqrt(static_cast<double>(unknowns));
  parallel_ranges(own, grain_of(own, own * n * n), [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> made(at(n));
    for (std::int64_t i = begin; i < end; ++i) {
      double* const row = all.value.data() + i * n;
      for (int c = first; c < n; ++c) {
        made[at(c)] = 0;
        for (int p = 0; p <= c; ++p) made[at(c)] += size * factors[at(c)][at(p)] * row[p];
      }
      std::copy(made.begin() + first, made.end(), row + first);
    }
  });
}

}  // namespace

int adaptive_vectors(int size) { return std::min(size * (size + 1) / 2, 6); }

Modes with_slow_vectors(const Modes& known, int count, const RowMap& map, Communicator& ranks, const Sweep& sweep) {
  const int first = known.count, n = first + count;
  const HostVector<std::int64_t> ids = map.ids_by_place();
  const std::int64_t own = std::ssize(ids);
  Modes all{known.size, n, HostVector<double>(at(own * n))};
  HostVector<double> vectors(at(own * count));
  const CounterRandom random(kSeed, 0);
  for (std::int64_t i = 0; i < own; ++i) {
    const double* const of_known = known.value.data() + i * first;
    std::copy_n(of_known, first, all.value.data() + i * n);
    const bool moves = std::any_of(of_known, of_known + first, [](double value) { return value != 0; });
    const CounterRandom of_row = random.of(ids[at(i)]);
    for (int v = 0; v < count; ++v) all.value[at(i * n + first + v)] = moves ? of_row.symmetric(v) : 0;
  }
  for (int cycle = 0; cycle < kAdaptiveCycles; ++cycle) {
    if (cycle % kCyclesBetween == 0) {
      make_orthogonal(all, first, map.size(), ranks);
      for (std::int64_t i = 0; i < own; ++i)
        std::copy_n(all.value.data() + i * n + first, count, vectors.data() + i * count);
    }
    sweep(vectors);
    if ((cycle + 1) % kCyclesBetween == 0)
      for (std::int64_t i = 0; i < own; ++i)
        std::copy_n(vectors.data() + i * count, count, all.value.data() + i * n + first);
  }
  make_orthogonal(all, first, map.size(), ranks);
  return all;
}

}  // namespace shardmat::multigrid
