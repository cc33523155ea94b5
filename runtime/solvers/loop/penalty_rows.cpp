#include "runtime/solvers/loop/penalty_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange/column_map.h"
#include "comm/exchange/exchange.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "kernels/diagonal.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/kept_upload.h"
#include "kernels/matrix/csr.h"
#include "kernels/matrix/penalty_rule.h"
#include "kernels/vector.h"
#include "runtime/context/context.h"
#include "runtime/matrix/named_rows.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
namespace {

constexpr double kNoCandidate = -1;

using Facts = HostVector<DiagonalAndOthers>;

/// The middle one of the diagonals' magnitudes on all ranks, the lower one of two: found 16 bits at a time, from the
/// leading ones on. Collective.
double median_diagonal(const Facts& facts, std::int64_t rows, Communicator& ranks) {
  constexpr int kDigit = 16, kBits = 64;
  std::uint64_t prefix = 0;
  std::int64_t before = (rows - 1) / 2;  // values below the median, among those with the prefix
  std::vector<std::int64_t> counts(std::size_t{1} << kDigit);
  for (int shift = kBits - kDigit; shift >= 0; shift -= kDigit) {
    std::fill(counts.begin(), counts.end(), 0);
    for (const DiagonalAndOthers& row : facts) {
      const auto bits = std::bit_cast<std::uint64_t>(row.diagonal);
      if (shift + kDigit < kBits && bits >> (shift + kDigit) != prefix >> (shift + kDigit)) continue;
      ++counts[bits >> shift & (counts.size() - 1)];
    }
    ranks.all_reduce(std::span<std::int64_t>(counts), Reduction::sum);
    std::uint64_t digit = 0;
    while (digit + 1 < counts.size() && before >= counts[digit]) before -= counts[digit++];
    prefix |= digit << shift;
  }
  return std::bit_cast<double>(prefix);
}

/// One search.
class Search {
 public:
  Search(DistributedMatrix& matrix, Stream& stream)
      : matrix_(matrix), ranks_(matrix.context().communicator()), stream_(stream) {
    ranks_.run_agreed([&] {
      csr_ = matrix.host_rows(stream);
      const auto uploaded = KeptUpload::find_exact(csr_);
      extremes_ = uploaded ? diagonal_extremes(*uploaded, first_own(), stream) : look_at_rows();
    });
  }

  /// Finds the rows by their diagonals; their number on all ranks. Collective.
  std::int64_t find(PenaltyRows choice) {
    double extremes[3] = {extremes_.least, extremes_.least_not_0, -extremes_.most};
    ranks_.all_reduce(std::span<double>(extremes), Reduction::min);
    if (!(-extremes[2] > kPenaltyRatio * extremes[0])) return 0;
    ranks_.run_agreed([&] {
      if (facts_.empty()) look_at_rows();
    });
    if (choice == PenaltyRows::known) return find_above(extremes[1]);
    // Where most rows are penalty rows, as on small meshes, so is the row of the median.
    const std::int64_t found = find_above(median_diagonal(facts_, matrix_.rows(), ranks_));
    return found > 0 ? found : find_above(extremes[1]);
  }

  /// Finds the rows whose diagonals stand above this one; their number on all ranks. Collective.
  std::int64_t find_above(double reference) {
    reference_ = reference;
    for (std::size_t i = 0; i < facts_.size(); ++i)
      if (facts_[i].is_penalty(reference_)) rows_.push_back(static_cast<std::int64_t>(i));
    return ranks_.all_reduce(std::ssize(rows_), Reduction::sum);
  }

