// Conjugate gradients, the classic and the flexible variant. Their passes are in kernels/krylov/cg_steps.h; where kernels
// can sum over the ranks, one launch does all that follows the product (kernels/krylov/cg_iteration.h). Where M takes passes
// of its own and ‖r‖ decides, iterations begin with M·r: the last one of a solve does without.
#include <utility>

#include "comm/exchange/grid_sums.h"
#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/cg_iteration.h"
#include "runtime/context/context.h"
#include "runtime/solvers/loop/cg_variant.h"
#include "runtime/solvers/loop/late_residual.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/method_memory.h"
#include "runtime/solvers/loop/product_with_dot.h"
#include "runtime/solvers/loop/residual_norm.h"
#include "runtime/solvers/loop/setting.h"

namespace shardmat {
namespace {

using namespace krylov;

template <class T, Scaling kScaling>
class Cg final : public Method {
 public:
  explicit Cg(const MethodInputs& in)
      : in_(in),
        memory_(in, kScaling == Scaling::separate ? 3 : 2, 9),
        multiply_(in),
        sum_one_(in.context().exchange_context(in.type(), 1), in.columns()),
        sum_two_(in.context().exchange_context(in.type(), 1), 2 * in.columns()),
        sum_three_(in.context().exchange_context(in.type(), 1), 3 * in.columns()),
        grid_sums_(in.context().exchange_context(in.type(), 1), cg_blocks_for(in), kCgSums) {
    v_.r = memory_.vector<T>(0);
    v_.q = memory_.vector<T>(1);
    if constexpr (kScaling == Scaling::separate) v_.z = memory_.vector<T>(2);
    v_.scale = static_cast<const T*>(in.preconditioner.diagonal());
    v_.p = static_cast<T*>(in.product.x().data);
    v_.scalars = {memory_.scalar(0), memory_.scalar(1), memory_.scalar(2), memory_.scalar(4),
                  memory_.scalar(5), memory_.scalar(7), memory_.scalar(8)};
    if (in.options.variant == CgVariant::flexible) v_.scalars.zq = memory_.scalar(3);
    v_.monitor = in.monitor;
    v_.norm = norm_of_passes(in.options.residual_norm);
    begins_with_z_ = may_be_late(kScaling, v_.norm);
  }

  void start(const void* b, void* x, Guess guess, Stream& stream) override {
    v_.x = static_cast<T*>(x);
    in_.residual(b, x, guess, v_.r, stream);
    lacks_direction_ = begins_with_z_;
    if (!lacks_direction_) return find_direction(stream);
    const CgScalars& s = v_.scalars;
    sum_late_residual(in_, v_.r, s.rz, s.squares, memory_.scalar(6), sum_two_, stream);
  }

  const double* squares() const override { return v_.scalars.squares; }
  const double* natural_squares() const override { return v_.scalars.rz; }

  void iterate(std::int64_t, Stream& stream) override {
    if constexpr (kScaling == Scaling::separate) {
      if (begins_with_z_) iterate_from_z(stream);
      else iterate_to_z(stream);
    } else {
      if (grid_sums_.blocks() == 0) return iterate_in_two_passes(stream);
      const double* const parts = multiply_.without_sum(in_, v_.q, stream);
      run_cg_iteration(
          CgIteration<T, kScaling>{v_, in_.rows(), parts, multiply_.parts_left(), grid_sums_.board(), grid_sums_.blocks()},
          stream);
    }
  }

  IterationCosts costs(std::int64_t) const override {
    constexpr bool kSeparate = kScaling == Scaling::separate, kDiagonal = kScaling == Scaling::diagonal;
    const double sums = grid_sums_.blocks() > 0 ? 0 : begins_with_z_ ? 3 : 2;
    const double vectors = kSeparate ? 10 : 8, more = (begins_with_z_ ? 1 : 0) + (v_.scalars.zq != nullptr ? 1 : 0);
    return {1, sums, kSeparate ? 1.0 : 0.0, in_.pass_bytes(vectors + more + multiply_.vectors_read(), kDiagonal ? 2 : 0)};
  }
  std::int64_t device_bytes() const override { return memory_.bytes() + multiply_.device_bytes(); }

