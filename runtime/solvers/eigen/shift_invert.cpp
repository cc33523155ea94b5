#include "runtime/solvers/eigen/shift_invert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/solvers/eigen/block_basis.h"
#include "runtime/solvers/eigen/lobpcg.h"
#include "runtime/solvers/eigen/shifted.h"
#include "runtime/solvers/loop/stop_vote.h"

namespace shardmat::modes {
namespace {

/// Of the mean of all eigenvalues. Smallest ones are looked for from a shift so much below 0, so that bodies that nothing
/// holds have factors, too.
constexpr double kBelowZero = 1e-9;

class ShiftInvertRun {
 public:
  ShiftInvertRun(Pencil& pencil, const PairOptions& options, const EigenMonitor& monitor, const std::function<bool()>& stop,
                 PairResult& result)
      : p_(pencil),
        o_(options),
        monitor_(monitor),
        ranks_(pencil.k().context().communicator()),
        vote_(ranks_, stop),
        result_(result),
        rows_(pencil.local_rows()),
        count_(options.count),
        sigma_(options.shift ? *options.shift : -kBelowZero * pencil.mean_value()),
        inverse_(make_shifted(pencil, sigma_, options, why_)),
        most_(std::max<std::int64_t>(8, (5 * count_ / 2 + kPanel - 1) / kPanel + 2)),
        kept_((count_ + kPanel / 2 + kPanel - 1) / kPanel),
        v_(pencil.local_rows(), most_ + 1),
        mv_(pencil.local_rows(), 1),
        h_((most_ + 1) * kPanel, (most_ + 1) * kPanel) {}

  void operator()(const DistributedVector* x0) {
    require_smallest();
    begin(x0);
    leave_zero_modes(x0);
    while (size_ < most_ + 1) {
      extend();
      decompose();
      if (monitor_) monitor_(result_.iterations, pairs());
      if (done() || whole_ || result_.iterations >= o_.max_iterations) break;
      if (vote_()) {
        result_.interrupted = true;
        break;
      }
      if (size_ == most_) restart();
    }
    take_vectors();
    if (o_.confirm) confirm();
    describe();
  }

  Block& x() { return *x_; }

 private:
  void require_smallest() {
    const std::optional<std::int64_t> below = std::as_const(*inverse_).below();
    ranks_.run_agreed([&] {
      if (!o_.shift && below && *below > 0)
        throw Error(ErrorKind::input,
                    fmt::format("K is not positive semidefinite: {} of its eigenvalues are below 0; give a shift, and those "
                                "nearest to it are computed",
                                *below),
                    "shift");
    });
    below_ = below;
  }

  void begin(const DistributedVector* x0) {
    double* const w = v_.panel(0);
    p_.fill_random({w}, kPanel, o_.seed);
    if (x0 != nullptr) {
      const auto* const from = static_cast<const double*>(x0->view().data);
      for (std::int64_t j = 0; j < std::min(kPanel, x0->columns()); ++j)
        for (std::int64_t i = 0; i < rows_; ++i) w[i * kPanel + j] = from[i * x0->columns() + j];
      p_.clear_held(w);
    }
    apply(w);  // leaves what M maps to 0
    in_panel_ = {orthonormalise(p_, {w}, {mv_.panel(0)}, kPanel, {})};
    size_ = 0;
  }

  /// So near to zero modes these are all that is left of random vectors, and the others drown in rounding errors.
  void leave_zero_modes(const DistributedVector* x0) {
    constexpr int kMostMoves = 2;
    for (int moves = 0; moves < kMostMoves && !o_.shift; ++moves) {
      PairResult probe;
      measure_pairs(p_, v_, in_panel_.front(), o_.tolerance, probe);
      if (probe.zero_modes == 0 || !inverse_->move(100 * sigma_)) return;
      sigma_ *= 100;
      begin(x0);
    }
  }

