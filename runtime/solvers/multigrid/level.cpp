#include "runtime/solvers/multigrid/level.h"

#include <fmt/format.h>

#include <numeric>
#include <type_traits>
#include <utility>

#include "comm/communicator.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/spectrum.h"

namespace shardmat::multigrid {
namespace {

constexpr int kLanczosSteps = 10;
constexpr double kAbove = 1.05;
/// The smoother works on [lower, 1] of the spectrum: one step, and more.
constexpr double kLowerOfOne = 0.25, kLower = 0.1;
constexpr int kMostUnknowns = 6;

/// Calls f(std::integral_constant<int, size>) for 1 … 6.
template <int kSize = 1, class F>
void with_size(int size, const F& f) {
  if constexpr (kSize < kMostUnknowns)
    if (size != kSize) return with_size<kSize + 1>(size, f);
  f(std::integral_constant<int, kSize>());
}

/// On the host, kernels are taken by rule: looking at the pattern would take longer than it saves. Blocks that divide those
/// of the rows fill without zeros.
MatrixOptions with_kernel(MatrixOptions options, const NodeRows& rows, Backend backend) {
  const int block = std::gcd(rows.row_size, rows.col_size);
  if (backend != Backend::host || options.right_hand_sides > 1 || options.plan.kernel != "auto" || block == 1 ||
      block > kMostUnknowns)
    return options;
  options.plan.kernel = "bcsr_host";
  options.plan.policy = fmt::format("block={}", block);
  return options;
}

}  // namespace

Operator::Operator(const NodeRows& rows, Context& context, MatrixOptions options)
    : matrix(make_matrix(rows, context, with_kernel(std::move(options), rows, context.device().backend))) {
  ProductOptions wanted;
  wanted.columns = matrix->options().right_hand_sides;
  product = matrix->product(wanted);
}

/// M as a preconditioner, for estimates of the spectrum of M·A.
class Level::Scaling final : public Preconditioner {
 public:
  explicit Scaling(const Level& level) : level_(level), scratch_(level.context_.device(), level.a_.product->y_bytes()) {}
  void refresh(Stream&) override {}
  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    level_.step(r, level_.a_.product->y_view(scratch_.data()), z, {1, 0}, krylov::Before::nothing, stream);
  }
  std::int64_t device_bytes() const override { return 0; }

 private:
  const Level& level_;
  Buffer scratch_;
};

Level::Level(const NodeRows& a, const HostVector<double>& inverse, Context& context, MatrixOptions options,
             std::shared_ptr<const RowMap> y_rows, int columns)
    : context_(context), size_(a.row_size), nodes_(a.count()) {
  options.y_rows = std::move(y_rows);
  options.natural_order = true;
  options.right_hand_sides = columns;
  a_ = Operator(a, context, options);
  context.communicator().run_agreed([&] {
    passes_.emplace(context.device(), columns);
    const auto bytes = static_cast<std::int64_t>(inverse.size() * size_of(options.type) + 2 * a_.product->y_bytes());
    require_memory(context.device(), bytes, "a level of multigrid");
    diagonal_ = Buffer(context.device(), inverse.size() * size_of(options.type));
    to_device(diagonal_.data(), inverse, options.type, context.stream());
    r_ = Buffer(context.device(), a_.product->y_bytes());
    x_ = Buffer(context.device(), a_.product->y_bytes());
    if (map()->in_source_order()) return;
    const HostVector<std::int64_t> places = map()->rows_by_place();
    places_ = Buffer(context.device(), places.size() * sizeof(std::int64_t));
    copy_to_device(places_.data(), places.data(), places_.bytes(), context.stream());
    context.stream().synchronize();
  });
}

double Level::find_radius(Stream& stream) {
  const Scaling scaling(*this);
  return kAbove * estimate_spectrum(*a_.product, scaling, kLanczosSteps, "preconditioner", stream).largest;
}

