// Chebyshev iteration as a method; the passes are in kernels/krylov/chebyshev_steps.h.
#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/chebyshev_steps.h"
#include "runtime/context/context.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/method_memory.h"
#include "runtime/solvers/loop/residual_norm.h"
#include "runtime/solvers/loop/spectrum.h"

namespace shardmat {
namespace {

using namespace krylov;

constexpr int kLanczosSteps = 40;
constexpr double kAbove = 1.05, kBelow = 0.9;  // Ritz values lie inside the spectrum

template <class T, Scaling kScaling>
class Chebyshev final : public Method {
 public:
  explicit Chebyshev(const MethodInputs& in)
      : in_(in),
        memory_(in, kScaling == Scaling::separate ? 3 : 2, 2),
        sum_(in.context().exchange_context(in.type(), 1), in.columns()) {
    v_.r = memory_.vector<T>(0);
    v_.q = memory_.vector<T>(1);
    if constexpr (kScaling == Scaling::separate) v_.z = memory_.vector<T>(2);
    v_.scale = static_cast<const T*>(in.preconditioner.diagonal());
    v_.d = static_cast<T*>(in.product.x().data);
    v_.scalars = {memory_.scalar(0), memory_.scalar(1)};
    v_.monitor = in.monitor;
    v_.norm = norm_of_passes(in.options.residual_norm);
    refresh(in.context().stream());
  }

  void refresh(Stream& stream) override {
    const Spectrum found = estimate_spectrum(in_.product, in_.preconditioner, kLanczosSteps, "solver", stream);
    const double least = kBelow * found.least, largest = kAbove * found.largest;
    v_.theta = (largest + least) / 2;
    v_.delta = (largest - least) / 2;
  }

  void start(const void* b, void* x, Guess guess, Stream& stream) override {
    v_.x = static_cast<T*>(x);
    in_.residual(b, x, guess, v_.r, stream);
    precondition(stream);
    in_.run(ChebyshevNorm<T, kScaling>{v_}, stream);
    sum_(v_.scalars.squares, stream);
    in_.run(ChebyshevFirst<T, kScaling>{v_}, stream);
  }
  const double* squares() const override { return v_.scalars.squares; }

  void iterate(std::int64_t, Stream& stream) override {
    in_.product.multiply(1, 0, in_.view(v_.q), stream);
    in_.run(ChebyshevResidual<T, kScaling>{v_}, stream);
    if constexpr (kScaling == Scaling::separate) {
      precondition(stream);
      in_.run(ChebyshevDirection<T>{v_}, stream);
    }
    sum_(v_.scalars.squares, stream);
    in_.run_scalars(ChebyshevNote{{}, v_.scalars.squares, v_.monitor}, stream);
  }

  IterationCosts costs(std::int64_t) const override {
    constexpr bool kSeparate = kScaling == Scaling::separate, kDiagonal = kScaling == Scaling::diagonal;
    return {1, 1, kSeparate ? 1.0 : 0.0, in_.pass_bytes(kSeparate ? 10 : 7, kDiagonal ? 1 : 0)};
  }
  std::int64_t device_bytes() const override { return memory_.bytes(); }

 private:
  void precondition(Stream& stream) {
    if constexpr (kScaling == Scaling::separate) in_.precondition(v_.r, memory_.template vector<T>(2), stream);
  }

  MethodInputs in_;
  MethodMemory memory_;
  SumOverRanks sum_;
  ChebyshevVectors<T, kScaling> v_{};
};

}  // namespace

std::unique_ptr<Method> make_chebyshev(const MethodInputs& inputs) { return make_preconditioned<Chebyshev>(inputs); }

}  // namespace shardmat
