#include "runtime/solvers/eigen/lobpcg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/solvers/direct/factors.h"
#include "runtime/solvers/eigen/block_basis.h"
#include "runtime/solvers/eigen/shifted.h"
#include "runtime/solvers/loop/null_vectors.h"
#include "runtime/solvers/loop/stop_vote.h"
#include "runtime/solvers/multigrid/hierarchy.h"

namespace shardmat::modes {
namespace {

constexpr double kRoundoff = 2.2e-16;

/// Sums over the rows of all ranks for each column of a block.
struct ColumnSizes {
  std::vector<double> r, mx, rounding, energy;  ///< ‖Kx − λMx‖, ‖Mx‖, ‖D·x‖ and xᵀ·D·x with D the diagonal of K
};

/// `r`, if given, becomes K·x − λ·M·x.
ColumnSizes sizes_of(Pencil& pencil, Block& x, Block& kx, Block& mx, const std::vector<double>& values) {
  const auto columns = std::ssize(values);
  const HostVector<double>& diagonal = pencil.k_diagonal();
  const std::int64_t rows = pencil.local_rows(), panels = (columns + kPanel - 1) / kPanel;
  constexpr std::int64_t kRows = 4096;
  const std::int64_t tasks = (rows + kRows - 1) / kRows;
  const std::size_t each = at(4 * panels * kPanel);
  std::vector<double> parts(at(tasks) * each);
  parallel_tasks(tasks, [&](std::int64_t t) {
    for (std::int64_t p = 0; p < panels; ++p) {
      double* const into = parts.data() + at(t) * each + at(4 * p * kPanel);
      std::array<double, kPanel> value{};
      for (std::int64_t j = 0; j < kPanel && p * kPanel + j < columns; ++j) value[at(j)] = values[at(p * kPanel + j)];
      const double *of_x = x.panel(p), *of_k = kx.panel(p), *of_m = mx.panel(p);
      for (std::int64_t i = t * kRows; i < std::min(rows, (t + 1) * kRows); ++i)
        for (std::int64_t j = 0; j < kPanel; ++j) {
          const std::int64_t e = i * kPanel + j;
          const double residual = of_k[e] - value[at(j)] * of_m[e], scaled = diagonal[at(i)] * of_x[e];
          into[j] += residual * residual, into[kPanel + j] += of_m[e] * of_m[e];
          into[2 * kPanel + j] += scaled * scaled, into[3 * kPanel + j] += std::abs(scaled * of_x[e]);
        }
    }
  });
  std::vector<double> sums(each);
  for (std::int64_t t = 0; t < tasks; ++t)
    for (std::size_t i = 0; i < each; ++i) sums[i] += parts[at(t) * each + i];
  pencil.k().context().communicator().all_reduce(std::span<double>(sums), Reduction::sum);
  ColumnSizes sizes;
  for (std::int64_t j = 0; j < columns; ++j) {
    const double* const of = sums.data() + 4 * (j / kPanel) * kPanel + j % kPanel;
    sizes.r.push_back(std::sqrt(of[0])), sizes.mx.push_back(std::sqrt(of[kPanel]));
    sizes.rounding.push_back(std::sqrt(of[2 * kPanel])), sizes.energy.push_back(of[3 * kPanel]);
  }
  return sizes;
}

/// λ is 0 up to rounding errors of xᵀ·K·x.
bool is_zero(double value, double energy) { return std::abs(value) <= 1e3 * kRoundoff * energy; }

/// Of zero modes less is asked for: that xᵀ·K·x is 0 says more than ‖K·x‖, which rough parts of x dominate.
double allowed(double value, double tolerance, const ColumnSizes& sizes, std::size_t j) {
  constexpr double kOfZero = 1e-3;
  const double of_zero = is_zero(value, sizes.energy[j]) ? kOfZero * tolerance * sizes.rounding[j] : 0;
  return std::max({tolerance * std::abs(value) * sizes.mx[j], 8 * kRoundoff * sizes.rounding[j], of_zero});
}

class LobpcgRun {
 public:
  LobpcgRun(Pencil& pencil, const MakeInverse& make_inverse, const PairOptions& options, const EigenMonitor& monitor,
            const std::function<bool()>& stop, PairResult& result)
      : p_(pencil),
        make_inverse_(make_inverse),
        o_(options),
        monitor_(monitor),
        ranks_(pencil.k().context().communicator()),
        vote_(ranks_, stop),
        result_(result),
        rows_(pencil.local_rows()),
        guard_(options.guard > 0 ? options.guard : options.count / 3 + 2),
        panels_((options.count + guard_ + kPanel - 1) / kPanel),
        x_(rows_, panels_),
        kx_(rows_, panels_),
        mx_(rows_, panels_),
        d_(rows_, panels_),
        kd_(rows_, panels_),
        md_(rows_, panels_),
        w_(rows_, panels_),
        kw_(rows_, panels_),
        mw_(rows_, panels_) {}

