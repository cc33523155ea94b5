#include "runtime/run/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "partition/source/row_source.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/load_part.h"
#include "runtime/matrix/vectors.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

constexpr std::int64_t kBlocks = 64;  // of neighbouring rows, spread over this rank's rows
constexpr std::int64_t kSampleBlockRows = 256;

struct CheckedRows {
  std::int64_t begin, end;
};

/// The worst row of some; `ratio` = error / bound, infinite for NaN or an error where none is allowed.
struct Worst {
  double ratio = -1, error = 0, bound = 0, computed = 0, expected = 0;
  std::int64_t row = -1;

  /// Of rows that are equally bad the first counts, whichever thread finds it first.
  void take(const Worst& other) {
    if (other.ratio > ratio || (other.ratio == ratio && other.row < row)) *this = other;
  }
};
/// Rows that were checked.
struct Tally {
  Worst worst;
  std::int64_t checked = 0, wrong = 0;

  void add(const Tally& other) {
    worst.take(other.worst);
    checked += other.checked, wrong += other.wrong;
  }
};

/// Neumaier's sum: its error does not grow with the number of terms.
class CompensatedSum {
 public:
  void add(double term) {
    const double sum = sum_ + term;
    correction_ += std::abs(sum_) >= std::abs(term) ? (sum_ - sum) + term : (term - sum) + sum_;
    sum_ = sum;
  }
  double value() const { return sum_ + correction_; }

 private:
  double sum_ = 0, correction_ = 0;
};

