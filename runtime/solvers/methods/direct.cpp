// Iterative refinement with the factors of the matrix as its preconditioner; the passes are in
// kernels/krylov/refinement_steps.h.
#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/refinement_steps.h"
#include "runtime/context/context.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/method_memory.h"

namespace shardmat {
namespace {

using namespace krylov;

template <class T>
class Refinement final : public Method {
 public:
  explicit Refinement(const MethodInputs& in)
      : in_(in), memory_(in, 2, 2), sum_(in.context().exchange_context(in.type(), 1), in.columns()) {
    step_.r = memory_.vector<T>(0), step_.q = memory_.vector<T>(1);
    step_.z = static_cast<const T*>(in.product.x().data);
    step_.scalars = {memory_.scalar(0), memory_.scalar(1)};
    step_.monitor = in.monitor;
  }

  void start(const void* b, void* x, Guess guess, Stream& stream) override {
    step_.x = static_cast<T*>(x);
    in_.residual(b, x, guess, step_.r, stream);
    in_.run(RefinementStart<T>{step_.r, step_.scalars}, stream);
    sum_(step_.scalars.squares, stream);
  }
  const double* squares() const override { return step_.scalars.squares; }

  void iterate(std::int64_t, Stream& stream) override {
    in_.preconditioner.apply(in_.view(step_.r), in_.product.x(), stream);
    in_.product.multiply(1, 0, in_.view(memory_.template vector<T>(1)), stream);
    in_.run(step_, stream);
    sum_(step_.scalars.squares, stream);
    in_.run_scalars(RefinementNote{{}, step_.scalars, step_.monitor}, stream);
  }

  IterationCosts costs(std::int64_t) const override { return {1, 1, 1, in_.pass_bytes(6)}; }
  std::int64_t device_bytes() const override { return memory_.bytes(); }

 private:
  MethodInputs in_;
  MethodMemory memory_;
  SumOverRanks sum_;
  RefinementStep<T> step_{};
};

}  // namespace

std::unique_ptr<Method> make_direct_method(const MethodInputs& inputs) {
  return dispatch(inputs.type(), [&]<class Tag>(Tag) -> std::unique_ptr<Method> {
    return std::make_unique<Refinement<typename Tag::type>>(inputs);
  });
}

}  // namespace shardmat
