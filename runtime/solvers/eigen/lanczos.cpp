#include "kernels/base/at.h"
#include "runtime/solvers/eigen/eigenpairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "comm/communicator.h"
#include "comm/exchange/exchange.h"
#include "comm/exchange/sum_over_ranks.h"
#include "comm/same_on_all_ranks.h"
#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "kernels/vector.h"
#include "runtime/context/context.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/solvers/eigen/eigen_matrix.h"
#include "runtime/solvers/eigen/eigenpairs.h"
#include "runtime/solvers/loop/basis_passes.h"
#include "runtime/solvers/loop/random_entries.h"
#include "runtime/solvers/loop/square_underflow.h"
#include "runtime/solvers/loop/stop_vote.h"
#include "runtime/solvers/loop/symmetric_eigen.h"
#include "runtime/solvers/loop/symmetry.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMostBasis = 4096;

/// What a run works with; views of Lanczos' members.
struct Parts {
  const DistributedMatrix& matrix;
  const LanczosOptions& options;
  std::int64_t low, high, kept, apart;
  const Product& product;
  const krylov::Passes& passes;
  SumOverRanks& sum;
  void* vectors;
  double* scalars;
};

/// One run; T is f32 or f64. Vectors 0 … size - 1 are the basis V, vector `size` continues it: A·V = V·projected +
/// below·v_size·eᵀ, where e is the last unit vector.
template <class T>
class LanczosRun {
 public:
  LanczosRun(const Parts& parts, const EigenMonitor& monitor, const std::function<bool()>& stop)
      : p_(parts),
        monitor_(monitor),
        vote_(parts.matrix.context().communicator(), stop),
        stream_(parts.matrix.context().stream()),
        ranks_(parts.matrix.context().communicator()),
        passes_(parts.passes, parts.matrix.context().device(), parts.matrix.local_rows(), parts.apart),
        basis_(parts.options.basis),
        projected_(at(basis_ * basis_)),
        random_(parts.matrix, VectorLayout::rows, sum_type(parts.matrix.type())) {}

  EigenResult operator()() {
    continue_randomly();
    while (true) {
      sweep();
      require_measurable();
      decompose();
      if (monitor_) monitor_(result_.iterations, estimates());
      const bool whole = size_ == p_.matrix.rows(), done = all_converged();
      result_.confirmed = whole || (done && nothing_better_is_left());
      if (whole || result_.iterations >= p_.options.max_iterations) break;
      if (done && (result_.confirmed || !p_.options.confirm)) break;
      if (stopped_) {
        result_.interrupted = true;
        break;
      }
      ++result_.restarts;
      if (done && confirms()) restart_randomly();
      else restart();
    }
    take_pairs();
    return std::move(result_);
  }

 private:
  std::int64_t rows() const { return p_.matrix.local_rows(); }
  T* vector(std::int64_t i) const { return static_cast<T*>(p_.vectors) + i * p_.apart; }
  T* scratch(std::int64_t i) const { return vector(basis_ + 1 + i); }
  Dense view(std::int64_t i) const { return p_.product.y_view(vector(i)); }
  double& projected(std::int64_t i, std::int64_t j) { return projected_[at(i * basis_ + j)]; }
  /// Entry `row` of the eigenvector `i` of the projected matrix.
  double entry(std::int64_t i, std::int64_t row) const { return small_.vectors[at(i * size_ + row)]; }
  double estimate(std::int64_t i) const { return below_ * std::abs(entry(i, size_ - 1)); }
  double value(std::int64_t i) const { return small_.values[at(i)]; }

