#include "runtime/solvers/multigrid/pairwise.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace shardmat::multigrid {
namespace {

constexpr int kRounds = 2;

struct Groups {
  HostVector<std::int32_t> of;  ///< -1: part of none
  std::int64_t count = 0;
};

/// Of this rank's nodes; `alone`: coupled with no other node at all, on other ranks neither.
Weights weights_of(const NodeRows& a, const CouplingNorms& norms, HostVector<char>& alone) {
  Weights g;
  alone.assign(at(a.count()), 1);
  for (std::int64_t i = 0; i < a.count(); ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
      const std::int64_t j = a.column[at(k)];
      if (j == i || norms.square[at(k)] == 0) continue;
      alone[at(i)] = 0;
      if (j >= a.count()) continue;
      const std::int64_t back = a.find(j, static_cast<std::int32_t>(i));
      g.node.push_back(static_cast<std::int32_t>(j));
      g.weight.push_back(std::sqrt(norms.square[at(k)]) + (back < 0 ? 0 : std::sqrt(norms.square[at(back)])));
    }
    g.start.push_back(std::ssize(g.node));
  }
  return g;
}

Groups match(const Weights& g, const HostVector<char>& alone, double strength) {
  Groups pairs{HostVector<std::int32_t>(at(g.count()), -1), 0};
  for (std::int64_t i = 0; i < g.count(); ++i) {
    if (pairs.of[at(i)] >= 0 || (!alone.empty() && alone[at(i)] != 0)) continue;
    double best = 0, heaviest = 0;
    std::int32_t partner = -1;
    for (std::int64_t k = g.start[at(i)]; k < g.start[at(i) + 1]; ++k) {
      heaviest = std::max(heaviest, g.weight[at(k)]);
      if (pairs.of[at(g.node[at(k)])] < 0 && g.weight[at(k)] > best) best = g.weight[at(k)], partner = g.node[at(k)];
    }
    pairs.of[at(i)] = static_cast<std::int32_t>(pairs.count);
    if (partner >= 0 && best >= strength * heaviest) pairs.of[at(partner)] = static_cast<std::int32_t>(pairs.count);
    ++pairs.count;
  }
  return pairs;
}

/// The couplings between groups: sums of those of their members.
Weights between(const Groups& groups, const Weights& g) {
  HostVector<std::int64_t> start(at(groups.count + 1), 0), member(groups.of.size());
  for (const std::int32_t group : groups.of)
    if (group >= 0) ++start[at(group) + 1];
  for (std::int64_t c = 0; c < groups.count; ++c) start[at(c) + 1] += start[at(c)];
  HostVector<std::int64_t> next(start.begin(), start.end() - 1);
  for (std::int64_t i = 0; i < g.count(); ++i)
    if (groups.of[at(i)] >= 0) member[at(next[at(groups.of[at(i)])]++)] = i;
  Weights sums;
  std::vector<std::int64_t> place(at(groups.count), -1);
  for (std::int64_t c = 0; c < groups.count; ++c) {
    const std::int64_t first = std::ssize(sums.node);
    for (std::int64_t m = start[at(c)]; m < start[at(c) + 1]; ++m)
      for (std::int64_t k = g.start[at(member[at(m)])]; k < g.start[at(member[at(m)]) + 1]; ++k) {
        const std::int32_t to = groups.of[at(g.node[at(k)])];
        if (to < 0 || to == c) continue;
        if (place[at(to)] < first) {
          place[at(to)] = std::ssize(sums.node);
          sums.node.push_back(to), sums.weight.push_back(0);
        }
        sums.weight[at(place[at(to)])] += g.weight[at(k)];
      }
    sums.start.push_back(std::ssize(sums.node));
  }
  return sums;
}

}  // namespace

Aggregates match_pairs(const NodeRows& a, const CouplingNorms& norms, double strength) {
  HostVector<char> alone;
  Weights g = weights_of(a, norms, alone);
  return match_pairs(std::move(g), alone, strength, kRounds);
}

Aggregates match_pairs(Weights g, const HostVector<char>& alone, double strength, int rounds) {
  Groups groups = match(g, alone, strength), last = groups;
  for (int round = 1; round < rounds; ++round) {
    g = between(last, g);
    last = match(g, {}, strength);
    for (std::int32_t& of : groups.of)
      if (of >= 0) of = last.of[at(of)];
    groups.count = last.count;
  }
  Aggregates all{std::move(groups.of), groups.count, 0};
  std::vector<int> members(at(all.count), 0);
  for (const std::int32_t of : all.of_node)
    if (of >= 0) ++members[at(of)];
  all.single = std::count(members.begin(), members.end(), 1);
  return all;
}

}  // namespace shardmat::multigrid