  void operator()(const DistributedVector* x0) {
    make_inverse(nullptr, false);
    begin(x0);
    for (result_.iterations = 0;; ++result_.iterations) {
      find_active();
      if (monitor_) monitor_(result_.iterations, pairs());
      if (learn_zero_modes()) renew(), find_active();
      if (converged()) {
        if (fresh_ || ++renewed_ > kMostRenewals) break;
        renew();  // what converged must do so anew
        continue;
      }
      if (result_.iterations >= o_.max_iterations) break;
      if (vote_()) {
        result_.interrupted = true;
        break;
      }
      step();
    }
    result_.block = found_;
    result_.inverse = inverse_->describe();
  }

  Block& x() { return x_; }
  /// An estimate of the eigenvalue that follows the wanted ones; nothing: there is none.
  std::optional<double> next() const { return found_ > o_.count ? std::optional(values_[at(o_.count)]) : std::nullopt; }

 private:
  Panels panels(Block& block, std::int64_t columns) const {
    return panels_of(block, std::min(block.panels(), (columns + kPanel - 1) / kPanel));
  }

  void make_inverse(std::shared_ptr<const NearNullVectors> known, bool exact) {
    const Timer timer;
    inverse_.reset();
    inverse_ = make_inverse_(std::move(known), exact);
    result_.setup_seconds += timer.seconds();
  }

  /// The first pairs with λ = 0 and K·x within `share` of ‖diag(K)·x‖.
  std::int64_t zero_modes(double share) const {
    std::int64_t zeros = 0;
    while (zeros < found_ && is_zero(values_[at(zeros)], sizes_.energy[at(zeros)])) {
      if (sizes_.r[at(zeros)] > share * sizes_.rounding[at(zeros)]) return 0;
      ++zeros;
    }
    return zeros;
  }

  /// Makes the preconditioner anew if there are zero modes that it does not know. Returns true if it did.
  bool learn_zero_modes() {
    const multigrid::Hierarchy* const hierarchy = inverse_->hierarchy();
    if (hierarchy == nullptr || made_anew_ == kMostAnew) return false;
    const std::int64_t known = hierarchy->null_vectors().count;
    if (!exact_ && zero_modes(kMaybe) > known) {
      exact_ = true;
      make_inverse(nullptr, true);
      return true;
    }
    const std::int64_t zeros = zero_modes(kSurely);
    if (zeros <= known || zeros > NearNullVectors::kMost) return false;
    if (++seen_ < kLateModes) return false;  // further ones may come
    ++made_anew_, seen_ = 0;
    auto made = std::make_shared<NearNullVectors>();
    made->count = static_cast<int>(zeros);
    made->of_own.resize(at(rows_ * zeros));
    const HostVector<std::int64_t> places = p_.k().y_rows()->places_of_rows();
    for (std::int64_t i = 0; i < rows_; ++i)
      for (std::int64_t j = 0; j < zeros; ++j) made->of_own[at(places[at(i)] * zeros + j)] = x_.entry(i, j);
    make_inverse(std::move(made), false);
    return true;
  }

  /// Null vectors of K that multigrid found, vectors of the caller, and random ones.
  void begin(const DistributedVector* x0) {
    const std::int64_t most = std::min(x_.columns(), p_.free_rows());
    // A cycle makes random vectors smooth. Of a body that nothing holds it may leave motions alone, if their number is not
    // known: then they stay rough.
    for (const bool smoothed : {true, false}) {
      fill(x0, smoothed);
      found_ = orthonormalise(p_, panels_of(x_, panels_), panels_of(mx_, panels_), x_.columns(), {});
      if (found_ == most) break;
    }
    ranks_.run_agreed([&] {
      if (found_ < o_.count)
        throw Error(
            ErrorKind::usage,
            fmt::format("there are {} eigenvalues at most (rows that are not held), and {} are wanted", found_, o_.count),
            "count");
    });
    p_.multiply_k(panels(x_, found_), panels(kx_, found_));
    rotate();
  }

