// Eigenvalues and PageRank on each backend, against closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "runtime/matrix/distributed_vector.h"
#include "runtime/solvers/eigen/eigenpairs.h"
#include "runtime/solvers/eigen/pagerank.h"
#include "runtime/solvers/loop/symmetric_eigen.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

TEST(SymmetricEigen, DecomposesAnyMatrix) {
  std::mt19937_64 random(3);
  for (const std::size_t n : {0u, 1u, 2u, 5u, 40u})
    for (const double size : {1.0, 1e-200, 1e200}) {
      std::vector<double> a(n * n);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j <= i; ++j)
          a[i * n + j] = a[j * n + i] = size * (static_cast<double>(random() % 2001) / 1000 - 1);
      const SymmetricEigen found = symmetric_eigen(a, n);
      EXPECT_TRUE(std::is_sorted(found.values.begin(), found.values.end()));
      for (std::size_t k = 0; k < n; ++k) {
        const double* const v = found.vectors.data() + k * n;
        for (std::size_t i = 0; i < n; ++i) {
          double row = -found.values[k] * v[i];
          for (std::size_t j = 0; j < n; ++j) row += a[i * n + j] * v[j];
          EXPECT_NEAR(row / size, 0, 1e-13 * static_cast<double>(n + 1));
        }
        for (std::size_t l = 0; l < n; ++l) {
          double product = 0;
          for (std::size_t i = 0; i < n; ++i) product += v[i] * found.vectors[l * n + i];
          EXPECT_NEAR(product, k == l ? 1 : 0, 1e-13);
        }
      }
    }
}

/// The eigenvalues of the 7-point stencil: triple and sixfold ones among them.
std::vector<double> stencil_eigenvalues(int n) {
  std::vector<double> values;
  const auto one = [&](int i) { return 2 - 2 * std::cos((i + 1) * std::numbers::pi / (n + 1)); };
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k) values.push_back(one(i) + one(j) + one(k));
  std::sort(values.begin(), values.end());
  return values;
}

void find_both_ends(const Case& c) {
  constexpr int kNodes = 6, kCount = 5;
  test::TestMatrix at(c, "poisson7:n=6,uniform", LocalSort::by_length);
  const std::vector<double> expected = stencil_eigenvalues(kNodes);
  LanczosOptions options;
  options.count = kCount, options.which = Which::both;
  options.tolerance = c.type == ValueType::f64 ? 1e-10 : 1e-5;
  Lanczos lanczos(at.matrix, options);
  const EigenResult found = lanczos.run();
  ASSERT_EQ(std::ssize(found.pairs), lanczos.wanted());
  EXPECT_TRUE(found.converged());
  EXPECT_TRUE(found.confirmed);
  for (std::size_t i = 0; i < found.pairs.size(); ++i) {
    const double value = i < kCount ? expected[i] : expected[expected.size() - 2 * kCount + i];
    EXPECT_NEAR(found.pairs[i].value, value, 2 * options.tolerance * found.norm) << i;
  }
  DistributedVector vectors(at.matrix, VectorLayout::rows, c.type, lanczos.wanted());
  Stream& stream = at.context.stream();
  lanczos.copy_vectors(vectors, stream);
  VectorSums sums(at.context, lanczos.wanted());
  const Buffer lengths(at.context.device(), sizeof(double) * static_cast<std::size_t>(lanczos.wanted()));
  sums.norm(vectors, lengths.as<double>(), stream);
  lanczos.product().wait(stream);
  std::vector<double> on_host(static_cast<std::size_t>(lanczos.wanted()));
  copy_to_host(on_host.data(), lengths.data(), lengths.bytes(), stream);
  for (const double length : on_host) EXPECT_NEAR(length, 1, 1e-6);
}
SHARDMAT_MATRIX_TEST(Eigen, BothEnds, find_both_ends)

void find_dominant(const Case& c) {
  test::TestMatrix at(c, "poisson7:n=6,uniform", LocalSort::none);
  PowerOptions options;
  options.tolerance = 1e-4;
  PowerMethod power(at.matrix, options);
  DistributedVector x(at.matrix, VectorLayout::rows, c.type);
  const EigenResult found = power.run(x);
  EXPECT_TRUE(found.converged());
  EXPECT_NEAR(found.pairs[0].value, stencil_eigenvalues(6).back(), 1e-3);
}
SHARDMAT_MATRIX_TEST(Eigen, Power, find_dominant)

/// One rank ends all.
TEST(Eigen, EndsWhenToldTo) {
  const auto stop = [] { return world().rank() == world().size() - 1; };
  test::TestMatrix at(kHost64, "poisson7:n=6,uniform", LocalSort::none);
  LanczosOptions options;
  options.count = 3, options.which = Which::both, options.tolerance = 0;
  Lanczos lanczos(at.matrix, options);
  const EigenResult few = lanczos.run({}, stop);
  EXPECT_TRUE(few.interrupted);
  EXPECT_EQ(std::ssize(few.pairs), 6);
  EXPECT_EQ(few.iterations, 6);
  EXPECT_FALSE(few.converged());
  for (const Eigenpair& pair : few.pairs) EXPECT_GT(pair.residual, 0);
  PowerOptions power_options;
  power_options.tolerance = 0;
  DistributedVector x(at.matrix, VectorLayout::rows, ValueType::f64);
  const EigenResult one = PowerMethod(at.matrix, power_options).run(x, {}, stop);
  EXPECT_TRUE(one.interrupted);
  EXPECT_EQ(one.iterations, 1);
}

