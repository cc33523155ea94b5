// What the front end knows of the solvers that stay on the ranks.
#include "tools/serve/ranks/held_solvers.h"

#include <gtest/gtest.h>

namespace shardmat::serve {
namespace {

/// What two ranks answer that have these solvers; the second one has one byte more of each.
std::vector<service::Answer> told(const std::vector<service::HeldSolver>& solvers) {
  service::Progress first, second;
  first.solvers = second.solvers = solvers;
  for (service::HeldSolver& one : second.solvers) ++one.bytes;
  return {{1, first}, {1, second}};
}

TEST(HeldSolvers, AreThoseThatTheRanksTold) {
  const service::HeldSolver multigrid{"a", 8, "cg", "multigrid", "3 levels", 100}, jacobi{"b", 1, "cg", "jacobi", "", 10};
  HeldSolvers held;
  held.take(told({multigrid}), "a", 8, 1000);
  held.take(told({jacobi, multigrid}), "b", 1, 2000);
  ASSERT_EQ(held.all().size(), 2u);
  EXPECT_EQ(held.all()[0].last_used, 2000);
  EXPECT_EQ(held.all()[1].last_used, 1000);  // nobody has used it since
  EXPECT_EQ(held.all()[1].note, "3 levels");
  EXPECT_EQ(held.all()[1].bytes, (std::vector<std::int64_t>{100, 101}));
  EXPECT_EQ(held.bytes(0), 110);
  EXPECT_EQ(held.bytes(1), 112);
  EXPECT_EQ(held.bytes(2), 0);
  held.drop("a", 1);  // of other columns
  EXPECT_EQ(held.all().size(), 2u);
  held.drop("a", 8);  // spoilt
  EXPECT_EQ(held.bytes(0), 10);
  held.take(told({}), "", 0, 3000);  // the ranks needed the memory
  EXPECT_TRUE(held.all().empty());
  EXPECT_FALSE(held.clear());
}

}  // namespace
}  // namespace shardmat::serve