class RankCheck {
 public:
  RankCheck(const DistributedMatrix& matrix, const MatrixSource& source, const CheckedProduct& product)
      : matrix_(matrix),
        source_(*source.rows),
        product_(product),
        width_(static_cast<std::size_t>(product.columns)),
        alpha_(at_sum(product.alpha)),
        beta_(at_sum(product.beta)) {
    const bool permuted = source.rows->permuted() && matrix.rows() == matrix.cols();
    require_host_memory((permuted ? 16 : 8) * matrix.cols() * product.columns, "x for the verification");
    x_ = permuted ? collect(product.x, source.rows->permutation(0, matrix.cols())) : product.x.read(0, matrix.cols());
    parallel_ranges(std::ssize(x_), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
        x_[i] = rounded(matrix.type(), x_[i]);
    });
    // y by the source's row, not by the order the kernel worked in.
    local_of_row_ = matrix.y_rows()->rows_by_place();
    if (product.beta != 0) y0_ = collect(*product.y0, matrix.y_rows()->ids());
    if (!matrix.averaged().empty())
      for (const double x : x_) largest_x_ = std::max(largest_x_, std::abs(x));
  }

  void check_rows(CheckedRows range) {
    const std::int64_t first = matrix_.y_rows()->starts()[static_cast<std::size_t>(matrix_.context().communicator().rank())];
    for_each_row_slice(source_, first + range.begin, first + range.end, [&](std::int64_t begin, const CsrView& rows) {
      std::mutex mutex;
      parallel_ranges(rows.rows, 256, [&](std::int64_t from, std::int64_t to) {
        Tally mine;
        std::vector<double> values;
        for (std::int64_t i = from; i < to; ++i) check_row(rows, i, begin - first + i, values, mine);
        const std::lock_guard lock(mutex);
        tally_.add(mine);
      });
    });
  }

  /// 1ᵀ(A_p x) = (1ᵀA_p) x for this rank's rows, within the sum of the rows' bounds. For one right-hand side.
  bool column_sums_hold() const {
    const ColumnSums& sums = matrix_.column_sums();
    CompensatedSum difference;
    double weight = 0;
    for (std::size_t j = 0; alpha_ != 0 && j < sums.sum.size(); ++j) {
      difference.add(-alpha_ * sums.sum[j] * x_[j]);
      weight += std::abs(alpha_) * sums.weight[j] * std::abs(x_[j]);
    }
    for (const double y : y0_) {
      difference.add(-beta_ * at_sum(y));
      weight += 4 * std::abs(beta_ * at_sum(y));
    }
    for (const double y : product_.y) difference.add(y);
    return std::abs(difference.value()) <= 2 * unit_roundoff(matrix_.type()) * weight;  // false for NaN
  }

  const Tally& tally() const { return tally_; }

 private:
  /// A factor or an old value of y as the kernel sees it.
  double at_sum(double value) const { return rounded(sum_type(matrix_.type()), value); }

  /// `values`: room for those of a row, as the kernel sees them.
  void check_row(const CsrView& rows, std::int64_t i, std::int64_t row, std::vector<double>& values, Tally& tally) const {
    const auto begin = static_cast<std::size_t>(rows.row_ptr[static_cast<std::size_t>(i)] - rows.row_ptr[0]);
    const auto end = static_cast<std::size_t>(rows.row_ptr[static_cast<std::size_t>(i) + 1] - rows.row_ptr[0]);
    values.clear();
    for (std::size_t k = begin; k < end; ++k) values.push_back(rounded(matrix_.type(), rows.values[k]));
    const auto local = static_cast<std::size_t>(local_of_row_[static_cast<std::size_t>(row)]);
    // Symmetric storage may have changed the values of the source a little.
    const double averaged = matrix_.averaged().empty() ? 0 : matrix_.averaged()[static_cast<std::size_t>(row)] * largest_x_;
    bool right = true;
    for (std::size_t side = 0; side < width_; ++side) {
      double sum = 0, absolute = 0;
      for (std::size_t k = begin; k < end; ++k) {
        const double product = values[k - begin] * x_[static_cast<std::size_t>(rows.col_idx[k]) * width_ + side];
        sum += product;
        absolute += std::abs(product);
      }
      const Expected expected{sum, absolute, static_cast<double>(end - begin), averaged};
      right = check_entry(local * width_ + side, expected, matrix_.y_rows()->ids()[local], tally.worst) && right;
    }
    ++tally.checked;
    if (!right) ++tally.wrong;
  }

  /// A sum of so many products that are `absolute` in sum without signs; `averaged`: what symmetric storage may change in
  /// it.
  struct Expected {
    double sum, absolute, products, averaged;
  };

  /// Entry `at` of y.
  bool check_entry(std::size_t at, const Expected& of_row, std::int64_t original_row, Worst& worst) const {
    auto [sum, absolute, products, averaged] = of_row;
    const double u = unit_roundoff(sum_type(matrix_.type()));
    if (alpha_ == 0) sum = absolute = averaged = 0;  // x is not used, whatever it holds
    double expected = alpha_ * sum;
    double bound = std::abs(alpha_) * (2 * u * products * absolute + (1 + 2 * u * products) * averaged);
    if (product_.beta != 0) {
      const double y0 = at_sum(y0_[at]);
      expected += beta_ * y0;
      bound += 2 * u * (std::abs(alpha_) * absolute + 2 * std::abs(beta_ * y0));
    }
    // A product below the smallest normal number is rounded absolutely, not relatively.
    if (absolute > 0)
      bound += (products + 2) * (sum_type(matrix_.type()) == ValueType::f32
                                     ? static_cast<double>(std::numeric_limits<float>::denorm_min())
                                     : std::numeric_limits<double>::denorm_min());
    const double computed = product_.y[at], error = std::abs(computed - expected);
    const bool right = error <= bound;  // false for NaN
    const double ratio = right
                             ? (bound > 0 ? error / bound : 0)
                             : (bound > 0 && std::isfinite(error) ? error / bound : std::numeric_limits<double>::infinity());
    worst.take({ratio, error, bound, computed, expected, original_row});
    return right;
  }

  const DistributedMatrix& matrix_;
  const RowSource& source_;
  const CheckedProduct& product_;
  std::size_t width_;
  double alpha_, beta_;
  HostVector<double> x_, y0_;  ///< x as the kernel sees it
  double largest_x_ = 0;       ///< only where values were averaged
  HostVector<std::int64_t> local_of_row_;
  Tally tally_;
};