 private:
  void iterate_in_two_passes(Stream& stream) {
    multiply_(in_, v_.q, v_.scalars.pq, stream);
    in_.run(CgResidual<T, kScaling>{v_}, stream);
    sum_two_(v_.scalars.rz, stream);
    in_.run(CgDirection<T, kScaling>{v_}, stream);
  }
  void iterate_to_z(Stream& stream) {
    multiply_(in_, v_.q, v_.scalars.pq, stream);
    in_.run(CgResidual<T, kScaling>{v_}, stream);
    precondition(stream);
    in_.run(CgDirection<T, kScaling>{v_}, stream);
  }
  void iterate_from_z(Stream& stream) {
    precondition(stream);
    in_.run(CgNextDirection<T>{v_, std::exchange(lacks_direction_, false)}, stream);
    multiply_(in_, v_.q, v_.scalars.pq, stream);
    in_.run(CgUpdate<T>{v_}, stream);
    sum_one_(v_.scalars.next_squares, stream);
    in_.run_scalars(CgNote{{}, v_.scalars, v_.monitor, kLeastSquare<T>}, stream);
  }
  void find_direction(Stream& stream) {
    find_z(stream);
    sum_residual(stream);
    in_.run(CgFirstDirection<T, kScaling>{v_}, stream);
  }
  void find_z(Stream& stream) {
    if constexpr (kScaling == Scaling::separate) in_.precondition(v_.r, memory_.template vector<T>(2), stream);
  }
  /// z and its sums.
  void precondition(Stream& stream) {
    find_z(stream);
    if (v_.scalars.zq == nullptr) return sum_residual(stream);
    in_.run(CgFlexibleSums<T>{v_}, stream);
    sum_three_(v_.scalars.rz, stream);
  }
  void sum_residual(Stream& stream) {
    in_.run(ResidualSums<T, kScaling>{v_, v_.norm, v_.scalars.rz, v_.scalars.squares}, stream);
    sum_two_(v_.scalars.rz, stream);
  }

  MethodInputs in_;
  MethodMemory memory_;
  ProductWithDot<T> multiply_;
  SumOverRanks sum_one_, sum_two_, sum_three_;
  GridSums grid_sums_;  ///< for passes of an iteration in one launch
  CgVectors<T, kScaling> v_{};
  bool begins_with_z_;            ///< iterations do: the last start() and the last iteration need no M·r
  bool lacks_direction_ = false;  ///< the next iteration is the first one since start(), and begins with M·r
};

}  // namespace

std::unique_ptr<Method> make_cg(const MethodInputs& inputs) {
  if (inputs.options.variant == CgVariant::single_reduction) return make_single_reduction_cg(inputs);
  if (inputs.options.variant == CgVariant::flexible)  // z is a vector of its own, whatever M is
    return dispatch(inputs.type(), [&]<class Tag>(Tag) -> std::unique_ptr<Method> {
      return std::make_unique<Cg<typename Tag::type, Scaling::separate>>(inputs);
    });
  return make_preconditioned<Cg>(inputs);
}

std::vector<SolverSetting> cg_settings() {
  return settings::of_solvers(
      {"cg", "auto"},
      {settings::word(
          "variant",
          "classic: two sums over the ranks an iteration, or three with preconditioners other than none and jacobi; "
          "single_reduction: one, for the price of a further vector to read and write; flexible: as classic, for a "
          "preconditioner that is a little unsymmetric or changes; auto takes flexible with a preconditioner of the program "
          "and with the cycle K, classic with multigrid, else it measures which of the two is faster (if results must be "
          "reproducible, the size of the vectors decides)",
          {"auto", "classic", "single_reduction", "flexible"},
          [](const SolverOptions& o) { return std::string(name(o.variant)); },
          [](SolverOptions& o, const std::string& text) { o.variant = parse_cg_variant(text); })});
}

}  // namespace shardmat
