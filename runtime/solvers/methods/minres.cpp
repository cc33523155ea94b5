// MINRES; the passes are in kernels/krylov/minres_steps.h.
#include <utility>

#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/minres_steps.h"
#include "runtime/context/context.h"
#include "runtime/solvers/loop/error_estimate.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/method_memory.h"
#include "runtime/solvers/loop/product_with_dot.h"
#include "runtime/solvers/loop/residual_norm.h"

namespace shardmat {
namespace {

using namespace krylov;

template <class T, Scaling kScaling>
class Minres final : public Method {
 public:
  explicit Minres(const MethodInputs& in)
      : in_(in),
        memory_(in, kScaling == Scaling::separate ? 7 : 6, 11),
        multiply_(in),
        sum_one_(in.context().exchange_context(in.type(), 1), in.columns()),
        sum_two_(in.context().exchange_context(in.type(), 1), 2 * in.columns()) {
    v_.r = memory_.vector<T>(0), v_.q = memory_.vector<T>(1);
    v_.v = memory_.vector<T>(2), v_.v_before = memory_.vector<T>(3);
    v_.w = memory_.vector<T>(4), v_.w_before = memory_.vector<T>(5);
    if constexpr (kScaling == Scaling::separate) v_.z = memory_.vector<T>(6);
    v_.slot = static_cast<T*>(in.product.x().data);
    v_.scale = static_cast<const T*>(in.preconditioner.diagonal());
    int next = 0;
    MinresScalars& s = v_.scalars;
    for (double** scalar :
         {&s.delta, &s.vz, &s.squares, &s.gamma, &s.gamma_before, &s.eta, &s.c, &s.c_before, &s.s, &s.s_before, &s.norm})
      *scalar = memory_.scalar(next++);
    v_.monitor = in.monitor;
    v_.norm = norm_of_passes(in.options.residual_norm);
    const double least = least_squares_share(in.type());
    v_.least = least_squares_tolerance(in.options, in.type()), v_.singular = 10 * least * least;
  }

  void start(const void* b, void* x, Guess guess, Stream& stream) override {
    v_.x = static_cast<T*>(x);
    in_.residual(b, x, guess, v_.r, stream);
    precondition(v_.r, stream);
    in_.run(MinresStart<T, kScaling>{v_}, stream);
    sum_two_(v_.scalars.vz, stream);
    in_.run(MinresFirst<T, kScaling>{v_}, stream);
  }
  const double* squares() const override { return v_.scalars.squares; }
  const double* natural_squares() const override { return v_.scalars.vz; }
  /// Vectors change places in each.
  std::int64_t cycle() const override { return 2; }

  void iterate(std::int64_t, Stream& stream) override {
    multiply_(in_, v_.q, v_.scalars.delta, stream);
    in_.run(MinresLanczos<T, kScaling>{v_}, stream);
    if constexpr (kScaling == Scaling::separate) {
      precondition(v_.v_before, stream);
      in_.run(MinresProducts<T>{v_.v_before, v_.z, v_.scalars.vz}, stream);
    }
    sum_one_(v_.scalars.vz, stream);
    in_.run(MinresUpdate<T, kScaling>{v_}, stream);
    sum_one_(v_.scalars.squares, stream);
    in_.run_scalars(MinresNote{{}, v_.scalars, v_.monitor, v_.norm}, stream);
    std::swap(v_.v, v_.v_before);
    std::swap(v_.w, v_.w_before);
  }

  IterationCosts costs(std::int64_t) const override {
    constexpr bool kSeparate = kScaling == Scaling::separate, kDiagonal = kScaling == Scaling::diagonal;
    return {1, 3, kSeparate ? 1.0 : 0.0,
            in_.pass_bytes((kSeparate ? 17 : 14) + multiply_.vectors_read(), kDiagonal ? 2 : 0)};
  }
  std::int64_t device_bytes() const override { return memory_.bytes() + multiply_.device_bytes(); }

 private:
  void precondition(T* v, Stream& stream) {
    if constexpr (kScaling == Scaling::separate) in_.precondition(v, memory_.template vector<T>(6), stream);
  }

  MethodInputs in_;
  MethodMemory memory_;
  ProductWithDot<T> multiply_;
  SumOverRanks sum_one_, sum_two_;
  MinresVectors<T, kScaling> v_{};
};

}  // namespace

std::unique_ptr<Method> make_minres(const MethodInputs& inputs) { return make_preconditioned<Minres>(inputs); }

}  // namespace shardmat