void Level::set_smoother(double radius, int degree) {
  const double lower = degree == 1 ? kLowerOfOne : kLower;
  const double centre = (1 + lower) * radius / 2, half = (1 - lower) * radius / 2, sigma = centre / half;
  steps_.assign(1, {1 / centre, 0});
  for (double ratio = 1 / sigma; std::ssize(steps_) < degree;) {
    const double next = 1 / (2 * sigma - ratio);
    steps_.push_back({2 * next / half, next * ratio});
    ratio = next;
  }
}

void Level::set_transfer(const NodeRows& p, const Level& coarse, Context& context, MatrixOptions options) {
  options.right_hand_sides = passes_->columns();
  options.y_rows = map(), options.x_rows = coarse.map();
  from_coarse_ = Operator(p, context, options);
  options.y_rows = coarse.map(), options.x_rows = map();
  to_coarse_ = Operator(transposed(p), context, options);
}

void Level::set_inverse(const NodeRows& inverse, Context& context, MatrixOptions options) {
  options.right_hand_sides = passes_->columns();
  options.y_rows = map();
  inverse_ = Operator(inverse, context, options);
}

void Level::step(const Dense& r, const Dense& d, const Dense& x, Step factors, krylov::Before before, Stream& stream) const {
  dispatch(r.type, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    with_size(size_, [&]<int kSize>(std::integral_constant<int, kSize>) {
      passes_->run(krylov::SmoothBlocks<T, kSize>{diagonal_.as<T>(), static_cast<const T*>(r.data), static_cast<T*>(d.data),
                                                  static_cast<T*>(x.data), places_.as<std::int64_t>(), passes_->columns(),
                                                  static_cast<T>(factors.a), static_cast<T>(factors.b), before},
                   nodes_, stream);
    });
  });
}

void Level::smooth(krylov::Before before, Stream& stream) const {
  for (const Step& factors : steps_) {
    step(r(), a_.product->x(), x(), factors, before, stream);
    if (&factors != &steps_.back()) a_.product->multiply(-1, 1, r(), stream);
    before = krylov::Before::step;
  }
}

void Level::go_down(const Level& coarse, Stream& stream) const {
  smooth(krylov::Before::nothing, stream);
  a_.product->multiply(-1, 1, r(), stream);
  to_coarse_.product->multiply(1, r(), 0, coarse.r(), stream);
}

void Level::come_up(const Level& coarse, Stream& stream) const {
  from_coarse_.product->multiply(1, coarse.x(), 0, a_.product->x(), stream);
  a_.product->multiply(-1, 1, r(), stream);
  smooth(krylov::Before::correction, stream);
}

void Level::solve(Stream& stream) const {
  if (inverse_.product) return inverse_.product->multiply(1, r(), 0, x(), stream);
  smooth(krylov::Before::nothing, stream);
}

std::int64_t Level::device_bytes() const {
  auto bytes = static_cast<std::int64_t>(diagonal_.bytes() + places_.bytes() + r_.bytes() + x_.bytes());
  for (const Operator* const one : {&a_, &to_coarse_, &from_coarse_, &inverse_})
    if (one->product) bytes += one->matrix->device_bytes() + one->product->device_bytes();
  return bytes;
}

std::int64_t Level::cycle_bytes() const {
  if (inverse_.product) return inverse_.product->compulsory_bytes(0);
  const auto steps = static_cast<std::int64_t>(steps_.size()), vector = static_cast<std::int64_t>(a_.product->y_bytes());
  const std::int64_t pass = 5 * vector + static_cast<std::int64_t>(diagonal_.bytes());
  if (!to_coarse_.product) return steps * pass + (steps - 1) * a_.product->compulsory_bytes(1);
  return 2 * steps * (pass + a_.product->compulsory_bytes(1)) + to_coarse_.product->compulsory_bytes(0) +
         from_coarse_.product->compulsory_bytes(0);
}

}  // namespace shardmat::multigrid
