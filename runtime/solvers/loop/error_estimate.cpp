#include "runtime/solvers/loop/error_estimate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange/sum_over_ranks.h"
#include "kernels/base/error.h"
#include "kernels/krylov/residual.h"
#include "kernels/vector.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/solvers/loop/random_entries.h"
#include "runtime/solvers/loop/residual_norm.h"
#include "runtime/solvers/loop/solve_loop.h"

namespace shardmat {

double least_squares_share(ValueType type) { return type == ValueType::f64 ? 1e-6 : 1e-3; }

double least_squares_tolerance(const SolverOptions& options, ValueType type) {
  const bool has_tolerance = *options.rtol > 0 || options.atol > 0;
  return has_tolerance ? std::max(*options.rtol, least_squares_share(type)) : 0;
}

double MatrixNorm::operator()(Stream& stream) {
  constexpr int kProducts = 2;
  const DistributedMatrix& matrix = product_.matrix();
  if (known_ && version_ == matrix.values_version()) return norm_;
  const ValueType type = sum_type(matrix.type());
  const std::int64_t columns = product_.columns();
  DistributedVector x(matrix, VectorLayout::rows, type, columns), y(matrix, VectorLayout::rows, type, columns);
  Communicator& ranks = matrix.context().communicator();
  std::optional<DotProducts> dots;
  Buffer on_device;
  ranks.run_agreed([&] {
    dots.emplace(matrix.context().device());
    on_device = Buffer(matrix.context().device(), 2 * sizeof(double));
  });
  // All columns are alike, so all entries of a vector have as many times the square of one. A sum over the ranks on the
  // device would take longer to set up than all products here.
  const auto norm_of = [&](const DistributedVector& vector) {
    const std::int64_t entries = vector.local_rows() * columns;
    double square = 0;
    product_.wait(stream);
    if (entries > 0) {
      dots->compute(type, entries, vector.view().data, vector.view().data, on_device.as<double>(), stream);
      copy_to_host(&square, on_device.data(), sizeof square, stream);
    }
    return std::sqrt(ranks.all_reduce(square, Reduction::sum) / static_cast<double>(columns));
  };
  fill_random(x, 3, Entries::signs, stream);
  product_.clear_held(x.view(), stream);
  double before = norm_of(x);
  norm_ = 0;
  for (int i = 0; i < kProducts && before > 0 && std::isfinite(before); ++i) {
    const DistributedVector &from = i % 2 == 0 ? x : y, &to = i % 2 == 0 ? y : x;
    product_.multiply(1 / before, from.view(), 0, to.view(), stream);
    norm_ = std::max(norm_, before = norm_of(to));
  }
  product_.wait(stream);
  known_ = true, version_ = matrix.values_version();
  return norm_;
}

std::vector<SolveLoop::Dots> SolveLoop::dots(const DistributedVector& a, const DistributedVector& b,
                                             ResidualNorm norm) const {
  Context& context = product_.matrix().context();
  Buffer sums;
  context.communicator().run_agreed([&] { sums = Buffer(context.device(), 2 * columns_.size() * sizeof(double)); });
  dispatch(a.type(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    passes_.run(krylov::ResidualSums<T, krylov::Scaling::separate>{{static_cast<T*>(a.view().data),
                                                                    static_cast<const T*>(b.view().data), nullptr},
                                                                   norm_of_passes(norm),
                                                                   sums.as<double>(),
                                                                   sums.as<double>() + columns_.size()},
                a.local_rows(), stream_);
  });
  sum_(sums.as<double>(), stream_);
  product_.wait(stream_);
  std::vector<double> found(2 * columns_.size());
  copy_to_host(found.data(), sums.data(), found.size() * sizeof(double), stream_);
  std::vector<Dots> all;
  for (std::size_t j = 0; j < columns_.size(); ++j) all.push_back({found[j], found[columns_.size() + j]});
  return all;
}

/// Columns that claim to be least squares: how small A·z is of z = M·r, with r computed anew, in the norms in which M is 1.
void SolveLoop::look_at_least_squares() {
  const auto claims = [](const Column& column) { return !column.done && column.claimed == krylov::Reason::least_squares; };
  if (std::none_of(columns_.begin(), columns_.end(), claims)) return;
  DistributedVector r(b_->map(), b_->type(), b_->columns()), z(b_->map(), b_->type(), b_->columns());
  copy_on_device(r.view().data, b_->view().data, product_.y_bytes(), stream_);
  product_.multiply(-1, x_->view(), 1, r.view(), stream_);
  if (projector_ != nullptr) (*projector_)(r.view(), stream_);
  preconditioner_.apply(r.view(), z.view(), stream_);
  const std::vector<Dots> of_z = dots(r, z, ResidualNorm::unpreconditioned);
  product_.multiply(1, z.view(), 0, r.view(), stream_);
  preconditioner_.apply(r.view(), z.view(), stream_);
  const std::vector<Dots> of_az = dots(r, z, ResidualNorm::unpreconditioned);
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    if (!claims(columns_[j])) continue;
    const std::optional<Spectrum> spectrum = columns_[j].ritz.extremes();
    const double norm = spectrum ? spectrum->largest : norm_(stream_);
    result_.columns[j].normal_residual = norm > 0 ? std::sqrt(of_az[j].with / of_z[j].with) / norm : 0;
  }
}

