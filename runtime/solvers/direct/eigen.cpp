// Eigen's sparse factors on one rank: L·D·Lᵀ of a positive definite matrix, else L·U. Slower than MUMPS by far on large
// ones.
#include "runtime/solvers/direct/factors.h"

#ifdef SHARDMAT_HAVE_EIGEN
#define EIGEN_MPL2_ONLY
#include <fmt/format.h>

#include <Eigen/SparseCholesky>
#include <Eigen/SparseLU>
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/timer.h"
#endif

namespace shardmat::direct {

#ifdef SHARDMAT_HAVE_EIGEN

namespace {

using multigrid::NodeRows;
using EigenRows = Eigen::SparseMatrix<double, Eigen::ColMajor, std::int32_t>;
using EigenColumns = Eigen::Map<Eigen::MatrixXd>;
using Definite = Eigen::SimplicialLDLT<EigenRows, Eigen::Lower>;
using Any = Eigen::SparseLU<EigenRows>;

class EigenFactors final : public Factors {
 public:
  void factorise(const NodeRows& a, Kind kind, std::int64_t) override {
    ready_ = false;
    if (a.count() == 0) return;
    const bool definite = kind == Kind::definite;
    take(a, definite);
    report_.note.clear(), report_.definite = false;
    if (definite && factorise_definite()) {
      describe("L·D·Lᵀ without pivoting");
      report_.definite = true;
    } else {
      if (definite) take(a, false), report_.note = "not positive definite, as the first factorisation found";
      factorise_any();
      describe("L·U");
    }
  }

  void solve(std::span<double> b, int columns) override {
    if (b.empty()) return;
    if (!ready_) throw Error(ErrorKind::usage, "there are no factors: the last factorisation failed", "preconditioner");
    const Timer timer;
    EigenColumns all(b.data(), static_cast<Eigen::Index>(b.size()) / columns, columns);
    if (definite_) all = definite_->solve(all).eval();
    else all = any_->solve(all).eval();
    report_.solve_seconds += timer.seconds(), ++report_.solves;
  }

  std::int64_t bytes() const override { return report_.bytes; }

 private:
  /// The matrix by columns; of a `symmetric` one its lower half, which its rows are the upper half of.
  void take(const NodeRows& a, bool symmetric) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (a.count() >= kMost || a.blocks() >= kMost)
      throw Error(ErrorKind::usage, "Eigen factorises matrices of fewer than 2³¹ nonzeros", "matrix");
    require_host_memory(24 * a.blocks(), "the matrix for Eigen");
    EigenRows taken(a.count(), a.count());
    Eigen::VectorXi counts(a.count());
    for (std::int64_t i = 0; i < a.count(); ++i) counts[i] = static_cast<int>(a.start[at(i) + 1] - a.start[at(i)]);
    Eigen::SparseMatrix<double, Eigen::RowMajor, std::int32_t> rows(a.count(), a.count());
    rows.reserve(counts);
    for (std::int64_t i = 0; i < a.count(); ++i)
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k)
        if (!symmetric || a.column[at(k)] <= i) rows.insert(i, a.column[at(k)]) = a.value[at(k)];
    taken = rows;
    const bool same = ordered_for_ == (symmetric ? 1 : 2) && taken.nonZeros() == matrix_.nonZeros() &&
                      std::equal(taken.innerIndexPtr(), taken.innerIndexPtr() + taken.nonZeros(), matrix_.innerIndexPtr()) &&
                      std::equal(taken.outerIndexPtr(), taken.outerIndexPtr() + taken.cols() + 1, matrix_.outerIndexPtr());
    matrix_ = std::move(taken);
    if (same) return;
    const Timer timer;
    definite_.reset(), any_.reset();
    if (symmetric) definite_.emplace().analyzePattern(matrix_);
    else any_.emplace().analyzePattern(matrix_);
    ordered_for_ = symmetric ? 1 : 2;
    report_ = {};
    report_.analysis_seconds = timer.seconds();
  }

  /// False: a pivot is not above 0.
  bool factorise_definite() {
    const Timer timer;
    definite_->factorize(matrix_);
    report_.factorise_seconds = timer.seconds();
    if (definite_->info() != Eigen::Success) return false;
    report_.nonzeros = definite_->matrixL().nestedExpression().nonZeros();
    return (definite_->vectorD().array() > 0).all();
  }

  void factorise_any() {
    const Timer timer;
    any_->factorize(matrix_);
    report_.factorise_seconds = timer.seconds();
    if (any_->info() != Eigen::Success)
      throw Error(ErrorKind::input, fmt::format("the matrix is singular, as Eigen says: {}", any_->lastErrorMessage()),
                  "matrix");
    report_.nonzeros = any_->nnzL() + any_->nnzU();
  }

  void describe(const char* kind) {
    report_.library = fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
    report_.kind = kind;
    report_.ordering = definite_ ? "AMD" : "COLAMD";
    report_.bytes = 12 * report_.nonzeros;
    ready_ = true;
  }

  EigenRows matrix_;
  int ordered_for_ = 0;  ///< 1: definite_, 2: any_
  std::optional<Definite> definite_;
  std::optional<Any> any_;
  bool ready_ = false;
};

}  // namespace

std::unique_ptr<Factors> make_eigen() { return std::make_unique<EigenFactors>(); }

bool built_with_eigen() { return true; }

#else

bool built_with_eigen() { return false; }
std::unique_ptr<Factors> make_eigen() { return nullptr; }

#endif

}  // namespace shardmat::direct
