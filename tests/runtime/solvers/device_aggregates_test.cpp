// Aggregates that a GPU finds against those of the host, of graphs that are large enough for chunks of nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/blocks/chunked_roots.h"
#include "kernels/blocks/setup.h"
#include "runtime/solvers/multigrid/aggregate.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using multigrid::StrongGraph;

/// Nodes of a grid, coupled to those `reach` says; numbered along x first, or as `number` has it.
template <class Reach>
StrongGraph grid(int nx, int ny, int nz, const Reach& reach, const std::vector<std::int32_t>& number = {}) {
  const auto count = static_cast<std::size_t>(nx) * static_cast<std::size_t>(ny) * static_cast<std::size_t>(nz);
  std::vector<std::vector<std::int32_t>> rows(count);
  const auto place = [&](int x, int y, int z) {
    const int natural = (z * ny + y) * nx + x;
    return number.empty() ? natural : number[static_cast<std::size_t>(natural)];
  };
  for (int z = 0; z < nz; ++z)
    for (int y = 0; y < ny; ++y)
      for (int x = 0; x < nx; ++x)
        for (int dz = -1; dz <= 1; ++dz)
          for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) {
              const int u = x + dx, v = y + dy, w = z + dz;
              if (u < 0 || v < 0 || w < 0 || u >= nx || v >= ny || w >= nz || (dx == 0 && dy == 0 && dz == 0)) continue;
              if (reach(std::abs(dx) + std::abs(dy) + std::abs(dz), place(x, y, z), place(u, v, w)))
                rows[static_cast<std::size_t>(place(x, y, z))].push_back(place(u, v, w));
            }
  StrongGraph g;

  for (std::vector<std::int32_t>& row : rows) {
    std::sort(row.begin(), row.end());
    for (const std::int32_t j : row) g.node.push_back(j);
    g.start.push_back(std::ssize(g.node));
    g.alone.push_back(row.empty() ? 1 : 0);
  }
  return g;
}

/// One node after another: a root if no root before it is near.
std::vector<int> states_of(const StrongGraph& g) {
  const auto row = [&](std::int64_t i) {
    const auto first = static_cast<std::size_t>(g.start[static_cast<std::size_t>(i)]),
               end = static_cast<std::size_t>(g.start[static_cast<std::size_t>(i) + 1]);
    return std::span(g.node).subspan(first, end - first);
  };
  std::vector<int> state(static_cast<std::size_t>(g.count()), blocks::kNoRoot);
  const auto is_root = [&](std::int32_t j) { return state[static_cast<std::size_t>(j)] == blocks::kRoot; };
  for (std::int64_t i = 0; i < g.count(); ++i) {
    if (g.alone[static_cast<std::size_t>(i)] != 0) continue;
    bool near = false;
    for (const std::int32_t u : row(i)) {
      near = near || is_root(u);
      for (const std::int32_t j : row(u)) near = near || is_root(j);
    }
    if (!near) state[static_cast<std::size_t>(i)] = blocks::kRoot;
  }
  return state;
}

enum class Expect {
  chunks,      ///< the roots are found by chunks
  nodes,       ///< they are not
  other_order  ///< nor does the host give aggregates the same numbers
};

void expect_aggregates(const StrongGraph& g, Expect expect, const char* what, Stream& stream) {
  SCOPED_TRACE(what);
  const auto given = [&](const auto& from) {
    Buffer to(stream.device(), from.size() * sizeof(from[0]));
    copy_to_device(to.data(), from.data(), to.bytes(), stream);
    return to;
  };
  blocks::StrongGraph there;
  there.count = g.count(), there.edges = std::ssize(g.node);
  there.start = given(g.start), there.node = given(g.node), there.alone = given(g.alone);
  const std::vector<int> states = states_of(g);
  const multigrid::Aggregates of_host = make_aggregates(g);
  const blocks::Graph graph{g.count(), there.start.as<std::int64_t>(), there.node.as<std::int32_t>(),
                            there.alone.as<char>()};
  for (int run = 0; run < 3; ++run) {  // whichever warp comes first
    std::vector<int> found_states(states.size());
    const Buffer on_device(stream.device(), states.size() * sizeof(int));
    const bool by_chunks = find_roots_by_chunks(graph, there.edges, on_device.as<int>(), stream);
    EXPECT_EQ(by_chunks, expect == Expect::chunks);
    copy_to_host(found_states.data(), on_device.data(), on_device.bytes(), stream);
    if (by_chunks) {
      EXPECT_EQ(found_states, states);
    }
    const blocks::Aggregates found = blocks::make_aggregates(there, stream);
    EXPECT_EQ(found.count, std::count(states.begin(), states.end(), blocks::kRoot));
    if (expect == Expect::other_order) continue;
    HostVector<std::int32_t> of_node(states.size());
    copy_to_host(of_node.data(), found.of_node.data(), found.of_node.bytes(), stream);
    EXPECT_EQ(of_node, of_host.of_node);
    EXPECT_EQ(found.single, of_host.single);
  }
}

void aggregates(const Case& c) {
  if (world().size() > 1) GTEST_SKIP() << "a GPU has all nodes";
  Stream& stream = context_of(c).stream();
  const auto all = [](int, int, int) { return true; };
  const auto faces = [](int steps, int, int) { return steps == 1; };
  expect_aggregates(grid(131, 20, 16, all), Expect::chunks, "27 points", stream);
  expect_aggregates(grid(160, 17, 15, faces), Expect::chunks, "7 points", stream);
  expect_aggregates(grid(211, 157, 1, all), Expect::chunks, "9 points of a plane", stream);
  expect_aggregates(grid(40'003, 1, 1, all), Expect::chunks, "a line", stream);
  expect_aggregates(grid(37, 31, 29, all), Expect::nodes, "short lines", stream);
  // Some nodes have no neighbours, some few.
  const auto some = [](int, int i, int j) { return (i ^ j) % 5 != 0 && i % 11 != 0 && j % 11 != 0; };
  expect_aggregates(grid(150, 19, 13, some), Expect::chunks, "holes", stream);
  // Edges that lead one way alone.
  const auto one_way = [](int steps, int i, int j) { return steps == 1 && (i % 3 != 0 || j > i); };
  expect_aggregates(grid(128, 16, 16, one_way), Expect::other_order, "not symmetric", stream);
  std::vector<std::int32_t> number(130 * 16 * 15);
  std::iota(number.begin(), number.end(), 0);
  std::shuffle(number.begin(), number.end(), std::mt19937(7));
  expect_aggregates(grid(130, 16, 15, all, number), Expect::other_order, "in any order", stream);
}
TEST(GpuMultigridAggregates, AreThoseOfTheHost) { on_gpus(aggregates, kCuda64); }

}  // namespace
}  // namespace shardmat
