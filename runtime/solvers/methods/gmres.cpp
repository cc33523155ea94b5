// Restarted GMRES and flexible GMRES; the passes are in kernels/krylov/gmres_steps.h.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/gmres_steps.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/basis_passes.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/method_memory.h"
#include "runtime/solvers/loop/setting.h"

namespace shardmat {
namespace {

using namespace krylov;

/// Vectors 0 … restart are the basis; flexible: M·basis follows. The last basis vector serves as scratch between cycles.
template <class T, Scaling kScaling, bool kFlexible>
class Gmres : public Method {
 public:
  explicit Gmres(const MethodInputs& in)
      : in_(in),
        restart_(static_cast<int>(in.options.restart)),
        memory_(in, restart_ + 1 + (kFlexible ? restart_ : 0),
                2 * (restart_ + 2) + 2 * std::int64_t{restart_} * (restart_ + 1) + (restart_ + 1) + 3 * restart_ + 6),
        passes_(in.passes, in.context().device(), in.rows(), memory_.template vector<T>(1) - memory_.template vector<T>(0)),
        sum_one_(in.context().exchange_context(in.type(), 1), in.columns()),
        sum_block_(in.context().exchange_context(in.type(), 1), (restart_ + 2) * in.columns()) {
    std::int64_t next = 0;
    const auto take = [&](std::int64_t scalars) { return memory_.scalar(std::exchange(next, next + scalars)); };
    s_.columns = in.columns();
    s_.restart = restart_;
    s_.h = take(restart_ + 2), s_.again = take(restart_ + 2);
    s_.r = take(std::int64_t{restart_} * (restart_ + 1)), s_.g = take(restart_ + 1);
    s_.cos = take(restart_), s_.sin = take(restart_), s_.y = take(restart_);
    s_.inverse = take(1), s_.steps = take(1), s_.squares = take(1);
    s_.kept_r = take(std::int64_t{restart_} * (restart_ + 1)), s_.kept_steps = take(1);
    s_.loss = take(1), s_.second = take(1);
  }

  void begin() override {
    fill_bytes(s_.kept_steps, 0, static_cast<std::size_t>(s_.columns) * sizeof(double), in_.context().stream());
  }

  void start(const void* b, void* x, Guess guess, Stream& stream) override {
    b_ = b;
    x_ = static_cast<T*>(x);
    in_.residual(b_, x_, guess, basis(0), stream);
    begin_cycle(stream);
  }
  const double* squares() const override { return s_.squares; }
  std::int64_t cycle() const override { return restart_; }

  /// The triangle has the singular values of the Hessenberg matrix.
  std::vector<std::optional<Spectrum>> spectra(Stream& stream) const override {
    const auto columns = static_cast<std::size_t>(s_.columns), apart = static_cast<std::size_t>(restart_ + 1);
    std::vector<double> r(static_cast<std::size_t>(restart_) * apart * columns), steps(columns);
    in_.product.wait(stream);
    copy_to_host(r.data(), s_.kept_r, r.size() * sizeof(double), stream);
    copy_to_host(steps.data(), s_.kept_steps, columns * sizeof(double), stream);
    stream.synchronize();
    std::vector<std::optional<Spectrum>> all(columns);
    for (std::size_t column = 0; column < columns; ++column) {
      const auto size = static_cast<std::size_t>(steps[column]);
      UpperTriangle of{size, size, std::vector<double>(size * size)};
      for (std::size_t j = 0; j < size; ++j)
        for (std::size_t i = 0; i <= j; ++i) of.entries[i * size + j - i] = r[(j * apart + i) * columns + column];
      if (size > 1) all[column] = singular_values(of);
    }
    return all;
  }

  void iterate(std::int64_t step, Stream& stream) override {
    const int j = static_cast<int>(step);
    spread(j, stream);
    if constexpr (kScaling == Scaling::separate) in_.preconditioner.apply(in_.view(basis(j)), in_.product.x(), stream);
    if constexpr (kFlexible) copy_on_device(flexible(j), slot(), in_.vector_bytes(), stream);
    in_.product.multiply(1, 0, in_.view(basis(j + 1)), stream);
    if (classical()) {
      orthogonalise(j + 1, stream);
    } else {
      orthogonalise_one_by_one(j, stream);
    }
    in_.run_scalars(GmresRotate{{}, s_, in_.monitor, j, classical(), unit_roundoff(in_.type())}, stream);
  }