void SolveLoop::note_natural_norms() {
  const double* const squares = method_.natural_squares();
  if (squares == nullptr) return;
  const std::vector<double> now = to_host(squares);
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    Column& column = columns_[j];
    if (first_) {  // of r, which is b unless x began with something
      const double of_r = result_.columns[j].true_residual;
      column.natural_of_b = of_r > 0 ? std::sqrt(now[j]) * (result_.columns[j].norm_of_b / of_r) : 0;
    }
    if (!column.lost) column.natural = std::sqrt(now[j]);
  }
}

void SolveLoop::estimate_errors() {
  const bool in_two_norm = options_.residual_norm == ResidualNorm::unpreconditioned;
  const std::vector<std::optional<Spectrum>> of_method = method_.spectra(stream_);
  const bool conjugate = coefficients_ == Coefficients::of_conjugate_gradients;
  const std::vector<Dots> of_x = dots(*x_, *b_, ResidualNorm::unpreconditioned);
  std::vector<double> residuals, norms_of_b;
  if (!in_two_norm) {
    residuals = norms_of_residual(product_, *b_, *x_, projector_, stream_);
    for (const Dots& of_b : dots(*b_, *b_, ResidualNorm::unpreconditioned)) norms_of_b.push_back(std::sqrt(of_b.square));
  }
  double norm_of_a = 0;  // from below, so that the backward error is one from above
  try {
    norm_of_a = norm_(stream_);
  } catch (const AgreedError& error) {  // x is found: a lack of memory for two vectors spoils no solve
    if (error.kind() != ErrorKind::resources) throw;
  }
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    SolvedColumn& solved = result_.columns[j];
    const Column& column = columns_[j];
    solved.spectrum = of_method.empty() ? column.ritz.extremes() : of_method[j];
    if (solved.spectrum && preconditioner_.identity()) norm_of_a = std::max(norm_of_a, solved.spectrum->largest);
    const double residual = in_two_norm ? solved.true_residual : residuals[j];
    const double norm_of_b = in_two_norm ? solved.norm_of_b : norms_of_b[j];
    const double scale = norm_of_a * std::sqrt(of_x[j].square) + norm_of_b;
    solved.backward_error = scale > 0 ? residual / scale : 0;
    if (!solved.spectrum || solved.reason == SolveReason::least_squares) continue;
    const Spectrum& s = *solved.spectrum;
    // ‖x − A⁻¹b‖_A² = rᵀA⁻¹r ≤ rᵀMr / λ₁(M·A), and ‖x‖_A² is xᵀb up to the residual.
    const double bound = conjugate                 ? column.natural / std::sqrt(s.least * of_x[j].with)
                         : column.natural_of_b > 0 ? s.condition() * (column.natural / column.natural_of_b)
                                                   : s.condition() * (residual / norm_of_b);
    if (std::isfinite(bound)) solved.error_bound = bound;
  }
}

}  // namespace shardmat