  /// The first `low` and the last `high` of the estimates, ascending.
  std::vector<std::int64_t> ends(std::int64_t low, std::int64_t high) const {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < low; ++i) places.push_back(i);
    for (std::int64_t i = size_ - high; i < size_; ++i) places.push_back(i);
    return places;
  }
  std::vector<std::int64_t> wanted() const { return ends(p_.low, p_.high); }

  /// Sums the first `count` scalars over the ranks and brings them to the host.
  std::vector<double> read(std::int64_t count) {
    p_.sum(p_.scalars, stream_);
    p_.product.wait(stream_);
    std::vector<double> host(at(count));
    copy_to_host(host.data(), p_.scalars, host.size() * sizeof(double), stream_);
    ranks_.run_agreed([&] {
      if (!std::all_of(host.begin(), host.end(), [](double one) { return std::isfinite(one); }))
        throw Error(ErrorKind::input,
                    "products with the matrix are beyond the range of numbers whose squares can be formed, or not finite; "
                    "scale the matrix so that its values are near 1");
    });
    return host;
  }

  /// The products of vectors 0 … count - 1 with vector `w`, then w·w.
  std::vector<double> dots(std::int64_t count, std::int64_t w) {
    passes_.dots(vector(0), count, vector(w), p_.scalars, stream_);
    return read(count + 1);
  }

  /// w += sign · Σ factors[i] · vector i, with factors that lie on the device.
  void add(std::int64_t count, double sign, T* w) { passes_.add(vector(0), count, sign, p_.scalars, nullptr, w, stream_); }

  void scale(std::int64_t i, double factor) {
    combine(sum_type(p_.matrix.type()), rows(), 1, {}, nullptr, {factor}, vector(i), stream_);
  }

  struct Orthogonalised {
    std::vector<double> coefficients;
    double before = 0, after = 0;  ///< lengths
  };

  /// Makes vector `w` orthogonal to the vectors 0 … w - 1.
  Orthogonalised orthogonalise(std::int64_t w) {
    Orthogonalised result;
    result.coefficients.resize(at(w));
    for (int time = 0; time < 2; ++time) {
      const std::vector<double> found = dots(w, w);
      if (time == 0) result.before = std::sqrt(found.back());
      for (std::size_t i = 0; i < result.coefficients.size(); ++i) result.coefficients[i] += found[i];
      add(w, -1, vector(w));
    }
    result.after = std::sqrt(dots(0, w).back());
    return result;
  }

  /// Continues the basis with a random vector orthogonal to it.
  void continue_randomly() {
    constexpr int kAttempts = 8;
    below_ = 0;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      fill_random(random_, p_.options.seed + randoms_++, Entries::fractions, stream_);
      copy_on_device(vector(size_), random_.view().data, at(rows()) * sizeof(T), stream_);
      const Orthogonalised first = orthogonalise(size_);
      constexpr double kLeast = 1e-4;  // of the length; what is left of less is rounding, more or less
      if (!(first.after > kLeast * first.before)) continue;
      scale(size_, 1 / first.after);
      if (size_ > 0) scale(size_, 1 / orthogonalise(size_).after);
      return;
    }
    throw Error(ErrorKind::internal, "no random vector is orthogonal to the basis");
  }

  /// Extends the basis until it is full, the products are used up, or the run was told to end.
  void sweep() {
    const double rounding = 16 * unit_roundoff(sum_type(p_.matrix.type()));
    while (size_ < basis_ && result_.iterations < p_.options.max_iterations) {
      if (stopped_ && size_ >= p_.low + p_.high) break;
      const std::int64_t now = size_;
      p_.product.multiply(1, view(now), 0, view(now + 1), stream_);
      ++result_.iterations;
      const Orthogonalised w = orthogonalise(now + 1);
      for (std::int64_t i = 0; i <= now; ++i) projected(i, now) = projected(now, i) = w.coefficients[at(i)];
      longest_ = std::max(longest_, w.before);
      size_ = now + 1;
      below_ = w.after;
      if (size_ == p_.matrix.rows()) below_ = 0;
      else if (below_ <= rounding * longest_) continue_randomly();  // A maps the basis into itself
      else scale(size_, 1 / below_);
      stopped_ = vote_();
    }
  }

  /// Refuses a matrix whose products are so short that their squares say nothing. A product that is 0 is orthogonal to the
  /// basis; one that is not, but whose square is 0, is not.
  void require_measurable() {
    const bool zero = std::all_of(projected_.begin(), projected_.end(), [](double one) { return one == 0; });
    ranks_.run_agreed([&] {
      if (!zero && longest_ * longest_ < smallest_square(sum_type(p_.matrix.type())))
        throw Error(ErrorKind::input,
                    fmt::format("products with the matrix are too short to form their squares (the longest of a vector of "
                                "length 1: {:g}); scale the matrix so that its values are near 1",
                                longest_));
    });
  }

  /// Rank 0 decomposes: other instruction sets on other hosts could round otherwise.
  void decompose() {
    const std::int64_t n = size_;
    small_.values.assign(at(n), 0);
    small_.vectors.assign(at(n * n), 0);
    ranks_.run_agreed([&] {
      if (ranks_.rank() != 0) return;
      std::vector<double> packed;
      packed.reserve(at(n * n));
      for (std::int64_t i = 0; i < n; ++i)
        packed.insert(packed.end(), projected_.begin() + i * basis_, projected_.begin() + i * basis_ + n);
      small_ = symmetric_eigen(std::move(packed), at(n));
    });
    ranks_.broadcast(std::span<double>(small_.values));
    ranks_.broadcast(std::span<double>(small_.vectors));
    result_.norm = std::max({result_.norm, std::abs(value(0)), std::abs(value(n - 1))});
  }

  double allowed() const { return p_.options.tolerance * result_.norm; }

  std::vector<Eigenpair> estimates() const {
    std::vector<Eigenpair> pairs;
    for (const std::int64_t i : wanted()) pairs.push_back({value(i), estimate(i), estimate(i) <= allowed()});
    return pairs;
  }

  /// Half of the tolerance: the other half is for what a random restart leaves out, and for rounding.
  bool all_converged() const {
    const std::vector<std::int64_t> places = wanted();
    return std::all_of(places.begin(), places.end(), [&](std::int64_t i) { return estimate(i) <= allowed() / 2; });
  }

  /// The last random restart knew the wanted values.
  bool unchanged() const {
    if (known_.empty()) return false;
    const std::vector<std::int64_t> places = wanted();
    for (std::size_t i = 0; i < places.size(); ++i)
      if (std::abs(value(places[i]) - known_[i]) > 2 * allowed()) return false;
    return true;
  }

  /// The estimates next to the wanted ones are so good that they cannot turn into wanted ones. An estimate from a vector
  /// that is spread over many eigenvalues near the end of the spectrum lies a few times its residual away from this end.
  bool neighbours_are_known() const {
    constexpr double kSpread = 10;
    const auto known = [&](std::int64_t i, std::int64_t last_wanted) {
      return estimate(i) <= allowed() / 2 || std::abs(value(i) - value(last_wanted)) > kSpread * estimate(i);
    };
    if (p_.low + p_.high >= size_) return true;
    return (p_.low == 0 || known(p_.low, p_.low - 1)) && (p_.high == 0 || known(size_ - p_.high - 1, size_ - p_.high));
  }

  bool nothing_better_is_left() const { return unchanged() && neighbours_are_known(); }
  /// The wanted pairs of this round are found: a random vector should look for more.
  bool confirms() const { return known_.empty() || (neighbours_are_known() && !unchanged()); }

  /// vector k = Σ_i entry(places[k], i) · vector i, for all places; then the vector that continues the basis.
  void rotate(const std::vector<std::int64_t>& places) {
    const std::size_t bytes = at(rows()) * sizeof(T);
    for (std::size_t k = 0; k < places.size(); ++k) {
      T* const to = scratch(static_cast<std::int64_t>(k));
      copy_to_device(p_.scalars, small_.vectors.data() + places[k] * size_, at(size_) * sizeof(double), stream_);
      fill_bytes(to, 0, bytes, stream_);
      add(size_, 1, to);
    }
    for (std::size_t k = 0; k < places.size(); ++k)
      copy_on_device(vector(static_cast<std::int64_t>(k)), scratch(static_cast<std::int64_t>(k)), bytes, stream_);
  }

  void keep(const std::vector<std::int64_t>& places) {
    rotate(places);
    const auto kept = std::ssize(places);
    copy_on_device(vector(kept), vector(size_), at(rows()) * sizeof(T), stream_);
    std::fill(projected_.begin(), projected_.end(), 0.0);
    for (std::int64_t k = 0; k < kept; ++k) projected(k, k) = value(places[at(k)]);
    size_ = kept;
  }

  void restart() {
    const std::int64_t more = p_.kept - p_.low - p_.high, to_low = p_.high == 0 ? more : p_.low == 0 ? 0 : more / 2;
    keep(ends(p_.low + to_low, p_.high + more - to_low));
  }

  void restart_randomly() {
    known_.clear();
    for (const std::int64_t i : wanted()) known_.push_back(value(i));
    keep(wanted());
    continue_randomly();
  }

  /// The wanted vectors to the front, and their residuals.
  void take_pairs() {
    const std::vector<std::int64_t> places = wanted();
    const auto count = std::ssize(places);
    rotate(places);
    for (std::int64_t k = 0; k < count; ++k) {
      const double of = value(places[at(k)]);
      scale(k, 1 / std::sqrt(self(k)));
      p_.product.multiply(1, view(k), 0, view(count), stream_);
      combine(sum_type(p_.matrix.type()), rows(), 1, {-of}, vector(k), {1}, vector(count), stream_);
      const double residual = std::sqrt(self(count));
      result_.pairs.push_back({of, residual, residual <= allowed()});
    }
  }
  double self(std::int64_t i) { return dots(0, i).back(); }

  Parts p_;
  const EigenMonitor& monitor_;
  StopVote vote_;
  bool stopped_ = false;
  Stream& stream_;
  Communicator& ranks_;
  BasisPasses<T> passes_;
  std::int64_t basis_, size_ = 0;
  std::vector<double> projected_;  ///< basis × basis, row-major
  double below_ = 0, longest_ = 0;
  SymmetricEigen small_;
  std::vector<double> known_;  ///< wanted values when a random vector began to look for others; empty before
  DistributedVector random_;
  std::uint64_t randoms_ = 0;
  EigenResult result_;
};

}  // namespace