  /// A panel becomes (K − σ·M)⁻¹·M times itself.
  void apply(double* panel) {
    p_.multiply_m(panel, mv_.panel(0));
    std::copy_n(mv_.panel(0), rows_ * kPanel, panel);
    solve(panel);
  }
  void solve(double* panel) {
    const Timer timer;
    inverse_->solve(panel);
    result_.inverse_seconds += timer.seconds();
  }

  /// Panel `size_` joins the basis, and its image continues it.
  void extend() {
    const std::int64_t now = size_++;
    double* const w = v_.panel(size_);
    std::copy_n(mv_.panel(0), rows_ * kPanel, w);  // M times the last panel
    solve(w);
    ++result_.iterations;
    Small factors;
    const std::int64_t left = orthonormalise(p_, {w}, {mv_.panel(0)}, kPanel, panels_of(v_, size_), &factors);
    for (std::int64_t j = 0; j < kPanel; ++j)
      for (std::int64_t i = 0; i < size_ * kPanel; ++i) {
        const double value = factors(i, j);
        if (i < now * kPanel) h_(i, now * kPanel + j) = h_(now * kPanel + j, i) = value;
        else h_(i, now * kPanel + j) = value;
      }
    below_h_ = Small(kPanel, kPanel);
    for (std::int64_t i = 0; i < kPanel; ++i)
      for (std::int64_t j = 0; j < kPanel; ++j) below_h_(i, j) = factors(size_ * kPanel + i, j);
    std::int64_t next = left;
    if (left == 0 && std::ssize(used()) < p_.free_rows()) {  // the basis is invariant: it goes on at random
      below_h_ = Small(kPanel, kPanel);
      p_.fill_random({w}, kPanel, o_.seed + at(100 * (++randoms_)));
      apply(w);
      next = orthonormalise(p_, {w}, {mv_.panel(0)}, kPanel, panels_of(v_, size_));
    }
    whole_ = next == 0;
    in_panel_.resize(at(size_));
    in_panel_.push_back(next);
  }

  /// Places of the basis with a vector.
  std::vector<std::int64_t> used() const {
    std::vector<std::int64_t> places;
    for (std::int64_t q = 0; q < size_; ++q)
      for (std::int64_t j = 0; j < in_panel_[at(q)]; ++j) places.push_back(q * kPanel + j);
    return places;
  }

  void decompose() {
    const std::vector<std::int64_t> places = used();
    const auto n = std::ssize(places);
    Small g(n, n);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) g(i, j) = h_(places[at(i)], places[at(j)]);
    sort_by_size(eigen_of_ranks(g, n, ranks_));
  }

  /// Those of the largest |θ| belong to eigenvalues nearest to the shift.
  void sort_by_size(SymmetricEigen eigen) {
    ritz_ = std::move(eigen);
    order_.resize(ritz_.values.size());
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    const auto size_of = [&](std::int64_t i) { return std::abs(ritz_.values[at(i)]); };
    std::stable_sort(order_.begin(), order_.end(), [&](std::int64_t a, std::int64_t b) { return size_of(a) > size_of(b); });
  }

  double theta(std::int64_t i) const { return ritz_.values[at(order_[at(i)])]; }
  double value(std::int64_t i) const { return sigma_ + 1 / theta(i); }
  std::int64_t estimates() const { return std::ssize(order_); }
  /// ‖OP·x − θ·x‖ in the norm of M.
  double estimate(std::int64_t i) const {
    const auto n = std::ssize(ritz_.values);
    const std::int64_t last = in_panel_[at(size_ - 1)];
    double sum = 0;
    for (std::int64_t r = 0; r < kPanel; ++r) {
      double part = 0;
      for (std::int64_t j = 0; j < last; ++j) part += below_h_(r, j) * ritz_.vectors[at(order_[at(i)] * n + n - last + j)];
      sum += part * part;
    }
    return std::sqrt(sum);
  }
  /// Then one more application leaves the tolerance of residuals.
  bool ends(std::int64_t i) const { return estimate(i) <= o_.tolerance * std::abs(theta(i)); }
  bool done() const {
    if (estimates() < count_) return false;
    for (std::int64_t i = 0; i < count_; ++i)
      if (!ends(i)) return false;
    return true;
  }