  /// Takes out the rows that matter too much to others; how many on all ranks. Collective.
  std::int64_t take_out_coupled(const Product& of_one) {
    move_candidates(of_one);
    std::vector<std::size_t> places;
    for (std::size_t j = 0; j < facts_.size(); ++j) {
      if (moved_[own_place(j)] != kNoCandidate) continue;
      double own = 0;
      for_row(j, [&](std::size_t at, double value) {
        if (moved_[at] == kNoCandidate) own = std::max(own, value);
      });
      for_row(j, [&](std::size_t at, double value) {
        if (own > 0 && moved_[at] != kNoCandidate && value * moved_[at] > kPenaltyCoupling * own) places.push_back(at);
      });
    }
    const std::int64_t found = ranks_.all_reduce(std::ssize(places), Reduction::sum);
    if (found == 0) return 0;
    const HostVector<std::int64_t> out = named_on_all_ranks(original_rows(of_one, places), ranks_);
    const std::size_t before = rows_.size();
    std::erase_if(rows_, [&](std::int64_t row) {
      return std::binary_search(out.begin(), out.end(), matrix_.y_rows()->ids()[static_cast<std::size_t>(row)]);
    });
    const std::int64_t taken_out = ranks_.all_reduce(static_cast<std::int64_t>(before - rows_.size()), Reduction::sum);
    move_candidates(of_one);
    return taken_out;
  }

  /// Which columns are those of penalty rows. Collective.
  void move_candidates(const Product& of_one) {
    HostVector<double> mine(facts_.size());
    std::fill(mine.begin(), mine.end(), kNoCandidate);
    for (const std::int64_t row : rows_) {
      const DiagonalAndOthers& of = facts_[static_cast<std::size_t>(row)];
      mine[static_cast<std::size_t>(row)] = of.others / of.diagonal;
    }
    moved_ = move(of_one, mine);
  }

  /// REQUIRES: move_candidates(). Collective.
  PenaltyFindings findings(std::int64_t count) {
    PenaltyFindings found;
    found.count = count;
    double sum = 0, lowest = std::numeric_limits<double>::infinity(), ratio = 0;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      const bool held = moved_[own_place(i)] != kNoCandidate;
      double diagonal = 0;
      for (std::int64_t k = csr_.row_ptr[i]; k < csr_.row_ptr[i + 1]; ++k) {
        const auto at = static_cast<std::size_t>(k);
        const double value = csr_.values[at];
        if (csr_.col_idx[at] == first_own() + static_cast<std::int64_t>(i)) diagonal = value;
        if (!held && moved_[static_cast<std::size_t>(csr_.col_idx[at])] == kNoCandidate) sum += std::abs(value);
      }
      if (held) {
        found.rows.push_back(static_cast<std::int64_t>(i));
        found.diagonal.push_back(diagonal);
        ratio = std::max(ratio, facts_[i].ratio(reference_));
      } else {
        lowest = std::min(lowest, diagonal);
      }
    }
    found.magnitudes = ranks_.all_reduce(sum, Reduction::sum);
    found.positive_diagonal = ranks_.all_reduce(lowest, Reduction::min) > 0;
    found.largest_ratio = ranks_.all_reduce(ratio, Reduction::max);
    return found;
  }

 private:
  /// On the host, for what the diagonals of all rows are.
  DiagonalExtremes look_at_rows() {
    require_host_memory(static_cast<std::int64_t>(sizeof(DiagonalAndOthers)) * csr_.rows, "the diagonal");
    facts_.resize(static_cast<std::size_t>(csr_.rows));
    return diagonal_extremes(csr_, first_own(), facts_.data());
  }
  std::int64_t first_own() const { return matrix_.column_map().first_own(); }
  std::size_t own_place(std::size_t row) const { return static_cast<std::size_t>(first_own()) + row; }
  template <class F>
  void for_row(std::size_t row, const F& f) const {
    for (std::int64_t k = csr_.row_ptr[row]; k < csr_.row_ptr[row + 1]; ++k)
      f(static_cast<std::size_t>(csr_.col_idx[static_cast<std::size_t>(k)]),
        std::abs(static_cast<double>(csr_.values[static_cast<std::size_t>(k)])));
  }
  /// The entries of all columns that this rank's rows read. Collective.
  HostVector<double> move(const Product& of_one, const HostVector<double>& mine) const {
    ranks_.run_agreed([&] { to_device(of_one.x().data, mine, matrix_.type(), stream_); });
    of_one.move_x(stream_);
    of_one.wait(stream_);
    return ranks_.run_agreed([&] {
      const std::int64_t length = matrix_.column_map().length();
      require_host_memory(8 * length, "which columns have known values");
      return to_host(of_one.exchange().x(), length, matrix_.type(), stream_);
    });
  }
  /// The original rows of these columns. f32 holds whole numbers of 24 bits: the numbers move in two pieces. Collective.
  std::vector<std::int64_t> original_rows(const Product& of_one, const std::vector<std::size_t>& places) const {
    constexpr std::int64_t kPiece = 1 << 22;
    HostVector<double> low(facts_.size()), high(facts_.size());
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      low[i] = static_cast<double>(matrix_.y_rows()->ids()[i] % kPiece);
      high[i] = static_cast<double>(matrix_.y_rows()->ids()[i] / kPiece);
    }
    low = move(of_one, low), high = move(of_one, high);
    std::vector<std::int64_t> rows;
    for (const std::size_t at : places)
      rows.push_back(static_cast<std::int64_t>(high[at]) * kPiece + static_cast<std::int64_t>(low[at]));
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
  }

  DistributedMatrix& matrix_;
  Communicator& ranks_;
  Stream& stream_;
  CsrView csr_;
  DiagonalExtremes extremes_;
  Facts facts_;  ///< empty while the extremes tell enough
  double reference_ = 0;
  std::vector<std::int64_t> rows_;
  HostVector<double> moved_;  ///< of each column: others / diagonal, or kNoCandidate
};

