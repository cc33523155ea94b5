// CGLS: conjugate gradients on Aᵀ·A·x = Aᵀ·b, with the residual of A·x = b kept. Two vectors less than LSQR has to change.
#include <algorithm>
#include <cmath>

#include "runtime/solvers/loop/least_squares_method.h"

namespace shardmat {
namespace {

class Cgls final : public LeastSquaresMethod {
 public:
  explicit Cgls(LeastSquaresInputs& in) : in_(in), p_(in.like_x()), s_(in.like_x()), q_(in.like_b()) {}

  LeastSquaresNorms start(DistributedVector& r, DistributedVector& x) override {
    r_ = &r, x_ = &x;
    in_.multiply_transposed(1, r, 0, s_);
    take_normal();
    copy(s_, p_, in_.stream());
    return {in_.norm(r), normal_, norm_of_a_};
  }

  LeastSquaresNorms iterate() override {
    Stream& stream = in_.stream();
    in_.multiply(1, p_, 0, q_);
    const double of_q = in_.norm(q_), of_p = in_.norm(p_);
    norm_of_a_ = std::max(norm_of_a_, of_q / of_p);
    const double step = normal_ / of_q / of_q;
    axpy({step}, p_, *x_, stream);
    axpy({-step}, q_, *r_, stream);
    in_.multiply_transposed(1, *r_, 0, s_);
    const double before = normal_;
    take_normal();
    xpay(s_, {normal_ / before}, p_, stream);
    return {in_.norm(*r_), normal_, norm_of_a_};
  }

 private:
  /// s becomes a unit vector. So all numbers stay near those of A, b and x: those of p would be about ‖A‖²·‖x‖.
  void take_normal() {
    normal_ = in_.norm(s_);
    if (normal_ > 0) scale({1 / normal_}, s_, in_.stream());
  }

  LeastSquaresInputs& in_;
  DistributedVector p_, s_, q_;  ///< p and q: of conjugate gradients, divided by ‖Aᵀ·r‖
  DistributedVector *r_ = nullptr, *x_ = nullptr;
  double normal_ = 0, norm_of_a_ = 0;
};

}  // namespace

std::unique_ptr<LeastSquaresMethod> make_cgls(LeastSquaresInputs& inputs) { return std::make_unique<Cgls>(inputs); }

}  // namespace shardmat
