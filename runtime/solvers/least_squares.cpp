#include "runtime/solvers/least_squares.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "comm/same_on_all_ranks.h"
#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/context/context_scope.h"
#include "runtime/solvers/loop/least_squares_method.h"
#include "runtime/solvers/loop/named.h"
#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

// One for each file of methods/ that solves least squares.
std::unique_ptr<LeastSquaresMethod> make_cgls(LeastSquaresInputs& inputs);
std::unique_ptr<LeastSquaresMethod> make_lsqr(LeastSquaresInputs& inputs);

namespace {

constexpr auto kLeastSquaresMethods = std::to_array<LeastSquaresEntry>({
    {.name = "lsqr",
     .help = "least squares by Lanczos bidiagonalisation, for matrices of any shape; takes no preconditioner",
     .make = make_lsqr},
    {.name = "cgls",
     .help = "the same by conjugate gradients on the normal equations: less memory, less exact where A is ill-conditioned",
     .make = make_cgls},
});

constexpr std::int64_t kMostRestarts = 5;

class LeastSquares {
 public:
  LeastSquares(DistributedMatrix& a, const DistributedVector& b, DistributedVector& x, const LeastSquaresOptions& options)
      : options_(options),
        rtol_(options.rtol.value_or(default_rtol(a.type()))),
        b_(b),
        x_(x),
        product_(a.product(1)),
        transposed_(a.transposed_product(1)),
        in_(a, *product_, *transposed_),
        r_(in_.like_b()),
        normal_(in_.like_x()),
        method_(find_named(kLeastSquaresMethods, "solver", options.method, "solver").make(in_)),
        communicator_(a.context().communicator()) {}

  LeastSquaresResult operator()() {
    const Timer timer;
    result_.norm_of_b = in_.norm(b_);
    require_finite(result_.norm_of_b, "b");
    require_finite(in_.norm(x_), "x");
    double best = std::numeric_limits<double>::infinity();
    for (bool first = true;; first = false) {
      const double measure = compute_anew();
      if (is_met(result_.residual, result_.normal_residual)) break;
      if (result_.iterations >= options_.max_iterations) {
        result_.end = LeastSquaresEnd::max_iterations;
        break;
      }
      if (!first && (result_.restarts >= kMostRestarts || measure > 0.5 * best)) {
        result_.end = LeastSquaresEnd::rounding;
        break;
      }
      result_.restarts += first ? 0 : 1;
      best = std::min(best, measure);
      run(first);
    }
    result_.seconds = timer.seconds();
    return std::move(result_);
  }

 private:
  void require_finite(double norm, const char* name) {
    communicator_.run_agreed([&] {
      if (!std::isfinite(norm))
        throw Error(ErrorKind::input,
                    fmt::format("{} holds NaN or infinity, or the sum of its squares leaves the range of f64", name), name);
    });
  }

  /// r and Aᵀ·r from x. Returns the smaller of what the two tolerances compare, in shares of it.
  double compute_anew() {
    Stream& stream = in_.stream();
    copy(b_, r_, stream);
    in_.multiply(-1, x_, 1, r_);
    result_.residual = in_.norm(r_);
    in_.multiply_transposed(1, r_, 0, normal_);
    result_.normal_residual = in_.norm(normal_);
    result_.norm_of_x = in_.norm(x_);
    require_in_range();
    if (result_.residual > 0)
      result_.norm_of_a = std::max(result_.norm_of_a, result_.normal_residual / result_.residual);  // at most ‖A‖
    const double by_b = result_.norm_of_b + result_.norm_of_a * result_.norm_of_x,
                 by_a = result_.norm_of_a * result_.residual;
    return std::min(by_b > 0 ? result_.residual / by_b : 0, by_a > 0 ? result_.normal_residual / by_a : 0);
  }

  /// Numbers that overflow or vanish would pass for a solution.
  void require_in_range() {
    Stream& stream = in_.stream();
    const auto vanishes = [&](DistributedVector& vector, double norm) {
      if (norm > 0 || vector.type() != ValueType::f64) return false;  // squares of f32 do not
      scale({1e150}, vector, stream);                                 // nobody needs it any more if it is not 0
      return in_.norm(vector) > 0;
    };
    const bool is_finite = std::isfinite(result_.residual) && std::isfinite(result_.normal_residual) &&
                           std::isfinite(result_.norm_of_x),
               is_lost = is_finite && (vanishes(r_, result_.residual) || vanishes(normal_, result_.normal_residual));
    communicator_.run_agreed([&] {
      if (!is_finite)
        throw Error(ErrorKind::input,
                    fmt::format("x, A·x or Aᵀ·(b − A·x) leaves the range of {}; scale the matrix{}", name(x_.type()),
                                x_.type() == ValueType::f64 ? "" : ", or take f64"),
                    "type");
      if (is_lost)
        throw Error(ErrorKind::input, "the squares of b − A·x or Aᵀ·(b − A·x) are too small for f64; scale the matrix or b",
                    "b");
    });
  }