bool has_rows_everywhere(const DistributedMatrix& matrix) {
  const bool here = matrix.has_host_rows() && matrix.options().host_rows == HostRows::keep;
  return matrix.context().communicator().all_reduce(here ? 1 : 0, Reduction::min) == 1;
}

/// False if the diagonal alone tells that no row is one. Spares a look at the rows after new values, which come from the
/// device.
bool may_have_some(DistributedMatrix& matrix, Stream& stream) {
  Communicator& ranks = matrix.context().communicator();
  const DistributedVector diagonal = matrix.diagonal(stream);
  double extremes[2] = {std::numeric_limits<double>::infinity(), 0};
  ranks.run_agreed([&] {
    const Magnitudes here = magnitudes(diagonal.type(), diagonal.local_rows(), diagonal.view().data, stream);
    extremes[0] = here.least, extremes[1] = -here.largest;
  });
  ranks.all_reduce(std::span<double>(extremes), Reduction::min);
  return -extremes[1] > kPenaltyRatio * extremes[0];
}

PenaltyFindings none(std::string note = {}) {
  PenaltyFindings found;
  found.looked = true, found.note = std::move(note);
  return found;
}

std::string rows_text(std::int64_t count) { return fmt::format("{} row{}", human_count(count), count == 1 ? "" : "s"); }

}  // namespace

PenaltyFindings find_penalty_rows(DistributedMatrix& matrix, PenaltyRows choice,
                                  const std::function<const Product&()>& make_product, Stream& stream) {
  Communicator& ranks = matrix.context().communicator();
  const auto refuse = [&](const char* text) {
    ranks.run_agreed([&] { throw Error(ErrorKind::usage, text, "penalty_rows"); });
  };
  if (choice == PenaltyRows::keep || matrix.rows() == 0) return none();
  if (!has_rows_everywhere(matrix)) {
    PenaltyFindings found = none("not looked for: the rows are no longer in host memory");
    found.looked = false;
    return found;
  }
  if (choice == PenaltyRows::automatic && matrix.options().values == Values::updatable && !may_have_some(matrix, stream))
    return none();
  Search search(matrix, stream);
  std::int64_t count = search.find(choice);
  if (choice == PenaltyRows::known && count == 0)
    refuse(
        "the matrix has no penalty rows. In such a row, the diagonal is more than 1e8 times as large as the other entries "
        "of "
        "the row, and as the smallest diagonal of the matrix. Take auto or keep");
  if (count == 0) return none();
  const Product& of_one = make_product();
  std::string note;
  if (choice == PenaltyRows::automatic) {
    const std::int64_t coupled = search.take_out_coupled(of_one);
    if (coupled > 0)
      note = fmt::format("{} with a large diagonal: other rows depend on {}, so {} and not taken as known values",
                         rows_text(coupled), coupled == 1 ? "it" : "them",
                         coupled == 1 ? "it is badly scaled" : "they are badly scaled");
    count -= coupled;
  } else {
    search.move_candidates(of_one);
  }
  if (count == 0) return none(note);
  PenaltyFindings found = search.findings(count);
  found.looked = true, found.note = note;
  return found;
}

}  // namespace shardmat