  void finish_cycle(std::int64_t taken, Stream& stream) override {
    add_correction(taken, x_, stream);
    in_.run_scalars(GmresKeep{{}, s_}, stream);
    in_.residual_by_product(b_, x_, basis(0), stream);
    begin_cycle(stream);
  }

  void add_correction(std::int64_t taken, void* to, Stream& stream) override {
    const int steps = static_cast<int>(taken);  // later vectors of the basis were not written
    T* const x = static_cast<T*>(to);
    in_.run_scalars(GmresSolve{{}, s_}, stream);
    if constexpr (kFlexible) {
      passes_.add(flexible(0), steps, 1, s_.y, nullptr, x, stream);
    } else if constexpr (kScaling == Scaling::separate) {
      T* const sum = slot();  // the product needs it no more
      fill_bytes(sum, 0, in_.vector_bytes(), stream);
      passes_.add(basis(0), steps, 1, s_.y, nullptr, sum, stream);
      in_.preconditioner.apply(in_.product.x(), in_.view(basis(restart_)), stream);
      in_.run(GmresAddOne<T>{basis(restart_), x}, stream);
    } else {
      passes_.add(basis(0), steps, 1, s_.y, diagonal(), x, stream);
    }
  }

  /// Of a cycle with as many steps as the first one has, all vectors being made orthogonal once.
  IterationCosts costs(std::int64_t iterations) const override {
    const auto steps = static_cast<int>(std::clamp<std::int64_t>(iterations, 1, restart_));
    constexpr bool kSeparate = kScaling == Scaling::separate;
    const auto passes = [&](int vectors) { return (vectors + passes_.widest() - 1) / passes_.widest(); };
    const auto dots = [&](int count) { return count + passes(count) + (count % passes_.widest() == 0 ? 1 : 0); };
    const auto add = [&](int count) { return count + 2 * passes(count); };
    double vectors = 2 + 1 + add(steps);  // the residual with its norm, and x
    if constexpr (kSeparate && !kFlexible) vectors += 1 + 3;
    double sums = 1;
    for (int j = 0; j < steps; ++j) {
      const int count = j + 1, some = classical() ? std::min(j, passes_.widest()) : 0, before = classical() ? j - some : 0;
      vectors += add(before) + some + (kSeparate ? 2 : 3) + (kFlexible ? 2 : 0);
      if (!classical()) vectors += 5 * count + 1;
      else vectors += dots(count);
      sums += classical() ? 1 : count + 1;
    }
    const double products = steps + 1, preconditionings = kSeparate ? steps + (kFlexible ? 0 : 1) : 0;
    return {products / steps, sums / steps, preconditionings / steps, in_.pass_bytes(vectors / steps)};
  }
  std::int64_t device_bytes() const override { return memory_.bytes(); }

 private:
  T* basis(int i) const { return memory_.template vector<T>(i); }
  T* flexible(int i) const { return memory_.template vector<T>(restart_ + 1 + i); }
  T* slot() const { return static_cast<T*>(in_.product.x().data); }
  const T* diagonal() const { return static_cast<const T*>(in_.preconditioner.diagonal()); }

  /// Basis vector 0 is the residual.
  void begin_cycle(Stream& stream) {
    in_.run(GmresSquare<T>{basis(0), s_.squares}, stream);
    sum_one_(s_.squares, stream);
    in_.run_scalars(GmresBegin{{}, s_}, stream);
  }

  bool classical() const { return in_.options.gram_schmidt == GramSchmidt::classical; }

