// PageRank: the stationary distribution of a random walk with restarts, for any number of restart distributions at once. And
// from a graph to the matrix of a random walk on it.
//
// Power iteration p ← d·(Pᵀp + m·v) + (1 − d)·v, where the mass m of dangling vertices goes where restarts go (L. Page,
// S. Brin, R. Motwani and T. Winograd, "The PageRank citation ranking", 1999; D. F. Gleich, "PageRank beyond the Web", SIAM
// Review 2015, "strongly preferential"). With Σp = 1 this is p ← y + (1 − Σy)·v for y = d·Pᵀp (S. D. Kamvar et al., WWW
// 2003, Alg. 1), which needs no list of dangling vertices and keeps Σp = 1 to rounding. Vectors and sums stay on the
// devices.
//
// Ownership: the matrix must outlive a PageRank.
// Threads: as DistributedMatrix. Everything is collective and gives the same result on all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {

class ColumnMagnitudes;

struct TransitionOptions {
  bool unweighted = false;     ///< every stored entry of the graph counts as weight 1, whatever its value
  std::string method = "nnz";  ///< partitioner: which rows of Pᵀ each rank keeps
};

struct Transition {
  MatrixSource links;         ///< Pᵀ: entry (j, i) is the probability of a step from vertex i to vertex j
  std::int64_t dangling = 0;  ///< vertices whose weights sum to 0; their columns of Pᵀ hold zeros or nothing
};

/// Pᵀ of the graph whose entry (i, j) is the weight of an edge from vertex i to vertex j: weights over the sum of their row,
/// formed in f64. Memory and requirements: as of runtime/source/transposed.h. Collective; the same error on all ranks:
/// Error(usage) for a matrix that is not square, Error(input) for a weight that is negative or not finite, which names the
/// edge.
Transition transition_matrix(const MatrixSource& graph, const TransitionOptions& options, Communicator& ranks);

struct PageRankSettings {
  double damping = 0.85;     ///< d: probability that the walk goes on along an edge; in [0, 1)
  double tolerance = 1e-10;  ///< a column has converged when one iteration changes it by at most this, in the L1 norm
  std::int64_t max_iterations = 1000;
  std::int64_t columns = 1;  ///< restart distributions that are iterated at once
  ProductOptions product;    ///< its number of columns is set by PageRank
};

/// Called on every rank after each iteration with the L1 norm of each column's change.
using PageRankMonitor = std::function<void(std::int64_t iteration, const std::vector<double>& changes)>;

struct RankedColumn {
  bool converged = false;
  std::int64_t iterations = 0;  ///< since this iteration the change is within the tolerance; all of them if not converged
  double change = 0;            ///< L1 norm of the last iteration's change
  std::vector<double> history;  ///< of every iteration
};

struct PageRankResult {
  std::vector<RankedColumn> columns;
  std::int64_t iterations = 0;  ///< that all columns took: until the change of every column was within the tolerance
  bool interrupted = false;     ///< `stop` ended it
  double seconds = 0;
  bool converged() const;
};

class PageRank {
 public:
  /// `links`: Pᵀ in f64 or f32, as transition_matrix() makes it; each column sums to 1, or to 0 for a dangling vertex. It
  /// must outlive this object. Throws Error(usage) on all ranks for settings out of range, for half precision and for a
  /// matrix that is not square.
  PageRank(DistributedMatrix& links, const PageRankSettings& settings);
  ~PageRank();
  PageRank(const PageRank&) = delete;
  PageRank& operator=(const PageRank&) = delete;

  /// Iterates from p = v. `v`: restart distributions, n × columns in row layout of sum_type(); every column is scaled to sum
  /// 1 in place. Null: uniform. `scores`: p, of the same shape; overwritten. Throws Error(input) for a column of v that has
  /// negative entries or no positive one.
  /// `stop` is asked on every rank now and then; true on any rank ends the run with the scores at hand.
  PageRankResult run(DistributedVector* v, DistributedVector& scores, const PageRankMonitor& monitor = {},
                     const std::function<bool()>& stop = {});

  const Product& product() const { return *product_; }
  const PageRankSettings& settings() const { return settings_; }
  std::string_view summed_by() const { return sums_->summed_by(); }
  /// Device memory of the product and of the vectors of this object.
  std::int64_t device_bytes() const;

 private:
  void normalise_columns(DistributedVector& v, Stream& stream);
  void step(const DistributedVector& v, double scale, DistributedVector& from, DistributedVector& to, Stream& stream);
  std::vector<double> read(const double* values, Stream& stream) const;
  double* scalars(int which) const { return scalars_.as<double>() + which * settings_.columns; }

  DistributedMatrix& links_;
  PageRankSettings settings_;
  std::unique_ptr<Product> product_;
  std::optional<VectorSums> sums_;
  std::unique_ptr<ColumnMagnitudes> magnitudes_;
  std::optional<DistributedVector> ones_, other_;
  Buffer scalars_;  ///< three numbers a column
};

}  // namespace shardmat