  void fill(const DistributedVector* x0, bool smoothed) {
    p_.fill_random(panels_of(x_, panels_), x_.columns(), o_.seed);
    if (smoothed) smooth(x_, x_.columns());
    std::int64_t given = 0;
    if (const multigrid::Hierarchy* const hierarchy = inverse_->hierarchy()) {
      const NullVectors& null = hierarchy->null_vectors();
      const HostVector<std::int64_t> places = p_.k().y_rows()->places_of_rows();
      for (; given < std::min<std::int64_t>(null.count, x_.columns()); ++given)
        for (std::int64_t i = 0; i < rows_; ++i) x_.entry(i, given) = null.of_own[at(places[at(i)] * null.count + given)];
    }
    if (x0 != nullptr) {
      const auto* const from = static_cast<const double*>(x0->view().data);
      for (std::int64_t j = 0; j < x0->columns() && given < x_.columns(); ++j, ++given)
        for (std::int64_t i = 0; i < rows_; ++i) x_.entry(i, given) = from[i * x0->columns() + j];
    }
    for (std::int64_t q = 0; q < panels_; ++q) p_.clear_held(x_.panel(q));
  }

  /// Rayleigh-Ritz in X alone, which is M-orthonormal.
  void rotate() {
    const Panels all = panels(x_, found_), k_all = panels(kx_, found_), m_all = panels(mx_, found_);
    const Small h = gram_of_ranks(all, k_all, rows_, ranks_);
    const SymmetricEigen ritz = eigen_of_ranks(h, found_, ranks_);
    const std::int64_t places = std::ssize(all) * kPanel;
    const Small c = first_vectors(ritz, found_, places, places);
    combine(all, c, all, rows_), combine(k_all, c, k_all, rows_), combine(m_all, c, m_all, rows_);
    values_.assign(ritz.values.begin(), ritz.values.end());
    directions_ = 0;
    fresh_ = true;
  }

  /// Everything of X anew.
  void renew() {
    found_ = orthonormalise(p_, panels(x_, found_), panels(mx_, found_), found_, {});
    p_.multiply_k(panels(x_, found_), panels(kx_, found_));
    rotate();
  }

  void find_active() {
    sizes_ = sizes_of(p_, x_, kx_, mx_, values_);
    require_positive(values_.front(), sizes_.energy.front());
    active_.clear();
    done_ = 0;
    bool all = true;
    for (std::int64_t j = 0; j < found_; ++j) {
      const bool ends = sizes_.r[at(j)] <= allowed(values_[at(j)], o_.tolerance * (fresh_ ? 1 : 0.5), sizes_, at(j));
      if (!ends) active_.push_back(j);
      all = all && ends;
      if (all) done_ = j + 1;
    }
  }
  bool converged() const { return done_ >= o_.count; }

  void require_positive(double value, double energy) const {
    ranks_.run_agreed([&] {
      if (value < 0 && !is_zero(value, energy))
        throw Error(ErrorKind::input,
                    fmt::format("K is not positive semidefinite: xᵀKx = {:.6g} for an x with xᵀMx = 1; take the method "
                                "shift_invert with a shift, which needs no positive K",
                                value),
                    "method");
    });
  }

  std::vector<Eigenpair> pairs() const {
    std::vector<Eigenpair> found;
    for (std::int64_t j = 0; j < o_.count; ++j)
      found.push_back(
          {values_[at(j)], sizes_.r[at(j)], sizes_.r[at(j)] <= allowed(values_[at(j)], o_.tolerance, sizes_, at(j))});
    return found;
  }

  /// Panels of a block become those of the preconditioner applied to them, in place.
  void smooth(Block& block, std::int64_t columns) {
    const Timer timer;
    Stream& stream = p_.k().context().stream();
    for (double* const panel : panels(block, columns)) {
      inverse_->apply(p_.view(panel), p_.view(mw_.panel(0)), stream);
      p_.k_product().wait(stream);
      std::copy_n(mw_.panel(0), rows_ * kPanel, panel);
    }
    result_.inverse_seconds += timer.seconds();
  }

  /// W = T·(residuals of length 1).
  void find_corrections() {
    const std::int64_t columns = std::ssize(active_), needed = (columns + kPanel - 1) / kPanel;
    parallel_ranges(rows_, grain_of(rows_, rows_ * columns), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t q = 0; q < needed; ++q) {
        double* const to = w_.panel(q);
        for (std::int64_t j = 0; j < kPanel; ++j) {
          const std::int64_t a = q * kPanel + j;
          if (a >= columns) {
            for (std::int64_t i = begin; i < end; ++i) to[i * kPanel + j] = 0;
            continue;
          }
          const std::int64_t column = active_[at(a)], lane = column % kPanel;
          const double *of_k = kx_.panel(column / kPanel) + lane, *of_m = mx_.panel(column / kPanel) + lane;
          const double value = values_[at(column)], factor = 1 / sizes_.r[at(column)];
          for (std::int64_t i = begin; i < end; ++i)
            to[i * kPanel + j] = factor * (of_k[i * kPanel] - value * of_m[i * kPanel]);
        }
      }
    });
    smooth(w_, columns);
  }

