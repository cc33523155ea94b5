// What multigrid is told of the nodes of each rank, from a generator, from shard files in any order, and from files.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "partition/shard/shard_file.h"
#include "runtime/matrix/vectors.h"
#include "runtime/run/node_coordinates.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/contexts.h"

namespace shardmat {
namespace {

const std::string kBar = "elasticity:mesh=" SHARDMAT_TEST_DATA "/box.h5,degree=2,clamp=0.1";

/// What each rank is told is what the generator knows of its nodes.
void expect_known(const std::string& name, const RowSource& known) {
  Context& context = context_of(kHost64);
  const MatrixSource source = open_matrix(name, context);
  const DistributedMatrix matrix(source, context, {});
  const auto nodes = open_nodes(matrix, *source.rows, {});
  const auto coordinates = find_node_coordinates(matrix, *nodes);
  ASSERT_TRUE(coordinates) << name;
  ASSERT_EQ(coordinates->dimensions, 3);
  const HostVector<std::int64_t> ids = matrix.y_rows()->ids_by_place();
  ASSERT_EQ(std::ssize(coordinates->of_own), std::ssize(ids));
  std::vector<std::int64_t> own;
  for (std::size_t i = 0; i < ids.size(); i += 3) {
    own.push_back(ids[i] / 3);
    const HostVector<double> place = known.coordinates(own.back(), own.back() + 1);
    EXPECT_TRUE(std::equal(place.begin(), place.end(), coordinates->of_own.begin() + static_cast<std::ptrdiff_t>(i)));
  }
  std::sort(own.begin(), own.end());
  HostVector<std::int64_t> expected;
  for (const MidEdge& edge : known.mid_edges())
    if (std::binary_search(own.begin(), own.end(), edge[0])) expected.insert(expected.end(), edge.begin(), edge.end());
  const auto middles = find_mid_edges(matrix, *nodes);
  ASSERT_TRUE(middles) << name;
  EXPECT_EQ(middles->of_own, expected) << name;
  EXPECT_EQ(world().all_reduce<std::int64_t>(std::ssize(expected), Reduction::sum), 3 * std::ssize(known.mid_edges()));
  EXPECT_FALSE(find_near_null_vectors(matrix, *nodes));
}

TEST(NodeFacts, AreThoseOfTheOwnNodes) {
  const MatrixSource generated = open_matrix(kBar, context_of(kHost64));
  ASSERT_GT(generated.rows->mid_edges().size(), 500u);
  expect_known(kBar, *generated.rows);
  const std::string path = world().broadcast(
      (std::filesystem::temp_directory_path() / ("shardmat_node_facts_test_" + std::to_string(::getpid()) + ".h5"))
          .string());
  for (const RowOrder order : {RowOrder::as_source, RowOrder::by_length, RowOrder::rcm}) {
    world().run_agreed([&] {
      if (world().rank() != 0) return;
      WriteOptions options;
      options.order = order;
      write_shard_file(path, *generated.rows, options);
    });
    expect_known(path, *generated.rows);
  }
  world().run_agreed([&] {
    if (world().rank() == 0) std::filesystem::remove(path);
  });
}

}  // namespace
}  // namespace shardmat
