#include "partition/batched/graph_options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/partition/batched/test_batches.h"

namespace shardmat {
namespace {

using test::error_of;

constexpr GraphOptions kLoops{.self_loops = true, .gcn_normalise = false};
constexpr GraphOptions kNormalise{.self_loops = false, .gcn_normalise = true};

std::shared_ptr<const BatchSource> shared(HostBatch batch) { return test::memory(std::move(batch)); }

/// A 3 × 3 matrix with one diagonal entry and an unsorted row, an empty one, and 1 × 1 without entries.
HostBatch square() { return {{0, 3, 3, 4}, {0, 3, 3, 4}, {0, 2, 3, 4, 4}, {2, 1, 1, 0}, {0.5, 2, 3, 4}}; }

TEST(GraphOptionsTest, WithoutOptionsItIsTheSource) {
  const auto source = shared(square());
  EXPECT_EQ(transformed(source, {}), source);
}

TEST(GraphOptionsTest, AddsLoopsWhereTheyAreMissing) {
  const auto loops = transformed(shared(square()), kLoops);
  const HostBatch expected{{0, 3, 3, 4}, {0, 3, 3, 4}, {0, 3, 4, 6, 7}, {0, 2, 1, 1, 0, 2, 0}, {1, 0.5, 2, 3, 4, 1, 1}};
  test::expect_same(loops->read(0, 3), expected);
  test::expect_consistent(*loops);
  EXPECT_NE(loops->name().find("self loops"), std::string::npos);
  test::expect_consistent(*transformed(shared({}), kLoops));
}

/// Row by row; duplicates add up.
std::vector<double> dense(const HostBatch& batch, std::int64_t matrix) {
  const BatchView view = batch.view().slice(matrix, matrix + 1);
  const auto n = static_cast<std::size_t>(view.rows());
  std::vector<double> a(n * n);
  for (std::size_t row = 0; row < n; ++row)
    for (auto k = view.row_ptr[row] - view.row_ptr[0]; k < view.row_ptr[row + 1] - view.row_ptr[0]; ++k)
      a[row * n + static_cast<std::size_t>(view.col_idx[static_cast<std::size_t>(k)])] +=
          view.values[static_cast<std::size_t>(k)];
  return a;
}

void expect_normalised(const BatchSource& source, const BatchSource& result) {
  const HostBatch before = source.read(0, source.count()), after = result.read(0, result.count());
  for (std::int64_t i = 0; i < source.count(); ++i) {
    std::vector<double> a = dense(before, i);
    const auto n = static_cast<std::size_t>(before.view().rows_of(i));
    std::vector<double> degree(n);
    for (std::size_t row = 0; row < n; ++row) {
      a[row * n + row] += 1;
      for (std::size_t col = 0; col < n; ++col) degree[row] += a[row * n + col];
    }
    const std::vector<double> b = dense(after, i);
    ASSERT_EQ(b.size(), a.size());
    for (std::size_t row = 0; row < n; ++row)
      for (std::size_t col = 0; col < n; ++col)
        ASSERT_NEAR(b[row * n + col], a[row * n + col] / std::sqrt(degree[row] * degree[col]), 1e-15);
  }
}

TEST(GraphOptionsTest, NormalisesAsTheDenseFormula) {
  // A path 0-1-2 with a double edge 1-2, and an isolated node.
  const auto graphs = shared({{0, 3, 4}, {0, 3, 4}, {0, 1, 4, 6, 6}, {1, 0, 2, 2, 1, 1}, {1, 1, 1, 1, 1, 1}});
  const auto normalised = transformed(graphs, kNormalise);
  expect_normalised(*graphs, *normalised);
  EXPECT_EQ(normalised->read(1, 2).values, HostVector<double>{1});
  test::expect_consistent(*normalised);
  EXPECT_SAYS(error_of([&] { transformed(graphs, {.self_loops = true, .gcn_normalise = true}); }, ErrorKind::usage),
              "A + I");
}

TEST(GraphOptionsTest, AddsTheIdentityToADiagonalThatIsThere) {
  // Rows 0 and 1 have diagonal entries, row 1 two of them; weights differ by direction.
  const auto graph = shared({{0, 3}, {0, 3}, {0, 2, 5, 6}, {1, 0, 1, 2, 1, 0}, {0.5, 2, 3, -0.25, 1, 4}});
  const auto normalised = transformed(graph, kNormalise);
  EXPECT_EQ(normalised->nnz(), 7);
  expect_normalised(*graph, *normalised);
  const auto zero = transformed(shared({{0, 1}, {0, 1}, {0, 1}, {0}, {0}}), kNormalise);
  EXPECT_EQ(zero->read(0, 1).values, HostVector<double>{1});
}

TEST(GraphOptionsTest, KeepsTheEntriesThatAreThere) {
  const std::shared_ptr<const BatchSource> molecules = open_batch("molecules:count=300");
  const auto normalised = transformed(molecules, kNormalise);
  EXPECT_EQ(normalised->nnz(), molecules->nnz());
  expect_normalised(*molecules, *normalised);
  test::expect_consistent(*normalised);
}

TEST(GraphOptionsTest, RefusesRectangles) {
  for (const GraphOptions& options : {kLoops, kNormalise})
    EXPECT_SAYS(error_of([&] {
                  transformed(shared({{0, 0, 1}, {0, 0, 2}, {0, 0}, {}, {}}), options);
                }),
                "test: matrix 1 is 1 × 2", "square");
}

TEST(GraphOptionsTest, RefusesRowsThatDoNotAddUpToMoreThanZero) {
  const auto batch = transformed(shared({{0, 1, 3}, {0, 1, 3}, {0, 0, 0, 1}, {0}, {-1}}), kNormalise);
  EXPECT_EQ(batch->read(0, 1).values, HostVector<double>{1});
  EXPECT_SAYS(error_of([&] { batch->read(0, 2); }), "test: matrix 1, row 1: its sum in A + I is 0");
  EXPECT_SAYS(error_of([&] { batch->read(1, 2); }), "test: matrix 1, row 1: its sum in A + I is 0");
  const auto negative = transformed(shared({{0, 1}, {0, 1}, {0, 1}, {0}, {-3}}), kNormalise);
  EXPECT_SAYS(error_of([&] { negative->read(0, 1); }), "test: matrix 0, row 0: its sum in A + I is -2");
}

}  // namespace
}  // namespace shardmat