  bool is_met(double residual, double normal_residual) {
    if (!std::isfinite(residual + normal_residual + result_.norm_of_a + result_.norm_of_x)) return false;
    if (residual <= rtol_ * (result_.norm_of_b + result_.norm_of_a * result_.norm_of_x)) {
      result_.end = LeastSquaresEnd::solved;
      return true;
    }
    if (result_.history.size() > 1 || normal_residual == 0)  // before, ‖A‖ is hardly known
      if (normal_residual <= rtol_ * result_.norm_of_a * residual) {
        result_.end = LeastSquaresEnd::least_squares;
        return true;
      }
    return false;
  }

  /// Iterates until the method's own residuals meet the tolerance.
  void run(bool first) {
    LeastSquaresNorms norms = method_->start(r_, x_);
    if (first) result_.history.push_back(norms.residual);
    while (result_.iterations < options_.max_iterations && norms.normal_residual > 0) {
      norms = method_->iterate();
      ++result_.iterations;
      if (!std::isfinite(norms.residual)) return;  // computed anew, too, it ends as rounding
      result_.history.push_back(norms.residual);
      result_.norm_of_a = std::max(result_.norm_of_a, norms.of_a);
      if (result_.iterations % kLooks == 0) result_.norm_of_x = in_.norm(x_);
      report(options_.progress, "solve", result_.iterations, options_.max_iterations);
      if (is_met(norms.residual, norms.normal_residual)) return;
    }
  }

  static constexpr std::int64_t kLooks = 10;  ///< iterations between two looks at the norm of x

  const LeastSquaresOptions& options_;
  double rtol_;
  const DistributedVector& b_;
  DistributedVector& x_;
  std::unique_ptr<Product> product_;
  std::unique_ptr<TransposedProduct> transposed_;
  LeastSquaresInputs in_;
  DistributedVector r_, normal_;
  std::unique_ptr<LeastSquaresMethod> method_;
  Communicator& communicator_;
  LeastSquaresResult result_;
};

}  // namespace

std::span<const LeastSquaresEntry> least_squares_methods() { return kLeastSquaresMethods; }

bool is_least_squares_method(std::string_view name) {
  return std::any_of(kLeastSquaresMethods.begin(), kLeastSquaresMethods.end(),
                     [&](const LeastSquaresEntry& entry) { return entry.name == name; });
}

std::string_view LeastSquaresResult::explanation() const {
  switch (end) {
    case LeastSquaresEnd::solved:
      return "b − A·x meets the tolerance";
    case LeastSquaresEnd::least_squares:
      return "Aᵀ·(b − A·x) meets the tolerance: the residual is as small as it can be";
    case LeastSquaresEnd::rounding:
      return "rounding errors keep the residual, computed anew, above the tolerance";
    default:
      return "the iterations ran out";
  }
}

LeastSquaresInputs::LeastSquaresInputs(DistributedMatrix& a, const Product& product, const TransposedProduct& transposed)
    : a_(a), product_(product), transposed_(transposed), sums_(a.context(), 1) {
  a.context().communicator().run_agreed([&] { result_ = Buffer(a.context().device(), sizeof(double)); });
}

Stream& LeastSquaresInputs::stream() const { return a_.context().stream(); }
DistributedVector LeastSquaresInputs::like_b() const { return {a_, VectorLayout::rows, a_.type()}; }
DistributedVector LeastSquaresInputs::like_x() const { return {a_, VectorLayout::columns, a_.type()}; }

void LeastSquaresInputs::multiply(double alpha, const DistributedVector& x, double beta, DistributedVector& y) const {
  product_.multiply(alpha, x.view(), beta, y.view(), stream());
}

void LeastSquaresInputs::multiply_transposed(double alpha, const DistributedVector& x, double beta,
                                             DistributedVector& y) const {
  transposed_.multiply(alpha, x.view(), beta, y.view(), stream());
}

double LeastSquaresInputs::norm(const DistributedVector& x) {
  sums_.norm(x, result_.as<double>(), stream());
  product_.wait(stream());
  double norm = 0;
  copy_to_host(&norm, result_.data(), sizeof norm, stream());
  return norm;
}

LeastSquaresResult solve_least_squares(DistributedMatrix& a, const DistributedVector& b, DistributedVector& x,
                                       const LeastSquaresOptions& options) {
  const ContextScope scope(a.context());
  Communicator& ranks = a.context().communicator();
  ranks.run_agreed([&] {
    find_named(kLeastSquaresMethods, "solver", options.method, "solver");
    if (is_half(a.type())) refuse_half(a.type());
    if (options.max_iterations < 0)
      throw Error(ErrorKind::usage, "the number of iterations must be 0 or more", "max_iterations");
    if (options.rtol && !(*options.rtol >= 0 && std::isfinite(*options.rtol)))
      throw Error(ErrorKind::usage, "the relative tolerance must be a number that is 0 or more", "rtol");
    b.require_like(*a.y_rows(), 1, a.type(), "b");
    x.require_like(*a.x_rows(), 1, a.type(), "x");
  });
  require_same_on_all_ranks(ranks, {Given{"solver", options.method, {}}, given_number("rtol", options.rtol.value_or(-1)),
                                    given_number("max_iterations", static_cast<double>(options.max_iterations))});
  return LeastSquares(a, b, x, options)();
}

}  // namespace shardmat
