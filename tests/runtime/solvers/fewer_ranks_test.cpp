// Coarse levels of multigrid on fewer ranks, and ranks without rows: the same solutions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/matrix/own_rows.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/nodes.h"
#include "runtime/solvers/multigrid/report.h"
#include "runtime/solvers/solver.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

constexpr std::int64_t kColumns = 3, kEverything = 1'000'000'000;

TEST(FewerRanks, TakeTheNodesOfTheRanksBehind) {
  using Starts = std::vector<std::int64_t>;
  const Starts five{0, 10, 20, 30, 40, 50};
  const auto moved = [](const Starts& starts, std::int64_t least) { return multigrid::on_fewer_ranks(starts, least); };
  EXPECT_EQ(moved(five, 0), five);
  EXPECT_EQ(moved(five, 10), five);
  EXPECT_EQ(moved(five, 15), (Starts{0, 20, 20, 40, 40, 50}));
  EXPECT_EQ(moved(five, 25), (Starts{0, 30, 30, 30, 50, 50}));
  EXPECT_EQ(moved(five, 60), (Starts{0, 50, 50, 50, 50, 50}));
  EXPECT_EQ(moved({0, 30, 60, 70}, 30), (Starts{0, 30, 70, 70}));
  EXPECT_EQ(moved({0, 0, 0, 5}, 0), (Starts{0, 0, 0, 5}));
  EXPECT_EQ(moved({0, 0, 0, 5}, 7), (Starts{0, 5, 5, 5}));
  EXPECT_EQ(moved({0, 0, 0}, 7), (Starts{0, 0, 0}));
}

HostVector<double> gathered(const DistributedVector& x, Stream& stream) {
  HostVector<double> all = x.gather(stream);
  all.resize(static_cast<std::size_t>(x.rows() * x.columns()));
  world().broadcast(std::span<double>(all), 0);
  return all;
}

void set_right_sides(DistributedVector& b, const DistributedMatrix& matrix, Stream& stream) {
  HostVector<double> values;
  for (const std::int64_t id : matrix.y_rows()->ids_by_place())
    for (std::int64_t j = 0; j < kColumns; ++j) values.push_back(test::x_at(id, j) + 0.25);
  b.set_own(values, stream);
}

SolverOptions multigrid_options(const char* cycle) {
  SolverOptions options;
  options.preconditioner = "multigrid", options.rtol = 1e-10, options.columns = kColumns;
  options.preconditioning.multigrid.coarse_size = 20, options.preconditioning.multigrid.inner = ValueType::f64;
  options.preconditioning.multigrid.cycle = cycle, options.preconditioning.multigrid.refresh = "smooth";
  return options;
}

/// What came of two solves, the second with other values of the matrix.
struct Solved {
  MultigridReport report;
  std::int64_t iterations[2];
  HostVector<double> x[2];
};

Solved solved(const Case& c, const std::string& specification, const char* cycle, std::int64_t rank_size) {
  LoadOptions load = test::options_for(c, LocalSort::none);
  load.values = Values::updatable;
  Context& context = context_of(c);
  Stream& stream = context.stream();
  const MatrixSource source = open_matrix(specification, world());
  DistributedMatrix matrix(source, context, load);
  DistributedVector b(matrix, VectorLayout::rows, ValueType::f64, kColumns),
      x(matrix, VectorLayout::rows, ValueType::f64, kColumns);
  set_right_sides(b, matrix, stream);
  SolverOptions options = multigrid_options(cycle);
  options.preconditioning.multigrid.rank_size = rank_size;
  Solver solver(matrix, options);
  Solved all{*solver.preconditioner().multigrid(), {}, {}};
  std::vector<double> values;
  for (const std::int64_t id : matrix.y_rows()->ids_by_place()) {
    const HostCsr row = source.rows->read_rows(id, id + 1);
    for (std::size_t k = 0; k < row.values.size(); ++k)
      values.push_back(row.values[k] * (3 + 0.1 * test::x_at(id, 1)) * (3 + 0.1 * test::x_at(row.col_idx[k], 1)));
  }
  for (const int round : {0, 1}) {
    if (round == 1) matrix.update_values(values, stream), solver.refresh();
    x.fill(0, stream);
    const SolveResult result = solver.solve(b, x);
    EXPECT_TRUE(result.converged()) << specification << ", rank_size " << rank_size;
    all.iterations[round] = result.iterations, all.x[round] = gathered(x, stream);
  }
  return all;
}

void expect_same(const HostVector<double>& found, const HostVector<double>& expected) {
  double largest = 0, off = 0;
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    largest = std::max(largest, std::abs(expected[i])), off = std::max(off, std::abs(found[i] - expected[i]));
  EXPECT_LE(off, 1e-6 * largest);
}

struct System {
  const char *specification, *cycle;
};