std::int64_t Lanczos::apart() const {
  constexpr std::int64_t kMultiple = 64;  // vectors begin at 256 bytes or more from each other
  return (matrix_.local_rows() + kMultiple - 1) / kMultiple * kMultiple;
}

void Lanczos::require_sensible() const {
  const LanczosOptions& o = options_;
  const auto refuse = [](const std::string& text, const char* setting) { throw Error(ErrorKind::usage, text, setting); };
  require_eigen_matrix("lanczos", matrix_);
  if (!(o.tolerance >= 0 && std::isfinite(o.tolerance))) refuse("the tolerance must be 0 or more, and finite", "tolerance");
  if (o.count < 1 || o.count > matrix_.rows())
    refuse(fmt::format("the number of eigenvalues must be 1 … {}, the rows of the matrix, not {}", matrix_.rows(), o.count),
           "count");
  const std::int64_t wanted = o.which == Which::both ? 2 * o.count : o.count;
  if (wanted > kMostBasis - 3)
    refuse(fmt::format("at most {} eigenvalues are computed at a time, not {}", kMostBasis - 3, wanted), "count");
  if (o.max_iterations < std::min(wanted, matrix_.rows()))
    refuse(fmt::format("{} eigenvalues take as many iterations or more, not {}", wanted, o.max_iterations),
           "max_iterations");
  const bool is_whole = o.basis >= matrix_.rows();  // then as many vectors as rows
  if (o.basis != 0 && ((o.basis < wanted + 3 && !is_whole) || std::min(o.basis, matrix_.rows()) > kMostBasis))
    refuse(fmt::format("the basis must have {} … {} vectors for {} eigenvalues, not {}", wanted + 3, kMostBasis, wanted,
                       o.basis),
           "basis");
}

