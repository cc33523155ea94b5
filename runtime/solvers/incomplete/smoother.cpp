// Incomplete factors of a rank's rows, without fill and without the couplings with other ranks (incomplete/factors.h): for
// strong convection and for couplings that are much stronger in one direction, where a polynomial of D⁻¹·A is weak.
#include <algorithm>
#include <utility>

#include "kernels/base/memory_limits.h"
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

  void take(const NodeRows& a, const HostVector<double>&, double, Stream&) override {
    const int size = size_of_factors(a.row_size);
    const SquareRows own = cut_blocks(incomplete::own_square(a), size);
    if (!factors_) {
      incomplete::Order order = incomplete::find_order(own, incomplete::is_scattered(own), thread_count());
      incomplete::Pattern pattern = incomplete::find_pattern(own, order, {}, symmetric_);
      factors_ = incomplete::make_factors(std::move(order), std::move(pattern), size, symmetric_, in_.type);
      require_memory(in_.device, 8 * own.count() * size * in_.passes.columns(), "the smoother of a level of multigrid");
      solved_.resize(at(own.count() * size * in_.passes.columns()));
    }
    factors_->factorise(own);
    size_ = size;
  }

  void precondition() const override {
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
      dispatch(in_.type, [&]<class Tag>(Tag) { step<typename Tag::type>(before); });
      before = krylov::Before::step;
    }
  }

  std::int64_t device_bytes() const override { return factors_->bytes() + 8 * std::ssize(solved_); }
  std::int64_t smooth_bytes() const override {
    return in_.degree * (factors_->bytes() + 7 * in_.a.x_bytes()) + (in_.degree - 1) * in_.a.compulsory_bytes(1);
  }

 private:
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
  mutable HostVector<double> solved_;  ///< in the order of elimination
};

}  // namespace

std::unique_ptr<Smoother> make_ic_smoother(const SmootherInputs& inputs) {
  return std::make_unique<IncompleteSmoother>(inputs, true);
}
std::unique_ptr<Smoother> make_ilu_smoother(const SmootherInputs& inputs) {
  return std::make_unique<IncompleteSmoother>(inputs, false);
}

}  // namespace shardmat::multigrid