void solve_as_all_ranks(const Case& c, const std::vector<System>& systems) {
  for (const auto& [specification, cycle] : systems) {
    SCOPED_TRACE(std::string(specification) + " " + cycle);
    const Solved stay = solved(c, specification, cycle, 0);
    ASSERT_GE(stay.report.levels.size(), 3U);
    EXPECT_EQ(stay.report.set_up_on_gpu, c.backend == BackendChoice::cuda) << stay.report.why_on_host;
    if (std::string(specification).find("mesh=") == std::string::npos) {  // its corners are the first nodes
      EXPECT_EQ(stay.report.levels[1].ranks, world().size());
    }
    for (const std::int64_t rank_size : {std::int64_t{200}, kEverything}) {
      SCOPED_TRACE(rank_size);
      const Solved moved = solved(c, specification, cycle, rank_size);
      const std::vector<LevelReport>& levels = moved.report.levels;
      EXPECT_EQ(levels[0].ranks, world().size());
      EXPECT_EQ(levels[1].unknowns, stay.report.levels[1].unknowns);
      for (std::size_t l = 1; l < levels.size(); ++l) {
        EXPECT_GE(levels[l].unknowns, rank_size * (levels[l].ranks - 1));
        EXPECT_LE(levels[l].ranks, levels[l - 1].ranks);
      }
      if (rank_size == kEverything) {
        EXPECT_EQ(levels[1].ranks, 1);
      }
      EXPECT_NEAR(moved.report.operator_complexity, stay.report.operator_complexity, 0.2);
      for (const int round : {0, 1}) {
        EXPECT_LE(std::abs(moved.iterations[round] - stay.iterations[round]), cycle[0] == 'W' ? 2 : 1);
        expect_same(moved.x[round], stay.x[round]);
      }
    }
  }
}

TEST(FewerRanks, SolveAsAllRanks) {
  solve_as_all_ranks(kHost64, {{"elasticity:n=8,uniform,clamp=0.05", "V"},
                               {"poisson27:n=14,uniform", "K"},
                               {"elasticity:mesh=" SHARDMAT_TEST_DATA "/box.h5,degree=2,clamp=0.05", "auto"},
                               {"convection_diffusion:nx=40,ny=30,nz=1,peclet=100,wind=rotating", "auto"},
                               {"convection_diffusion:nx=40,ny=30,nz=1,peclet=100,wind=rotating", "W"}});
}
TEST(MultiGpuFewerRanks, SolveAsAllRanks) {
  const auto check = [](const Case& c) {
    solve_as_all_ranks(c, {{"elasticity:n=14,uniform,clamp=0.05", "V"}, {"poisson27:n=20,uniform", "K"}});
  };
  on_gpus(check, kCuda64);
}

/// The last rank has all rows but a few, the first one none. On GPUs, larger matrices are set up there.
void may_have_no_row_of_the_matrix(const Case& c) {
  const bool on_gpu = c.backend == BackendChoice::cuda;
  const std::string specification = on_gpu ? "elasticity:n=13,uniform,clamp=0.05" : "elasticity:n=7,uniform,clamp=0.05";
  const HostCsr whole = test::whole_matrix(specification);
  Context& context = context_of(c);
  Stream& stream = context.stream();
  HostVector<double> first;
  for (const bool empty : {false, true}) {
    const std::int64_t ranks = world().size(), few = empty ? 15 : whole.rows / 3 / ranks * 3, rank = world().rank();
    const std::int64_t begin = empty ? std::max<std::int64_t>(0, rank - 1) * few : rank * few,
                       end = rank + 1 == ranks ? whole.rows : (empty ? rank * few : begin + few);
    std::vector<std::int64_t> starts, columns(whole.col_idx.begin() + whole.row_ptr[static_cast<std::size_t>(begin)],
                                              whole.col_idx.begin() + whole.row_ptr[static_cast<std::size_t>(end)]);
    for (std::int64_t i = begin; i <= end; ++i)
      starts.push_back(whole.row_ptr[static_cast<std::size_t>(i)] - whole.row_ptr[static_cast<std::size_t>(begin)]);
    OwnRows own{{begin, end - begin}, whole.cols, starts, columns};
    own.values = whole.values.data() + whole.row_ptr[static_cast<std::size_t>(begin)];
    DistributedMatrix matrix(take_rows(own, context, ValueType::f64, "", 3), context, MatrixOptions{});
    DistributedVector b(matrix, VectorLayout::rows, ValueType::f64, kColumns),
        x(matrix, VectorLayout::rows, ValueType::f64, kColumns);
    set_right_sides(b, matrix, stream);
    for (const std::int64_t rank_size : {std::int64_t{0}, kEverything}) {
      SolverOptions options = multigrid_options("V");
      options.preconditioning.multigrid.rank_size = rank_size;
      Solver solver(matrix, options);
      const MultigridReport& report = *solver.preconditioner().multigrid();
      EXPECT_EQ(report.levels[0].ranks, empty && ranks > 1 ? ranks - 1 : ranks);
      EXPECT_EQ(report.set_up_on_gpu, on_gpu) << report.why_on_host;
      x.fill(0, stream);
      EXPECT_TRUE(solver.solve(b, x).converged());
      const HostVector<double> all = gathered(x, stream);
      if (first.empty()) first = all;
      else expect_same(all, first);
    }
  }
}
TEST(FewerRanks, MayHaveNoRowOfTheMatrix) { may_have_no_row_of_the_matrix(kHost64); }
TEST(MultiGpuFewerRanks, MayHaveNoRowOfTheMatrix) { on_gpus(may_have_no_row_of_the_matrix, kCuda64); }

}  // namespace
}  // namespace shardmat
