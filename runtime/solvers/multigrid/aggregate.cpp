#include "runtime/solvers/multigrid/aggregate.h"

#include <cmath>
#include <numeric>

#include "kernels/base/parallel.h"

namespace shardmat::multigrid {
namespace {

double square_of(const NodeRows& a, std::int64_t k) {
  const double* const block = a.block(k);
  double sum = 0;
  for (std::int64_t e = 0; e < a.block_entries(); ++e) sum += block[e] * block[e];
  return sum;
}

}  // namespace

CouplingNorms::CouplingNorms(const NodeRows& a) : square(at(a.blocks())), diagonal(at(a.count())) {
  parallel_ranges(a.count(), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      diagonal[at(i)] = 0;
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
        square[at(k)] = square_of(a, k);
        if (a.column[at(k)] == i) diagonal[at(i)] = std::sqrt(square[at(k)]);
      }
    }
  });
}

StrongGraph strong_couplings(const NodeRows& a, const CouplingNorms& norms, double theta) {
  StrongGraph graph;
  graph.start.resize(at(a.count() + 1));
  graph.start[0] = 0;
  graph.alone.resize(at(a.count()));
  const auto each_strong = [&](std::int64_t i, auto use) {
    const double least = theta * theta * norms.diagonal[at(i)];
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
      const std::int64_t j = a.column[at(k)];
      const double square = norms.square[at(k)];
      if (j != i && j < a.count() && square > 0 && square >= least * norms.diagonal[at(j)]) use(a.column[at(k)]);
    }
  };
  parallel_ranges(a.count(), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
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
  parallel_ranges(a.count(), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t to = graph.start[at(i)];
      each_strong(i, [&](std::int32_t j) { graph.node[at(to++)] = j; });
    }
  });
  return graph;
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
  return all;
}

}  // namespace shardmat::multigrid
