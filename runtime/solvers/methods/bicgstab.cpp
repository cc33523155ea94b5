// BiCGStab; the passes are in kernels/krylov/bicgstab_steps.h.
#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/bicgstab_steps.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/method_memory.h"
#include "runtime/solvers/loop/random_entries.h"

namespace shardmat {
namespace {

using namespace krylov;

template <class T, Scaling kScaling>
class Bicgstab final : public Method {
 public:
  explicit Bicgstab(const MethodInputs& in)
      : in_(in),
        memory_(in, kScaling == Scaling::separate ? 6 : 5, 10),
        sum_two_(in.context().exchange_context(in.type(), 1), 2 * in.columns()),
        sum_three_(in.context().exchange_context(in.type(), 1), 3 * in.columns()) {
    v_.r = memory_.vector<T>(0), v_.shadow = memory_.vector<T>(1), v_.p = memory_.vector<T>(2);
    v_.v = memory_.vector<T>(3), v_.t = memory_.vector<T>(4);
    v_.slot = static_cast<T*>(in.product.x().data);
    v_.scale = static_cast<const T*>(in.preconditioner.diagonal());
    if constexpr (kScaling == Scaling::separate) v_.mp = memory_.vector<T>(5), v_.ms = v_.slot;
    v_.scalars = {memory_.scalar(0), memory_.scalar(1), memory_.scalar(2), memory_.scalar(3), memory_.scalar(4),
                  memory_.scalar(5), memory_.scalar(6), memory_.scalar(7), memory_.scalar(8), memory_.scalar(9)};
    v_.monitor = in.monitor;
    v_.below_rounding = unit_roundoff(in.type()) * unit_roundoff(in.type());
  }

  void begin() override { renewals_ = 0, v_.renewed = false; }

  void start(const void* b, void* x, Guess guess, Stream& stream) override {
    v_.x = static_cast<T*>(x);
    in_.residual(b, x, guess, v_.r, stream);
    in_.run(BicgstabStart<T, kScaling>{v_}, stream);
    sum_three_(v_.scalars.rho, stream);
  }
  /// The shadow was orthogonal to r, or to A·M·p: a random one hardly is.
  bool renew(Stream& stream) override {
    DistributedVector shadow(in_.matrix(), VectorLayout::rows, in_.type(), in_.columns());
    fill_random(shadow, ++renewals_, Entries::fractions, stream);
    in_.product.clear_held(shadow.view(), stream);
    copy_on_device(v_.shadow, shadow.view().data, in_.vector_bytes(), stream);
    in_.product.wait(stream);
    return v_.renewed = true;
  }
  const double* squares() const override { return v_.scalars.squares; }

  void iterate(std::int64_t, Stream& stream) override {
    if constexpr (kScaling == Scaling::separate) {
      in_.preconditioner.apply(in_.view(v_.p), in_.product.x(), stream);
      copy_on_device(memory_.vector<T>(5), v_.slot, in_.vector_bytes(), stream);
    }
    in_.product.multiply(1, 0, in_.view(v_.v), stream);
    in_.run(BicgstabShadow<T>{v_.shadow, v_.v, v_.scalars.sv, v_.scalars.vv}, stream);
    sum_two_(v_.scalars.sv, stream);
    in_.run(BicgstabHalf<T, kScaling>{v_}, stream);
    if constexpr (kScaling == Scaling::separate) in_.preconditioner.apply(in_.view(v_.r), in_.product.x(), stream);
    in_.product.multiply(1, 0, in_.view(v_.t), stream);
    in_.run(BicgstabStabilise<T>{v_.t, v_.r, v_.scalars.ts, v_.scalars.tt}, stream);
    sum_two_(v_.scalars.ts, stream);
    in_.run(BicgstabResidual<T, kScaling>{v_}, stream);
    sum_two_(v_.scalars.rho, stream);
    in_.run(BicgstabDirection<T, kScaling>{v_}, stream);
  }

  IterationCosts costs(std::int64_t) const override {
    constexpr bool kSeparate = kScaling == Scaling::separate, kDiagonal = kScaling == Scaling::diagonal;
    return {2, 3, kSeparate ? 2.0 : 0.0, in_.pass_bytes(kSeparate ? 21 : 20, kDiagonal ? 3 : 0)};
  }
  std::int64_t device_bytes() const override { return memory_.bytes(); }

 private:
  MethodInputs in_;
  MethodMemory memory_;
  SumOverRanks sum_two_, sum_three_;
  BicgstabVectors<T, kScaling> v_{};
  std::uint64_t renewals_ = 0;  ///< in this solve
};

}  // namespace

std::unique_ptr<Method> make_bicgstab(const MethodInputs& inputs) { return make_preconditioned<Bicgstab>(inputs); }

}  // namespace shardmat