/// All of this rank's rows, in ranges between which progress is reported, or the sampled blocks.
std::vector<CheckedRows> ranges_to_check(const DistributedMatrix& matrix, VerifyMode mode) {
  const std::int64_t rows = matrix.local_rows();
  const bool sampled = mode == VerifyMode::sampled && rows > kBlocks * kSampleBlockRows;
  std::vector<CheckedRows> ranges;
  for (std::int64_t b = 0; b < kBlocks; ++b) {
    const std::int64_t begin = sampled ? (rows - kSampleBlockRows) * b / (kBlocks - 1) : rows * b / kBlocks;
    ranges.push_back({begin, sampled ? begin + kSampleBlockRows : rows * (b + 1) / kBlocks});
  }
  return ranges;
}

}  // namespace

VerifyMode resolve(VerifyMode mode, std::int64_t nnz, int ranks) {
  if (mode != VerifyMode::automatic) return mode;
  return nnz / ranks > kFullVerificationLimit ? VerifyMode::sampled : VerifyMode::full;
}

VerifyResult verify(const DistributedMatrix& matrix, const MatrixSource& source, const CheckedProduct& product,
                    VerifyMode mode, const Progress& progress) {
  const ContextScope scope(matrix.context());
  Communicator& communicator = matrix.context().communicator();
  VerifyResult result;
  result.mode = product.columns > 1 ? VerifyMode::full : resolve(mode, matrix.nnz(), communicator.size());
  struct Mine {
    Tally tally;
    bool column_sums = true;
  };
  const Mine mine = communicator.run_agreed([&] {
    RankCheck check(matrix, source, product);
    const std::vector<CheckedRows> ranges = ranges_to_check(matrix, result.mode);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      check.check_rows(ranges[i]);
      report(progress, "verifying", static_cast<std::int64_t>(i) + 1, static_cast<std::int64_t>(ranges.size()));
    }
    return Mine{check.tally(), result.mode == VerifyMode::full || check.column_sums_hold()};
  });
  Worst worst;
  for (const Mine& of_rank : communicator.all_gather(mine)) {
    result.rows_checked += of_rank.tally.checked;
    result.wrong_rows += of_rank.tally.wrong;
    result.column_sums_passed = result.column_sums_passed && of_rank.column_sums;
    worst.take(of_rank.tally.worst);
  }
  result.worst_row = worst.row;
  result.worst_error = worst.error;
  result.worst_bound = worst.bound;
  result.worst_computed = worst.computed;
  result.worst_expected = worst.expected;
  result.passed = result.wrong_rows == 0 && result.column_sums_passed;
  return result;
}

std::string VerifyResult::text() const {
  const std::string how =
      mode == VerifyMode::full ? "" : ", sampled; column sums " + std::string(column_sums_passed ? "agree" : "DISAGREE");
  if (worst_row < 0)
    return fmt::format("{} ({} rows checked{})", passed ? "passed" : "FAILED", human_count(rows_checked), how);
  if (!passed)
    return fmt::format("FAILED: {} of {} rows wrong{}; worst row {}: computed {:.17g}, expected {:.17g}, {}",
                       human_count(wrong_rows), human_count(rows_checked), how, worst_row, worst_computed, worst_expected,
                       std::isfinite(worst_error)
                           ? fmt::format("error {:.2g} > bound {:.2g}", worst_error, worst_bound)
                           : "not a finite number (values or x of that row, or sums beyond the type)");
  return fmt::format("passed ({} rows{}); worst row {}: error {:.2g} ≤ bound {:.2g}", human_count(rows_checked), how,
                     worst_row, worst_error, worst_bound);
}

}  // namespace shardmat