void Lanczos::require_symmetric() const {
  if (options_.assume_symmetric) return;
  for (const RowPlan& plan : product_->row_plans())
    if (plan.storage().format == "symmetric") return;  // only symmetric matrices are stored so
  Context& context = matrix_.context();
  const SymmetryProbe probe = probe_symmetry(*product_, context.stream());
  if (probe.symmetric) return;
  context.communicator().run_agreed([&] {
    throw Error(
        ErrorKind::usage,
        fmt::format("lanczos is for symmetric matrices, and this one is not: xᵀAy and yᵀAx of random vectors differ by "
                    "{:.2g}, where the magnitudes of all entries sum to {:.2g}. Take the power method",
                    probe.difference, probe.scale),
        "method");
  });
}

Lanczos::Lanczos(DistributedMatrix& matrix, const LanczosOptions& options) : matrix_(matrix), options_(options) {
  Context& context = matrix.context();
  const ContextScope scope(context);
  Communicator& ranks = context.communicator();
  ranks.run_agreed([&] { require_sensible(); });
  require_same_on_all_ranks(
      ranks,
      {given_number("count", static_cast<double>(options.count)), given_number("which", static_cast<int>(options.which)),
       given_number("tolerance", options.tolerance),
       given_number("max_iterations", static_cast<double>(options.max_iterations)),
       given_number("basis", static_cast<double>(options.basis)), given_number("seed", static_cast<double>(options.seed)),
       given_number("confirm", options.confirm), given_number("assume_symmetric", options.assume_symmetric)});
  const std::int64_t rows = matrix.rows();
  low_ = options.which == Which::largest ? 0 : options.count;
  high_ = options.which == Which::smallest ? 0 : std::min(options.count, rows - low_);
  constexpr std::int64_t kSpare = 40;
  std::int64_t& basis = options_.basis;
  if (basis == 0) basis = std::min(2 * wanted() + kSpare, kMostBasis);
  basis = std::min(basis, rows);
  // Vectors near the wanted ones speed the next sweep up; a sweep needs room for new ones.
  kept_ = std::min(basis, std::min(wanted() + (basis - wanted()) / 3, std::max(wanted(), basis - 3)));
  options_.product.columns = 1;
  product_ = matrix.product(options_.product);
  require_symmetric();
  const Device device = context.device();
  ranks.run_agreed([&] {
    passes_ = std::make_unique<krylov::Passes>(device, 1);
    const std::int64_t bytes = (basis + 1 + kept_) * apart() * static_cast<std::int64_t>(size_of(sum_type(matrix.type())));
    require_memory(device, bytes, fmt::format("{} vectors of the basis", basis + 1 + kept_));
    vectors_ = Buffer(device, at(bytes));
    fill_bytes(vectors_.data(), 0, vectors_.bytes(), context.stream());
    scalars_ = Buffer(device, at(basis + 2) * sizeof(double));
    fill_bytes(scalars_.data(), 0, scalars_.bytes(), context.stream());
  });
  sum_ = std::make_unique<SumOverRanks>(context.exchange_context(ValueType::f64, 1), static_cast<int>(basis + 2));
}

