// LSQR (C. C. Paige and M. A. Saunders, 1982): Lanczos bidiagonalisation of A, and a QR factorisation of what it gives.
#include <algorithm>
#include <cmath>

#include "runtime/solvers/loop/least_squares_method.h"

namespace shardmat {
namespace {

class Lsqr final : public LeastSquaresMethod {
 public:
  explicit Lsqr(LeastSquaresInputs& in) : in_(in), v_(in.like_x()), w_(in.like_x()) {}

  LeastSquaresNorms start(DistributedVector& r, DistributedVector& x) override {
    u_ = &r, x_ = &x;
    Stream& stream = in_.stream();
    beta_ = in_.norm(*u_);
    phi_bar_ = beta_;
    alpha_ = 0;
    if (beta_ > 0) {
      scale({1 / beta_}, *u_, stream);
      in_.multiply_transposed(1, *u_, 0, v_);
      alpha_ = in_.norm(v_);
    }
    if (alpha_ > 0) scale({1 / alpha_}, v_, stream);
    copy(v_, w_, stream);
    rho_bar_ = alpha_;
    return {phi_bar_, phi_bar_ * alpha_, norm_of_a_};
  }

  LeastSquaresNorms iterate() override {
    Stream& stream = in_.stream();
    in_.multiply(1, v_, -alpha_, *u_);
    beta_ = in_.norm(*u_);
    norm_of_a_ = std::max(norm_of_a_, std::hypot(alpha_, beta_));  // of a column of the bidiagonal matrix: at most ‖A‖
    alpha_ = 0;
    if (beta_ > 0) {
      scale({1 / beta_}, *u_, stream);
      in_.multiply_transposed(1, *u_, -beta_, v_);
      alpha_ = in_.norm(v_);
      if (alpha_ > 0) scale({1 / alpha_}, v_, stream);
    }
    const double rho = std::hypot(rho_bar_, beta_), c = rho_bar_ / rho, s = beta_ / rho;
    const double phi = c * phi_bar_, theta = s * alpha_;
    phi_bar_ *= s;
    rho_bar_ = -c * alpha_;
    axpy({phi / rho}, w_, *x_, stream);
    xpay(v_, {-theta / rho}, w_, stream);
    return {phi_bar_, phi_bar_ * alpha_ * std::abs(c), norm_of_a_};
  }

 private:
  LeastSquaresInputs& in_;
  DistributedVector v_, w_;
  DistributedVector *u_ = nullptr, *x_ = nullptr;
  double alpha_ = 0, beta_ = 0, rho_bar_ = 0, phi_bar_ = 0, norm_of_a_ = 0;
};

}  // namespace

std::unique_ptr<LeastSquaresMethod> make_lsqr(LeastSquaresInputs& inputs) { return std::make_unique<Lsqr>(inputs); }

}  // namespace shardmat