  void step() {
    find_corrections();
    const Panels x = panels(x_, found_), d = panels(d_, directions_), w = panels(w_, std::ssize(active_));
    const Panels old = joined({x, d});
    const std::int64_t of_old = std::ssize(old) * kPanel, of_x = std::ssize(x) * kPanel;
    const std::int64_t fresh = orthonormalise(p_, w, panels(mw_, std::ssize(active_)), std::ssize(active_), old);
    p_.multiply_k(panels(w_, fresh), panels(kw_, fresh));
    const Panels some_w = panels(w_, fresh), basis = joined({old, some_w});
    const std::int64_t places = std::ssize(basis) * kPanel;
    // The Gram matrix of K: that of X and P is known from the last one.
    Small h(places, places);
    const Small with_w = gram_of_ranks(basis, panels(kw_, fresh), rows_, ranks_);
    for (std::int64_t i = 0; i < found_; ++i) h(i, i) = values_[at(i)];
    for (std::int64_t i = 0; i < directions_; ++i) {
      for (std::int64_t j = 0; j < found_; ++j) h(of_x + i, j) = h(j, of_x + i) = known_(j, found_ + i);
      for (std::int64_t j = 0; j < directions_; ++j) h(of_x + i, of_x + j) = known_(found_ + i, found_ + j);
    }
    for (std::int64_t j = 0; j < fresh; ++j)
      for (std::int64_t i = 0; i < places; ++i) h(i, of_old + j) = h(of_old + j, i) = with_w(i, j);
    solve_small(h, fresh, of_x, of_old);
    const Panels k_basis = joined({panels(kx_, found_), panels(kd_, directions_), panels(kw_, fresh)}),
                 m_basis = joined({panels(mx_, found_), panels(md_, directions_), panels(mw_, fresh)});
    const Panels to = joined({x, panels(d_, next_directions_)}),
                 k_to = joined({panels(kx_, found_), panels(kd_, next_directions_)}),
                 m_to = joined({panels(mx_, found_), panels(md_, next_directions_)});
    combine(basis, c_, to, rows_), combine(k_basis, c_, k_to, rows_), combine(m_basis, c_, m_to, rows_);
    directions_ = next_directions_;
    fresh_ = false;
  }

  /// c_: from the basis to the next X and P; known_: the next Gram matrix of K of X and P, without gaps.
  void solve_small(const Small& h, std::int64_t fresh, std::int64_t of_x, std::int64_t of_old) {
    std::vector<std::int64_t> used;  // places with a vector
    for (std::int64_t i = 0; i < found_; ++i) used.push_back(i);
    for (std::int64_t i = 0; i < directions_; ++i) used.push_back(of_x + i);
    for (std::int64_t i = 0; i < fresh; ++i) used.push_back(of_old + i);
    const auto n = std::ssize(used);
    Small g(n, n);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) g(i, j) = h(used[at(i)], used[at(j)]);
    const SymmetricEigen ritz = eigen_of_ranks(g, n, ranks_);
    const Small c = first_vectors(ritz, found_, n, found_);
    // P: what the active ones have of P and W, orthogonal to the next X.
    Small d(n, std::ssize(active_));
    for (std::int64_t a = 0; a < std::ssize(active_); ++a)
      for (std::int64_t i = found_; i < n; ++i) d(i, a) = c(i, active_[at(a)]);
    for (int pass = 0; pass < 2 && d.columns > 0; ++pass) {
      const Small of = product(c, transposed_product(c, d));
      for (std::size_t i = 0; i < d.values.size(); ++i) d.values[i] -= of.values[i];
      const Orthonormal made = orthonormal(transposed_product(d, d), d.columns, pass == 0 ? 1e-12 : 1e-8, ranks_);
      d = product(d, made.c);
    }
    next_directions_ = d.columns;
    Small both(n, found_ + d.columns);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < found_; ++j) both(i, j) = c(i, j);
      for (std::int64_t j = 0; j < d.columns; ++j) both(i, found_ + j) = d(i, j);
    }
    known_ = transposed_product(both, product(g, both));
    values_.assign(ritz.values.begin(), ritz.values.begin() + found_);
    const std::int64_t d_places = (d.columns + kPanel - 1) / kPanel * kPanel;
    c_ = Small(h.rows, of_x + d_places);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < found_; ++j) c_(used[at(i)], j) = c(i, j);
      for (std::int64_t j = 0; j < d.columns; ++j) c_(used[at(i)], of_x + j) = d(i, j);
    }
  }

  static constexpr int kMostRenewals = 3, kLateModes = 3, kMostAnew = 3;
  static constexpr double kMaybe = 1e-6, kSurely = 1e-9;  ///< ‖K·x‖ of zero modes, over ‖diag(K)·x‖

  Pencil& p_;
  const MakeInverse& make_inverse_;
  std::unique_ptr<Preconditioner> inverse_;
  const PairOptions& o_;
  const EigenMonitor& monitor_;
  Communicator& ranks_;
  StopVote vote_;
  PairResult& result_;
  std::int64_t rows_, guard_, panels_;
  Block x_, kx_, mx_, d_, kd_, md_, w_, kw_, mw_;  ///< X, P (d_) and W with their products
  std::int64_t found_ = 0, directions_ = 0, next_directions_ = 0, done_ = 0;
  std::vector<double> values_;
  std::vector<std::int64_t> active_;
  ColumnSizes sizes_;
  Small known_, c_;
  bool fresh_ = false;          ///< X and its products were just computed anew
  int renewed_ = 0, seen_ = 0;  ///< seen_: iterations with zero modes that multigrid does not know
  int made_anew_ = 0;           ///< how often the preconditioner was, with zero modes
  bool exact_ = false;          ///< it was made anew in f64
};