  /// Basis vector j gets its norm 1, and goes to the product. The orthogonalisation ends in the same pass.
  void spread(int j, Stream& stream) {
    const GmresSpread<T, kScaling> last{basis(j), slot(), diagonal(), s_.inverse};
    if (j == 0 || !classical()) return in_.run(last, stream);
    const int some = std::min(j, passes_.widest()), before = j - some;
    passes_.add(basis(0), before, -1, s_.again, nullptr, basis(j), stream);
    passes_.with_width(some, [&]<int W>(std::integral_constant<int, W>) {
      const auto vectors = passes_.template vectors<W>(basis(before), some, s_.again + before * s_.columns);
      in_.run(GmresAddSpread<T, W, kScaling>{vectors, last}, stream);
    });
  }

  /// again = Vᵀw for `count` vectors and w = basis(count): spread() subtracts what it says. Where that may not do, w −=
  /// V·again comes before, and again = Vᵀw anew. The host looks at what GmresDecide found; on a GPU passes find out that
  /// they are not wanted, or change nothing.
  void orthogonalise(int count, Stream& stream) {
    T* const w = basis(count);
    passes_.dots(basis(0), count, w, s_.again, stream);
    sum_block_(s_.again, stream);
    in_.run_scalars(GmresDecide{{}, s_, count - 1, unit_roundoff(in_.type())}, stream);
    const bool on_host = in_.context().device().backend == Backend::host;
    if (on_host && std::all_of(s_.second, s_.second + s_.columns, [](double second) { return second == 0; })) return;
    if (in_.context().communicator().rank() > 0) in_.run_scalars(GmresLeaveSums{{}, s_, count - 1}, stream);
    if (count < passes_.widest()) {
      passes_.with_width(count + 1, [&]<int W>(std::integral_constant<int, W>) {
        in_.run(GmresAddDots<T, W>{passes_.template vectors<W>(basis(0), count, s_.h), w, s_.again, s_.second}, stream);
      });
    } else {
      passes_.add(basis(0), count, -1, s_.h, nullptr, w, stream);
      passes_.dots(basis(0), count, w, s_.again, stream);
    }
    sum_block_(s_.again, stream);
  }

  /// As in Saad's Alg. 6.9 and 9.5.
  void orthogonalise_one_by_one(int j, Stream& stream) {
    T* const w = basis(j + 1);
    for (int i = 0; i <= j + 1; ++i) {
      double* const h = s_.h + i * s_.columns;
      const bool norm = i == j + 1;
      if (norm) in_.run(GmresSquare<T>{w, h}, stream);
      else in_.run(GmresDots<T, 8>{passes_.template vectors<8>(basis(i), 1, nullptr), w, false, h}, stream);
      sum_one_(h, stream);
      if (!norm) passes_.add(basis(i), 1, -1, h, nullptr, w, stream);
    }
  }

  MethodInputs in_;
  int restart_;
  MethodMemory memory_;
  BasisPasses<T> passes_;
  SumOverRanks sum_one_, sum_block_;
  GmresScalars s_{};
  const void* b_ = nullptr;
  T* x_ = nullptr;
};

template <class T, Scaling kScaling>
using Fixed = Gmres<T, kScaling, false>;
template <class T, Scaling kScaling>
using Flexible = Gmres<T, kScaling, true>;

}  // namespace

std::unique_ptr<Method> make_gmres(const MethodInputs& inputs) { return make_preconditioned<Fixed>(inputs); }
std::unique_ptr<Method> make_fgmres(const MethodInputs& inputs) { return make_preconditioned<Flexible>(inputs); }

std::vector<SolverSetting> gmres_settings() {
  using namespace settings;
  using O = SolverOptions;
  return of_solvers(
      {"gmres", "fgmres", "auto"},
      {count("restart", "steps until the method begins anew; N vectors are kept", 1, 100'000,
             [](O& o) -> std::int64_t& { return o.restart; }),
       word(
           "gram_schmidt",
           "classical: with one sum over the ranks a step, or two where the first is not enough; modified: with a sum for "
           "each vector kept",
           {"classical", "modified"}, [](const O& o) { return std::string(name(o.gram_schmidt)); },
           [](O& o, const std::string& text) { o.gram_schmidt = parse_gram_schmidt(text); })});
}

}  // namespace shardmat
