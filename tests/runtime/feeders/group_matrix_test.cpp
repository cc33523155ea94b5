// Feeder ranks against the same matrix on the owners alone, whose rows are those of their groups: all bits are the same.
#include "runtime/feeders/group_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "partition/generators/generator.h"
#include "partition/row_source.h"
#include "runtime/feeders/group_solver.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

constexpr std::int64_t kNodes = 5;

/// Rows of the whole matrix, of which each rank gives uneven pieces; rank 1 of more than two has none.
struct Problem {
  HostCsr all;
  std::vector<std::int64_t> starts;  ///< of each rank

  explicit Problem(const std::string& generator = "elasticity:n=" + std::to_string(kNodes)) {
    const auto source = make_generator(generator);
    all = source->read_rows(0, source->rows());
    starts.push_back(0);
    const int ranks = world().size();
    std::int64_t shares = 0, before = 0;
    const auto share = [&](int rank) -> std::int64_t { return ranks > 2 && rank == 1 ? 0 : 1 + rank % 3; };
    for (int rank = 0; rank < ranks; ++rank) shares += share(rank);
    for (int rank = 0; rank < ranks; ++rank) starts.push_back(all.rows * (before += share(rank)) / shares);
  }

  std::int64_t first(int rank) const { return starts[static_cast<std::size_t>(rank)]; }
  /// Rows [begin, end), with offsets that do not begin at 0.
  OwnRows rows(std::int64_t begin, std::int64_t end) const {
    OwnRows own;
    own.range = {begin, end - begin}, own.cols = all.cols;
    const auto from = static_cast<std::size_t>(all.row_ptr[static_cast<std::size_t>(begin)]),
               to = static_cast<std::size_t>(all.row_ptr[static_cast<std::size_t>(end)]);
    own.row_ptr = std::span(all.row_ptr).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin) + 1);
    own.columns = std::span(all.col_idx).subspan(from, to - from);
    own.values = all.values.data() + from;
    return own;
  }
  OwnRows mine() const { return rows(first(world().rank()), first(world().rank() + 1)); }
};

HostVector<double> entries(std::int64_t begin, std::int64_t end, std::int64_t columns) {
  HostVector<double> values;
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t j = 0; j < columns; ++j) values.push_back(static_cast<double>((i * 7 + j * 5) % 23) / 7 - 1);
  return values;
}

Dense rows_of(HostVector<double>& values, std::int64_t columns) {
  return {values.data(), std::ssize(values) / columns, columns, columns, DenseOrder::row_major, ValueType::f64, Device{}};
}

GroupContextOptions on_host(int owners) {
  GroupContextOptions options;
  options.backend = BackendChoice::host;
  options.threads = 1;
  options.groups.owners = owners;
  return options;
}

MatrixOptions updatable() {
  MatrixOptions options;
  options.values = Values::updatable;
  options.plan.kernel = "csr_host";
  return options;
}

HostVector<double> all_values(const OwnRows& rows, double factor) {
  HostVector<double> values;
  for (std::size_t k = 0; k < rows.columns.size(); ++k)
    values.push_back(factor * static_cast<const double*>(rows.values)[k]);
  return values;
}

/// The matrix of a problem on the owners alone, whose own rows are those of their groups.
class OnOwners {
 public:
  OnOwners(const Problem& problem, GroupContext& fed, const MatrixOptions& options) {
    if (!fed.owns()) return;
    RankGroup& group = fed.group();
    begin_ = problem.first(world().rank()), end_ = problem.first(world().rank() + group.size());
    rows_ = problem.rows(begin_, end_);
    context_.emplace(group.owners(), GroupContextOptions{BackendChoice::host, 1, {}});
    matrix_ = std::make_unique<GroupMatrix>(*context_, [&] { return GivenRows{rows_, options, ""}; });
  }
  GroupMatrix* matrix() { return matrix_.get(); }
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }
  const OwnRows& rows() const { return rows_; }

 private:
  std::optional<GroupContext> context_;
  std::unique_ptr<GroupMatrix> matrix_;
  std::int64_t begin_ = 0, end_ = 0;
  OwnRows rows_;
};

/// What the owner alone has, cut into the pieces of its group: this rank's piece, by way of all ranks.
HostVector<double> piece_of(const HostVector<double>& of_group, const Problem& problem, std::int64_t columns) {
  std::vector<double> all(static_cast<std::size_t>(problem.all.rows * columns), 0.0);
  const std::int64_t begin = problem.first(world().rank()) * columns;
  std::copy(of_group.begin(), of_group.end(), all.begin() + begin);
  world().all_reduce(std::span<double>(all), Reduction::sum);  // each row comes from one rank; adding 0 changes no bits
  return {all.begin() + begin, all.begin() + problem.first(world().rank() + 1) * columns};
}

void multiplies(int owners, std::int64_t columns) {
  SCOPED_TRACE(std::to_string(owners) + " owners, " + std::to_string(columns) + " columns");
  const Problem problem;
  GroupContext context(world(), on_host(owners));
  ASSERT_TRUE(context.has_feeders());
  GroupMatrix a(context, [&] { return GivenRows{problem.mine(), updatable(), ""}; });
  EXPECT_EQ(a.nnz(), problem.all.nnz());
  const std::int64_t begin = problem.first(world().rank()), end = problem.first(world().rank() + 1);
  EXPECT_EQ(a.own_rows(), end - begin);
  OnOwners alone(problem, context, updatable());
  const auto options = [&] {
    ProductOptions wanted;
    wanted.columns = columns;
    return wanted;
  };
  GroupProduct product = a.product(options);
  EXPECT_NE(product.kernel.find("csr_host"), std::string::npos);
  std::optional<GroupProduct> reference;
  if (alone.matrix() != nullptr) reference = alone.matrix()->product(options);
  for (const double factor : {1.0, -3.5}) {  // the given values, then new ones
    if (factor != 1) {
      HostVector<double> values = all_values(problem.mine(), factor);
      a.update_values([&] { return rows_of(values, 1); }, context.stream());
      if (alone.matrix() != nullptr) {
        values = all_values(alone.rows(), factor);
        alone.matrix()->update_values([&] { return rows_of(values, 1); }, context.stream());
      }
    }
    HostVector<double> x = entries(begin, end, columns), y = entries(begin + 1, end + 1, columns);
    a.multiply(product, 2, rows_of(x, columns), -0.5, rows_of(y, columns), context.stream());
    HostVector<double> x_of_group = entries(alone.begin(), alone.end(), columns),
                       y_of_group = entries(alone.begin() + 1, alone.end() + 1, columns);
    if (reference)
      alone.matrix()->multiply(*reference, 2, rows_of(x_of_group, columns), -0.5, rows_of(y_of_group, columns),
                               context.stream());
    EXPECT_EQ(y, piece_of(y_of_group, problem, columns));
  }
}

TEST(Feeders, ProductsHaveTheBitsOfTheOwnersAlone) {
  if (world().size() == 1) GTEST_SKIP() << "needs several ranks";
  for (const int owners : {1, 2})
    if (owners < world().size())
      for (const std::int64_t columns : {1, 3}) multiplies(owners, columns);
}

}  // namespace
}  // namespace shardmat