  std::vector<Eigenpair> pairs() const {
    std::vector<Eigenpair> found;
    for (std::int64_t i = 0; i < std::min(count_, estimates()); ++i) found.push_back({value(i), estimate(i), ends(i)});
    std::sort(found.begin(), found.end(), [](const Eigenpair& a, const Eigenpair& b) { return a.value < b.value; });
    return found;
  }

  /// Columns of combinations of the basis: Ritz vectors 0 … some - 1, nearest to the shift first.
  Small ritz_vectors(std::int64_t some) const {
    const std::vector<std::int64_t> places = used();
    Small c(size_ * kPanel, (some + kPanel - 1) / kPanel * kPanel);
    for (std::int64_t j = 0; j < some; ++j)
      for (std::size_t i = 0; i < places.size(); ++i) c(places[i], j) = ritz_.vectors[at(order_[at(j)]) * places.size() + i];
    return c;
  }

  void restart() {
    ++result_.restarts;
    const std::int64_t some = std::min(kept_ * kPanel, estimates());
    combine(panels_of(v_, size_), ritz_vectors(some), panels_of(v_, kept_), rows_);
    std::copy_n(v_.panel(size_), rows_ * kPanel, v_.panel(kept_));
    std::fill(h_.values.begin(), h_.values.end(), 0.0);
    for (std::int64_t j = 0; j < some; ++j) h_(j, j) = theta(j);
    const std::int64_t next = in_panel_.back();
    in_panel_.clear();
    for (std::int64_t q = 0; q < kept_; ++q) in_panel_.push_back(std::clamp<std::int64_t>(some - q * kPanel, 0, kPanel));
    in_panel_.push_back(next);
    size_ = kept_;
  }

  /// Columns of combinations: the wanted ones of `vectors` begin at column 0, the guards, which are the next ones, at a
  /// panel of their own. `places`: rows of the combinations that have entries.
  Small with_guards(const std::vector<double>& vectors, const std::vector<std::int64_t>& places, std::int64_t rows,
                    std::int64_t guards) const {
    const std::int64_t panels = (count_ + kPanel - 1) / kPanel, apart = panels * kPanel - count_;
    Small c(rows, (panels + (guards > 0 ? 1 : 0)) * kPanel);
    for (std::int64_t j = 0; j < count_ + guards; ++j)
      for (std::size_t i = 0; i < places.size(); ++i)
        c(places[i], j < count_ ? j : j + apart) = vectors[at(order_[at(j)]) * places.size() + i];
    return c;
  }