Lanczos::~Lanczos() = default;

std::string_view Lanczos::summed_by() const { return sum_->name(); }

std::int64_t Lanczos::device_bytes() const {
  return product_->device_bytes() + static_cast<std::int64_t>(vectors_.bytes() + scalars_.bytes());
}

EigenResult Lanczos::run(const EigenMonitor& monitor, const std::function<bool()>& stop) {
  Context& context = matrix_.context();
  const ContextScope scope(context);
  const Timer timer;
  const Parts parts{
      matrix_, options_, low_, high_, kept_, apart(), *product_, *passes_, *sum_, vectors_.data(), scalars_.as<double>()};
  EigenResult result = sum_type(matrix_.type()) == ValueType::f64 ? LanczosRun<double>(parts, monitor, stop)()
                                                                  : LanczosRun<float>(parts, monitor, stop)();
  result.seconds = context.communicator().all_reduce(timer.seconds(), Reduction::max);
  return result;
}

void Lanczos::copy_vectors(DistributedVector& vectors, Stream& stream) const {
  const ContextScope scope(matrix_.context());
  vectors.require_like(*matrix_.y_rows(), wanted(), sum_type(matrix_.type()), "the eigenvectors");
  Dense from = vectors.view();
  from.data = vectors_.data();
  from.order = DenseOrder::column_major;
  from.leading = std::max<std::int64_t>(1, apart());
  copy_matrix(from, vectors.view(), stream);
}

}  // namespace shardmat