/// A ring of n vertices: restarted at vertex s, vertex s + k has (1 − d)·dᵏ / (1 − dⁿ).
void rank_ring(const Case& c) {
  constexpr std::int64_t kVertices = 23, kSeeds = 3;
  constexpr double kDamping = 0.7;
  Context& context = context_of(c);
  HostCsr ring;
  ring.rows = ring.cols = kVertices;
  for (std::int64_t i = 0; i < kVertices; ++i) {
    ring.col_idx.push_back((i + 1) % kVertices);
    ring.values.push_back(static_cast<double>(i + 1));  // one edge a vertex: its weight does not count
    ring.row_ptr.push_back(i + 1);
  }
  MatrixSource graph;
  graph.rows = make_memory_source(std::make_shared<const HostCsr>(ring), "ring");
  const Transition links = transition_matrix(graph, {}, world());
  EXPECT_EQ(links.dangling, 0);
  DistributedMatrix matrix(links.links, context, test::options_for(c));
  PageRankSettings settings;
  settings.damping = kDamping, settings.columns = kSeeds;
  settings.tolerance = c.type == ValueType::f64 ? 1e-12 : 1e-6;
  PageRank pagerank(matrix, settings);
  DistributedVector v(matrix, VectorLayout::rows, c.type, kSeeds), p(matrix, VectorLayout::rows, c.type, kSeeds);
  std::vector<double> restarts;
  if (world().rank() == 0)
    for (std::int64_t i = 0; i < kVertices; ++i)
      for (std::int64_t j = 0; j < kSeeds; ++j) restarts.push_back(i == 5 * j ? 4 : 0);  // scaled to sum 1
  v.scatter(restarts, context.stream());
  EXPECT_TRUE(pagerank.run(&v, p).converged());
  const HostVector<double> scores = p.gather(context.stream());
  for (std::size_t at = 0; at < scores.size(); ++at) {
    const auto i = static_cast<std::int64_t>(at) / kSeeds, j = static_cast<std::int64_t>(at) % kSeeds;
    const auto steps = static_cast<double>((i - 5 * j + kVertices) % kVertices);
    EXPECT_NEAR(scores[at], (1 - kDamping) * std::pow(kDamping, steps) / (1 - std::pow(kDamping, kVertices)),
                10 * settings.tolerance);
  }
  std::vector<double> wrong = restarts;
  if (world().rank() == 0) wrong[3 * kSeeds + 1] = -4e-10;  // however small
  DistributedVector w(matrix, VectorLayout::rows, c.type, kSeeds);
  w.scatter(wrong, context.stream());
  const std::string text = error_of(ErrorKind::input, [&] { pagerank.run(&w, p); });
  EXPECT_NE(text.find("column 1 of the restart distributions has the weight -4e-10"), std::string::npos) << text;
  settings.tolerance = 0;
  const PageRankResult ended =
      PageRank(matrix, settings).run(&v, p, {}, [] { return world().rank() == world().size() - 1; });
  EXPECT_TRUE(ended.interrupted);
  EXPECT_EQ(ended.iterations, 1);
  EXPECT_TRUE(pagerank.run(nullptr, p).converged());
  for (const double score : p.gather(context.stream())) EXPECT_NEAR(score, 1.0 / kVertices, 1e-7);
}
SHARDMAT_MATRIX_TEST(PageRank, Ring, rank_ring)

TEST(Eigen, RefusesOptionsThatDifferOverTheRanks) {
  test::TestMatrix at(kHost64, "poisson27:n=4", LocalSort::none);
  const Communicator& ranks = at.context.communicator();
  if (ranks.size() == 1) GTEST_SKIP() << "one rank";
  const bool last = ranks.rank() == ranks.size() - 1;
  const auto refuses = [](const char* name, const std::function<void()>& make) {
    const std::string text = error_of(ErrorKind::usage, make);
    EXPECT_NE(text.find(std::string("on this rank ") + name + " is"), std::string::npos) << text;
  };
  LanczosOptions pairs;
  pairs.count = last ? 3 : 2;
  refuses("count", [&] { Lanczos search(at.matrix, pairs); });
  PowerOptions power;
  power.seed = last ? 3 : 2;
  refuses("seed", [&] { PowerMethod method(at.matrix, power); });
  PageRankSettings walk;
  walk.damping = last ? 0.5 : 0.25;
  refuses("damping", [&] { PageRank ranking(at.matrix, walk); });
}

}  // namespace
}  // namespace shardmat
