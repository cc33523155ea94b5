#include "runtime/solvers/multigrid/aggregate.h"

#include <cmath>
#include <numeric>

#include "kernels/base/parallel.h"
#include "runtime/solvers/multigrid/blocks.h"

namespace shardmat::multigrid {
namespace {

SHARDMAT_INLINE double square_of(const double* block, std::int64_t entries) {
  double sum = 0;
  for (std::int64_t e = 0; e < entries; ++e) sum += block[e] * block[e];
  return sum;
}

/// True if the numbers of neighbours are near: on grids, and after a sort by bandwidth. Numbers in any order are a third of
/// all apart.
bool numbers_are_local(const StrongGraph& g) {
  double apart = 0;
  for (std::int64_t i = 0; i < g.count(); ++i)
    for (std::int64_t k = g.start[at(i)]; k < g.start[at(i) + 1]; ++k)
      apart += static_cast<double>(std::abs(g.node[at(k)] - i));
  return apart <= static_cast<double>(std::ssize(g.node)) * static_cast<double>(g.count()) / 8;
}

/// Numbers the aggregates as a breadth-first walk through the nodes comes to them: products of the rows of near aggregates
/// then find each other's terms in caches.
void number_by_walk(const StrongGraph& g, Aggregates& all) {
  HostVector<std::int32_t> number(at(all.count), -1), queue;
  HostVector<char> seen(at(g.count()), 0);
  queue.reserve(at(g.count()));
  std::int32_t next = 0;
  for (std::int64_t first = 0; first < g.count(); ++first) {
    if (seen[at(first)] != 0) continue;
    std::size_t done = queue.size();
    seen[at(first)] = 1, queue.push_back(static_cast<std::int32_t>(first));
    for (; done < queue.size(); ++done) {
      const std::int64_t i = queue[done];
      if (const std::int32_t a = all.of_node[at(i)]; a >= 0 && number[at(a)] < 0) number[at(a)] = next++;
      for (std::int64_t k = g.start[at(i)]; k < g.start[at(i) + 1]; ++k)
        if (const std::int32_t j = g.node[at(k)]; seen[at(j)] == 0) seen[at(j)] = 1, queue.push_back(j);
    }
  }
  for (std::int32_t& a : all.of_node)
    if (a >= 0) a = number[at(a)];
}

}  // namespace

CouplingNorms::CouplingNorms(const NodeRows& a) : square(at(a.blocks())), diagonal(at(a.count())) {
  with_sizes(a.row_size, a.row_size, [&]<int kS>(Known<kS>, auto) {
    const std::int64_t entries = kS > 0 ? kS * kS : a.block_entries();
    parallel_ranges(a.count(), a.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        diagonal[at(i)] = 0;
        for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
          square[at(k)] = square_of(a.value.data() + k * entries, entries);
          if (a.column[at(k)] == i) diagonal[at(i)] = std::sqrt(square[at(k)]);
        }
      }
    });
  });
}

StrongGraph strong_couplings(const NodeRows& a, const CouplingNorms& norms, double theta, const HostVector<char>& left_out) {
  StrongGraph graph;
  graph.start.resize(at(a.count() + 1));
  graph.start[0] = 0;
  graph.alone.resize(at(a.count()));
  const auto each_strong = [&](std::int64_t i, auto use) {
    const double least = theta * theta * norms.diagonal[at(i)];
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
      const std::int64_t j = a.column[at(k)];
      const double square = norms.square[at(k)];
      if (j == i || j >= a.count() || (!left_out.empty() && left_out[at(k)] != 0)) continue;
      if (square > 0 && square >= least * norms.diagonal[at(j)]) use(a.column[at(k)]);
    }
  };
  parallel_ranges(a.count(), grain_of(a.count(), 2 * a.blocks()), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t count = 0;
      each_strong(i, [&](std::int32_t) { ++count; });
      bool alone = count == 0;
      for (std::int64_t k = a.start[at(i)]; alone && k < a.start[at(i) + 1]; ++k)
        alone = a.column[at(k)] == i || norms.square[at(k)] == 0;
      graph.alone[at(i)] = alone ? 1 : 0;
      graph.start[at(i) + 1] = count;
    }
  });
  std::partial_sum(graph.start.begin(), graph.start.end(), graph.start.begin());
  graph.node.resize(at(graph.start.back()));
  parallel_ranges(a.count(), grain_of(a.count(), 2 * a.blocks()), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t to = graph.start[at(i)];
      each_strong(i, [&](std::int32_t j) { graph.node[at(to++)] = j; });
    }
  });
  return graph;
}

StrongGraph squared(const StrongGraph& g) {
  StrongGraph wide{{0}, {}, g.alone};
  std::vector<std::int64_t> seen(at(g.count()), -1);
  for (std::int64_t i = 0; i < g.count(); ++i) {
    seen[at(i)] = i;
    const auto take = [&](std::int32_t j) {
      if (seen[at(j)] == i) return;
      seen[at(j)] = i;
      wide.node.push_back(j);
    };
    for (std::int64_t k = g.start[at(i)]; k < g.start[at(i) + 1]; ++k) {
      const std::int32_t j = g.node[at(k)];
      take(j);
      for (std::int64_t l = g.start[at(j)]; l < g.start[at(j) + 1]; ++l) take(g.node[at(l)]);
    }
    wide.start.push_back(std::ssize(wide.node));
  }
  return wide;
}

Aggregates make_aggregates(const StrongGraph& g) {
  const std::int64_t n = g.count();
  HostVector<std::int32_t> of_root(at(n), -1);
  Aggregates all;
  const auto neighbours = [&](std::int64_t i, auto use) {
    for (std::int64_t k = g.start[at(i)]; k < g.start[at(i) + 1]; ++k) use(g.node[at(k)]);
  };
  for (std::int64_t i = 0; i < n; ++i) {
    bool free = g.alone[at(i)] == 0 && of_root[at(i)] < 0;
    for (std::int64_t k = g.start[at(i)]; free && k < g.start[at(i) + 1]; ++k) free = of_root[at(g.node[at(k)])] < 0;
    if (!free) continue;
    of_root[at(i)] = static_cast<std::int32_t>(all.count);
    neighbours(i, [&](std::int32_t j) { of_root[at(j)] = static_cast<std::int32_t>(all.count); });
    if (g.start[at(i)] == g.start[at(i) + 1]) ++all.single;
    ++all.count;
  }
  all.of_node = of_root;
  std::vector<int> votes(at(all.count), 0);
  for (std::int64_t i = 0; i < n; ++i) {
    if (g.alone[at(i)] != 0 || of_root[at(i)] >= 0) continue;
    std::int32_t best = -1;
    neighbours(i, [&](std::int32_t j) {
      const std::int32_t a = of_root[at(j)];
      if (a >= 0 && (++votes[at(a)], best < 0 || votes[at(a)] > votes[at(best)])) best = a;
    });
    neighbours(i, [&](std::int32_t j) {
      if (of_root[at(j)] >= 0) votes[at(of_root[at(j)])] = 0;
    });
    all.of_node[at(i)] = best;
  }
  if (!numbers_are_local(g)) number_by_walk(g, all);
  return all;
}

}  // namespace shardmat::multigrid