  /// The wanted vectors, and Rayleigh-Ritz of K in what they span. An inner solve leaves errors in the basis, and one more
  /// application does not shrink those along the next vectors by much; so these come along, and Rayleigh-Ritz of the
  /// operator tells them apart.
  void take_vectors() {
    const std::int64_t some = std::min(count_, estimates());
    ranks_.run_agreed([&] {
      if (some < count_)
        throw Error(
            ErrorKind::usage,
            fmt::format("{} eigenvalues are wanted, and only {} are to be had: M has no mass for the others", count_, some),
            "count");
    });
    for (std::int64_t i = count_; i < std::min(estimates(), count_ + kPanel); ++i) further_.push_back(value(i));
    const std::int64_t panels = (count_ + kPanel - 1) / kPanel, guards = std::min(kPanel, estimates() - count_);
    x_ = std::make_unique<Block>(rows_, panels);
    Block guard(rows_, 1), m_guard(rows_, 1), mx(rows_, panels), kx(rows_, panels);
    const Panels wanted = panels_of(*x_, panels), m_wanted = panels_of(mx, panels), k_wanted = panels_of(kx, panels);
    const Panels all = guards > 0 ? joined({wanted, panels_of(guard, 1)}) : wanted;
    const Panels m_all = guards > 0 ? joined({m_wanted, panels_of(m_guard, 1)}) : m_wanted;
    combine(panels_of(v_, size_), with_guards(ritz_.vectors, used(), size_ * kPanel, guards), all, rows_);
    std::vector<std::int64_t> everywhere(all.size() * kPanel);
    std::iota(everywhere.begin(), everywhere.end(), std::int64_t{0});
    constexpr int kMostPurifications = 3;
    for (int pass = 0; pass < kMostPurifications; ++pass) {
      p_.multiply_m(all, m_all);
      for (std::size_t q = 0; q < all.size(); ++q) {
        std::copy_n(m_all[q], rows_ * kPanel, all[q]);
        solve(all[q]);
      }
      const auto columns = std::ssize(everywhere);
      sort_by_size(eigen_of_ranks(gram_of_ranks(m_all, all, rows_, ranks_), columns, ranks_));
      combine(all, with_guards(ritz_.vectors, everywhere, columns, guards), all, rows_);
      const std::int64_t left = orthonormalise(p_, wanted, m_wanted, count_, {});
      ranks_.run_agreed([&] {
        if (left < count_) throw Error(ErrorKind::internal, "eigenvectors became dependent");
      });
      p_.multiply_k(wanted, k_wanted);
      const Small g = gram_of_ranks(wanted, k_wanted, rows_, ranks_);
      const SymmetricEigen ritz = eigen_of_ranks(g, count_, ranks_);
      combine(wanted, first_vectors(ritz, count_, panels * kPanel, panels * kPanel), wanted, rows_);
      measure_pairs(p_, *x_, count_, o_.tolerance, result_);
      if (result_.converged() || result_.interrupted) break;
      // An error e of an inner solve, as a part of its right-hand side, leaves a residual of e·|λ − σ| / |λ|.
      inverse_->sharpen();
      if (guards > 0) orthonormalise(p_, {guard.panel(0)}, {m_guard.panel(0)}, guards, wanted);
    }
  }

  /// Counts the eigenvalues around those that were found.
  void confirm() {
    if (!result_.converged()) return;
    if (!below_) {
      result_.completeness = "not counted: " + inverse_->why_not_counted();
      return;
    }
    count_pairs(*inverse_, sigma_, o_.shift.has_value(), further_.empty() ? std::nullopt : std::optional(further_.front()),
                result_);
  }

  void describe() {
    result_.shift = sigma_;
    result_.block = kPanel;
    result_.inner = inverse_->name();
    result_.inverse = inverse_->describe() + (why_.empty() ? "" : "; without factors, because " + why_);
  }

  Pencil& p_;
  const PairOptions& o_;
  const EigenMonitor& monitor_;
  Communicator& ranks_;
  StopVote vote_;
  PairResult& result_;
  std::int64_t rows_, count_;
  double sigma_;
  std::string why_;  ///< no factors were taken
  std::unique_ptr<ShiftedInverse> inverse_;
  std::int64_t most_, kept_;            ///< panels of the basis, and those that a restart keeps
  Block v_, mv_;                        ///< the basis, then the panel that continues it; M times that panel
  Small h_, below_h_;                   ///< OP·V = V·h + (next panel)·below_h·(last panel's rows)
  std::int64_t size_ = 0;               ///< panels of the basis
  std::vector<std::int64_t> in_panel_;  ///< vectors in each panel, the one that continues the basis included
  SymmetricEigen ritz_;
  std::vector<std::int64_t> order_;
  std::vector<double> further_;  ///< estimates of the eigenvalues next to the wanted ones
  bool whole_ = false;           ///< the basis holds the whole space
  std::int64_t randoms_ = 0;
  std::optional<std::int64_t> below_;
  std::unique_ptr<Block> x_;
};

}  // namespace

void shift_invert(Pencil& pencil, const PairOptions& options, const DistributedVector* x0, const EigenMonitor& monitor,
                  const std::function<bool()>& stop, PairVectors& vectors, PairResult& result) {
  const Timer timer;
  ShiftInvertRun run(pencil, options, monitor, stop, result);
  result.setup_seconds += timer.seconds();
  run(x0);
  vectors.count = options.count;
  vectors.x = std::make_unique<Block>(std::move(run.x()));
}

}  // namespace shardmat::modes
