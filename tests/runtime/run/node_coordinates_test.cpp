// What multigrid is told of the nodes of each rank, from a generator, from shard files in any order, and from files.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "partition/shard/shard_file.h"
#include "runtime/matrix/vectors.h"
#include "runtime/run/node_coordinates.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/known_nodes.h"
#include "runtime/solvers/multigrid/report.h"
#include "runtime/solvers/solver.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/contexts.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

const std::string kBar = "elasticity:mesh=" SHARDMAT_TEST_DATA "/box.h5,degree=2,clamp=0.1";

/// What each rank is told is what the generator knows of its nodes.
void expect_known(const std::string& name, const RowSource& known) {
  Context& context = context_of(kHost64);
  const MatrixSource source = open_matrix(name, context);
  const DistributedMatrix matrix(source, context, {});
  const NodeFacts* const nodes = matrix.nodes();
  ASSERT_EQ(nodes, source.rows.get()) << name;
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

/// A name that is the same on all ranks; the file is removed at the end.
class SharedFile {
 public:
  SharedFile()
      : path_(world().broadcast(
            (std::filesystem::temp_directory_path() / ("shardmat_node_facts_test_" + std::to_string(::getpid()) + ".h5"))
                .string())) {}
  ~SharedFile() {
    if (world().rank() == 0) std::filesystem::remove(path_);
  }
  const std::string& path() const { return path_; }
  void write(const RowSource& source, const WriteOptions& options) const {
    world().run_agreed([&] {
      if (world().rank() == 0) write_shard_file(path_, source, options);
    });
  }

 private:
  std::string path_;
};

TEST(NodeFacts, AreThoseOfTheOwnNodes) {
  const MatrixSource generated = open_matrix(kBar, context_of(kHost64));
  ASSERT_GT(generated.rows->mid_edges().size(), 500u);
  expect_known(kBar, *generated.rows);
  const SharedFile file;
  for (const RowOrder order : {RowOrder::as_source, RowOrder::by_length, RowOrder::rcm}) {
    WriteOptions options;
    options.order = order;
    file.write(*generated.rows, options);
    expect_known(file.path(), *generated.rows);
  }
}

struct Solved {
  std::int64_t iterations = 0;
  std::string modes;
};

/// The source is gone when the solver is made.
Solved solve_stored(const std::string& path, const std::function<void(SolverOptions&)>& choose = {}) {
  Context& context = context_of(kHost64);
  auto matrix = std::make_unique<DistributedMatrix>(open_matrix(path, context), context, LoadOptions{});
  SolverOptions options;
  options.preconditioner = "multigrid";
  options.preconditioning.multigrid.coarse_size = 100, options.preconditioning.multigrid.inner = ValueType::f64;
  if (choose) choose(options);
  Solver solver(*matrix, options);
  DistributedVector b(*matrix, VectorLayout::rows, ValueType::f64, 1), x(*matrix, VectorLayout::rows, ValueType::f64, 1);
  std::vector<double> ones(static_cast<std::size_t>(matrix->local_rows()), 1.0);
  b.set_own(ones, context.stream());
  const SolveResult result = solver.solve(b, x);
  EXPECT_TRUE(result.converged());
  const MultigridReport* const report = solver.preconditioner().multigrid();
  return {result.iterations, report == nullptr ? "" : report->modes};
}

/// Multigrid takes what a shard file stores, in any order of its rows, and what is given goes first.
TEST(NodeFacts, ReachEverySolver) {
  const MatrixSource generated = open_matrix("elasticity:nx=24,ny=5,nz=5,uniform,clamp=0.1", context_of(kHost64));
  const auto take_constants = [](SolverOptions& o) { o.preconditioning.multigrid.near_null_space = "constants"; };
  const SharedFile file;
  for (const RowOrder order : {RowOrder::as_source, RowOrder::by_length, RowOrder::rcm}) {
    WriteOptions options;
    options.order = order;
    file.write(*generated.rows, options);
    const Solved known = solve_stored(file.path()), constants = solve_stored(file.path(), take_constants);
    EXPECT_EQ(known.modes, "6 rigid-body modes");
    EXPECT_EQ(constants.modes, "3 constants");
    EXPECT_LT(known.iterations, constants.iterations);
  }
  const Solved wrong = solve_stored(file.path(), [&](SolverOptions& o) {  // places of no meaning
    const DistributedMatrix matrix(open_matrix(file.path(), world()), context_of(kHost64), {});
    auto places = std::make_shared<NodeCoordinates>();
    for (const std::int64_t id : matrix.y_rows()->ids_by_place()) places->of_own.push_back(test::x_at(id * id, id));
    o.preconditioning.multigrid.coordinates = places;
  });
  EXPECT_NE(wrong.modes, "6 rigid-body modes");
}

}  // namespace
}  // namespace shardmat