/// Of small pairs factors take less time than the iterations.
void check_count(Pencil& pencil, const PairOptions& options, std::optional<double> next, PairResult& result) {
  constexpr std::int64_t kFewRows = 3000;
  if (!result.converged() || !options.confirm) return;
  const bool few = pencil.free_rows() <= kFewRows && direct::can_factorise(pencil.k().context().communicator());
  if (!few && !options.check_count) {
    result.completeness = "not counted: factors of so large a pair take long; guard vectors iterate with the wanted ones";
    return;
  }
  const Timer timer;
  try {
    const std::unique_ptr<ShiftedInverse> factors = make_shifted_factors(pencil, std::nullopt);
    count_pairs(*factors, 0, false, next, result);
  } catch (const AgreedError& error) {
    if (options.check_count || error.kind() != ErrorKind::resources) throw;
    result.completeness = std::string("not counted: ") + error.what();
  }
  result.count_seconds = timer.seconds();
}

}  // namespace

void lobpcg(Pencil& pencil, const MakeInverse& make_inverse, const PairOptions& options, const DistributedVector* x0,
            const EigenMonitor& monitor, const std::function<bool()>& stop, PairVectors& vectors, PairResult& result) {
  LobpcgRun run(pencil, make_inverse, options, monitor, stop, result);
  run(x0);
  measure_pairs(pencil, run.x(), options.count, options.tolerance, result);
  check_count(pencil, options, run.next(), result);
  vectors.count = options.count;
  vectors.x = std::make_unique<Block>(std::move(run.x()));
}

void measure_pairs(Pencil& pencil, Block& x, std::int64_t pairs, double tolerance, PairResult& result) {
  Communicator& ranks = pencil.k().context().communicator();
  const std::int64_t rows = pencil.local_rows(), count = (pairs + kPanel - 1) / kPanel;
  Block kx(rows, count), mx(rows, count);
  const Panels all = panels_of(x, count);
  pencil.multiply_k(all, panels_of(kx, count)), pencil.multiply_m(all, panels_of(mx, count));
  const Small g = gram_of_ranks(all, joined({panels_of(mx, count), panels_of(kx, count)}), rows, ranks);
  std::vector<double> values;
  for (std::int64_t j = 0; j < pairs; ++j) values.push_back(g(j, count * kPanel + j) / g(j, j));
  const ColumnSizes sizes = sizes_of(pencil, x, kx, mx, values);
  result.orthogonality = 0;
  result.pairs.clear(), result.zero_modes = 0;
  for (std::int64_t j = 0; j < pairs; ++j) {
    const double value = values[at(j)], r = sizes.r[at(j)];
    const bool zero = is_zero(value, sizes.energy[at(j)]);
    result.zero_modes += zero ? 1 : 0;
    for (std::int64_t i = 0; i <= j; ++i)
      result.orthogonality = std::max(result.orthogonality, std::abs(g(i, j) - (i == j ? 1 : 0)));
    Eigenpair pair{value, r, r <= allowed(value, tolerance, sizes, at(j))};
    pair.relative = zero ? r / sizes.rounding[at(j)] : r / (std::abs(value) * sizes.mx[at(j)]);
    pair.zero = zero;
    result.pairs.push_back(pair);
    result.norm = std::max(result.norm, std::abs(value));
  }
}

}  // namespace shardmat::modes
