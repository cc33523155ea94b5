// Conjugate gradients with one sum over the ranks an iteration; the passes are in kernels/krylov/single_reduction_steps.h.
#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/single_reduction_steps.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/late_residual.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/method_memory.h"
#include "runtime/solvers/loop/product_with_dot.h"
#include "runtime/solvers/loop/residual_norm.h"

namespace shardmat {
namespace {

using namespace krylov;

template <class T, Scaling kScaling>
class SingleReductionCg final : public Method {
 public:
  explicit SingleReductionCg(const MethodInputs& in)
      : in_(in),
        memory_(in, kScaling == Scaling::none ? 3 : 4, 7),
        multiply_(in),
        sum_two_(in.context().exchange_context(in.type(), 1), 2 * in.columns()),
        sum_three_(in.context().exchange_context(in.type(), 1), 3 * in.columns()) {
    T* const slot = static_cast<T*>(in.product.x().data);
    v_.w = memory_.vector<T>(0), v_.p = memory_.vector<T>(1), v_.s = memory_.vector<T>(2);
    if constexpr (kScaling == Scaling::none) v_.r = slot;
    else v_.r = memory_.vector<T>(3), v_.z = slot;
    v_.scale = static_cast<const T*>(in.preconditioner.diagonal());
    v_.scalars = {memory_.scalar(0), memory_.scalar(1), memory_.scalar(2),
                  memory_.scalar(3), memory_.scalar(4), memory_.scalar(5)};
    v_.monitor = in.monitor;
    v_.norm = norm_of_passes(in.options.residual_norm);
  }

  void start(const void* b, void* x, Guess guess, Stream& stream) override {
    v_.x = static_cast<T*>(x);
    in_.residual(b, x, guess, w(), stream);  // its product overwrites what lies in the product's x
    in_.run(SingleReductionStart<T, kScaling>{v_}, stream);
    lacks_z_ = may_be_late(kScaling, v_.norm);
    fresh_ = true;
    const auto& s = v_.scalars;
    if (!lacks_z_) {
      precondition(stream);
      return sum_two_(s.rz, stream);
    }
    sum_late_residual(in_, v_.r, s.rz, s.squares, memory_.scalar(6), sum_two_, stream);
  }

  const double* squares() const override { return v_.scalars.squares; }
  const double* natural_squares() const override { return v_.scalars.rz; }

  void iterate(std::int64_t, Stream& stream) override {
    if (fresh_) {  // not in start(), because the last start finds that all columns are done
      if (lacks_z_) {
        precondition(stream);
        sum_two_(v_.scalars.rz, stream);
      }
      multiply_(in_, w(), v_.scalars.zaz, stream);
      in_.run_scalars(SingleReductionFirst{{}, v_.scalars, v_.monitor}, stream);
      fresh_ = false;
    }
    in_.run(SingleReductionUpdate<T, kScaling>{v_}, stream);
    precondition(stream);
    multiply_.on_this_rank(in_, w(), v_.scalars.zaz, stream);
    sum_three_(v_.scalars.rz, stream);
    in_.run_scalars(SingleReductionNote{{}, v_.scalars, v_.monitor, unit_roundoff(in_.type())}, stream);
  }

  IterationCosts costs(std::int64_t) const override {
    constexpr bool kSeparate = kScaling == Scaling::separate, kDiagonal = kScaling == Scaling::diagonal;
    return {1, 1, kSeparate ? 1.0 : 0.0,
            in_.pass_bytes((kSeparate   ? 12
                            : kDiagonal ? 10
                                        : 9) +
                               multiply_.vectors_read(),
                           kDiagonal ? 1 : 0)};
  }
  std::int64_t device_bytes() const override { return memory_.bytes() + multiply_.device_bytes(); }

 private:
  T* w() const { return memory_.template vector<T>(0); }
  /// z and the sums of the residual on this rank, unless the pass before has made them.
  void precondition(Stream& stream) {
    if constexpr (kScaling == Scaling::separate) {
      in_.preconditioner.apply(in_.view(v_.r), in_.product.x(), stream);
      const Preconditioned<T, kScaling> residual{v_.r, v_.z, nullptr};
      in_.run(ResidualSums<T, kScaling>{residual, v_.norm, v_.scalars.rz, v_.scalars.squares}, stream);
    }
  }

  MethodInputs in_;
  MethodMemory memory_;
  ProductWithDot<T> multiply_;
  SumOverRanks sum_two_, sum_three_;
  SingleReductionVectors<T, kScaling> v_{};
  bool fresh_ = true;     ///< no iteration since start()
  bool lacks_z_ = false;  ///< M·r of start() is left to the first iteration
};

}  // namespace

std::unique_ptr<Method> make_single_reduction_cg(const MethodInputs& inputs) {
  return make_preconditioned<SingleReductionCg>(inputs);
}

}  // namespace shardmat
