// Incomplete factors of a rank's rows, without fill and without the couplings with other ranks (incomplete/factors.h): for
// strong convection and for couplings that are much stronger in one direction, where a polynomial of D⁻¹·A is weak.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/base/memory_limits.h"
#include "kernels/triangles/factor_solve.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/incomplete/factors.h"
#include "runtime/solvers/incomplete/pivot.h"
#include "runtime/solvers/multigrid/smoother.h"

namespace shardmat::multigrid {
namespace {

using incomplete::SquareRows;

/// The largest blocks that divide those of a level, and that factors take.
int size_of_factors(int size) {
  int taken = std::min(size, incomplete::kMostUnknowns);
  while (size % taken != 0) --taken;
  return taken;
}

/// The same matrix in smaller blocks.
SquareRows cut_blocks(const SquareRows& a, int size) {
  if (a.size == size) return a;
  const int parts = a.size / size;
  SquareRows cut{size, {0}, {}, {}};
  cut.column.reserve(a.column.size() * at(parts * parts)), cut.value.reserve(a.value.size());
  for (std::int64_t i = 0; i < a.count(); ++i)
    for (int p = 0; p < parts; ++p) {
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
        for (int q = 0; q < parts; ++q) {
          cut.column.push_back(a.column[at(k)] * parts + q);
          for (int r = 0; r < size; ++r)
            for (int c = 0; c < size; ++c) cut.value.push_back(a.block(k)[(p * size + r) * a.size + q * size + c]);
        }
      cut.start.push_back(std::ssize(cut.column));
    }
  return cut;
}

class IncompleteSmoother final : public Smoother {
 public:
  IncompleteSmoother(const SmootherInputs& inputs, bool symmetric) : in_(inputs), symmetric_(symmetric) {}

  void take(const NodeRows& a, const HostVector<double>&, double, Stream& stream) override {
    const int size = size_of_factors(a.row_size);
    const SquareRows own = cut_blocks(incomplete::own_square(a), size);
    if (!factors_) {
      // On a GPU in few steps; in clusters along the strongest couplings, which have to be smoothed.
      incomplete::Order order = on_host() ? incomplete::find_order(own, incomplete::is_scattered(own), thread_count())
                                          : incomplete::order_by_colours(own, 2, 0, false, thread_count());
      incomplete::Pattern pattern = incomplete::find_pattern(own, order, {}, symmetric_);
      factors_ = incomplete::make_factors(std::move(order), std::move(pattern), size, symmetric_, in_.type);
      if (on_host()) {
        require_memory(in_.device, 8 * own.count() * size * in_.passes.columns(), "the smoother of a level of multigrid");
        solved_.resize(at(own.count() * size * in_.passes.columns()));
      }
    }
    factors_->factorise(own);
    bytes_ = factors_->bytes();
    size_ = size;
    if (!on_host()) move_to_gpu(own.count() * size, stream);
  }

  void precondition(Stream& stream) const override {
    if (on_gpu_) return on_gpu_->apply(in_.r, in_.a.x(), in_.type, stream);
    dispatch(in_.type, [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      const T* const r = static_cast<const T*>(in_.r);
      T* const d = static_cast<T*>(in_.a.x());
      solve_each([&](double& solved, std::int64_t from) { solved = static_cast<double>(r[from]); },
                 [&](double solved, std::int64_t to) { d[to] = static_cast<T>(solved); });
    });
  }
  void damp(double factor) override { damping_ = factor; }

  void smooth(krylov::Before before, Stream& stream) const override {
    for (int i = 0; i < in_.degree; ++i) {
      if (before != krylov::Before::nothing) in_.a.multiply(-1, 1, in_.r, stream);
      dispatch(in_.type, [&]<class Tag>(Tag) {
        on_gpu_ ? step_on_gpu<typename Tag::type>(before, stream) : step<typename Tag::type>(before);
      });
      before = krylov::Before::step;
    }
  }

  std::int64_t device_bytes() const override {
    if (!on_gpu_) return bytes_ + 8 * std::ssize(solved_);
    return on_gpu_->bytes() + static_cast<std::int64_t>(z_.bytes() + ones_.bytes());
  }
  std::int64_t smooth_bytes() const override {
    return in_.degree * (bytes_ + 7 * in_.a.x_bytes()) + (in_.degree - 1) * in_.a.compulsory_bytes(1);
  }

 private:
  bool on_host() const { return in_.device.backend == Backend::host; }

  void move_to_gpu(std::int64_t unknowns, Stream& stream) {
    HostVector<std::int32_t> place(at(unknowns));
    for (std::int64_t i = 0; i < unknowns; ++i)
      place[at(i)] = factors_->order().row[at(i / size_)] * size_ + static_cast<std::int32_t>(i % size_);
    on_gpu_.reset();
    on_gpu_.emplace(factors_->arrays(), place, triangles::Ways{}, in_.passes.columns(), stream);
    factors_->discard();
    if (z_.bytes() > 0 || unknowns == 0) return;
    z_ = Buffer(in_.device, at(unknowns * in_.passes.columns()) * size_of(in_.type));
    ones_ = Buffer(in_.device, at(unknowns) * size_of(in_.type));
    to_device(ones_.data(), HostVector<double>(at(unknowns), 1), in_.type, stream);
  }

  template <class T>
  void step_on_gpu(krylov::Before before, Stream& stream) const {
    on_gpu_->apply(in_.r, z_.data(), in_.type, stream);
    in_.passes.run(krylov::SmoothBlocks<T, 1>{ones_.as<T>(), z_.as<T>(), static_cast<T*>(in_.a.x()), static_cast<T*>(in_.x),
                                              in_.passes.columns(), static_cast<T>(damping_), T(0), before},
                   in_.nodes * in_.size, stream);
  }

  /// d = damping·M·r; x gets d, and the d before it if that is a correction.
  template <class T>
  void step(krylov::Before before) const {
    const T* const r = static_cast<const T*>(in_.r);
    T *const d = static_cast<T*>(in_.a.x()), *const x = static_cast<T*>(in_.x);
    solve_each([&](double& solved, std::int64_t from) { solved = damping_ * static_cast<double>(r[from]); },
               [&](double solved, std::int64_t to) {
                 const T change = static_cast<T>(solved);
                 const T from = before == krylov::Before::nothing ? T(0) : x[to];
                 x[to] = (before == krylov::Before::correction ? from + d[to] : from) + change;
                 d[to] = change;
               });
  }

  /// fill(value of a right-hand side, its place) and take(value of the solution, its place) for all unknowns.
  template <class Fill, class Take>
  void solve_each(const Fill& fill, const Take& take) const {
    const std::int64_t width = std::int64_t{size_} * in_.passes.columns();  // values of a block of rows
    const HostVector<std::int32_t>& row = factors_->order().row;
    const auto each = [&](std::int64_t begin, std::int64_t end, const auto& use) {
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t v = 0; v < width; ++v) use(solved_[at(i * width + v)], row[at(i)] * width + v);
    };
    factors_->solve(
        solved_.data(), in_.passes.columns(), [&](std::int64_t begin, std::int64_t end) { each(begin, end, fill); },
        [&](std::int64_t begin, std::int64_t end) { each(begin, end, take); });
  }

  SmootherInputs in_;
  bool symmetric_;
  int size_ = 1;
  double damping_ = 1;
  std::unique_ptr<incomplete::Factors> factors_;
  std::int64_t bytes_ = 0;             ///< of the factors
  mutable HostVector<double> solved_;  ///< in the order of elimination
  std::optional<triangles::FactorSolve> on_gpu_;
  Buffer z_;     ///< M·r
  Buffer ones_;  ///< the diagonal that a step takes its share of z by
};

}  // namespace

std::unique_ptr<Smoother> make_ic_smoother(const SmootherInputs& inputs) {
  return std::make_unique<IncompleteSmoother>(inputs, true);
}
std::unique_ptr<Smoother> make_ilu_smoother(const SmootherInputs& inputs) {
  return std::make_unique<IncompleteSmoother>(inputs, false);
}

}  // namespace shardmat::multigrid
