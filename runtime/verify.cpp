#include "runtime/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

constexpr std::int64_t kBlocks = 64;  // of neighbouring rows, spread over this rank's rows
constexpr std::int64_t kSampleBlockRows = 256;

struct RowRange {
  std::int64_t begin, end;
};

/// The worst row of a rank; `ratio` = error / bound, infinite for NaN or an error where none is allowed.
struct Worst {
  double ratio = -1, error = 0, bound = 0, computed = 0, expected = 0;
  std::int64_t row = -1;
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
      : matrix_(matrix), source_(*source.rows), product_(product), f32_(matrix.type() == ValueType::f32) {
    require_host_memory((source.rows->permuted() ? 24 : 8) * matrix.cols(), "x for the verification");
    x_ = product.x.read(0, matrix.cols());
    if (source.rows->permuted() && matrix.rows() == matrix.cols()) {
      const HostVector<std::int64_t> original = source.rows->permutation(0, matrix.cols());
      HostVector<double> stored(x_.size());
      for (std::size_t j = 0; j < stored.size(); ++j) stored[j] = x_[static_cast<std::size_t>(original[j])];
      x_ = std::move(stored);
    }
    // y by the source's row, not by the order the kernel worked in.
    local_of_row_.resize(matrix.local_order().size());
    for (std::size_t i = 0; i < local_of_row_.size(); ++i)
      local_of_row_[static_cast<std::size_t>(matrix.local_order()[i])] = static_cast<std::int64_t>(i);
    if (product.beta != 0) y0_ = collect(*product.y0, matrix.row_ids());
  }

  void check_rows(RowRange range) {
    const std::int64_t first = matrix_.row_starts()[static_cast<std::size_t>(matrix_.context().communicator().rank())];
    for_each_slice(source_, first + range.begin, first + range.end, [&](std::int64_t begin, const CsrView& rows) {
      for (std::int64_t i = 0; i < rows.rows; ++i) check_row(rows, i, begin - first + i);
      checked_ += rows.rows;
    });
  }

  /// 1ᵀ(A_p x) = (1ᵀA_p) x for this rank's rows, within the sum of the rows' bounds.
  bool column_sums_hold() const {
    const ColumnSums& sums = matrix_.column_sums();
    const double alpha = at_type(product_.alpha), beta = at_type(product_.beta);
    CompensatedSum difference;
    double weight = 0;
    for (std::size_t j = 0; j < sums.sum.size(); ++j) {
      difference.add(-alpha * sums.sum[j] * at_type(x_[j]));
      weight += std::abs(alpha) * sums.weight[j] * std::abs(at_type(x_[j]));
    }
    for (const double y : y0_) {
      difference.add(-beta * at_type(y));
      weight += 4 * std::abs(beta * at_type(y));
    }
    for (const double y : product_.y) difference.add(y);
    return std::abs(difference.value()) <= 2 * unit_roundoff(matrix_.type()) * weight;  // false for NaN
  }

  const Worst& worst() const { return worst_; }
  std::int64_t checked() const { return checked_; }
  std::int64_t wrong() const { return wrong_; }

 private:
  /// A value as the kernel sees it.
  double at_type(double value) const { return f32_ ? static_cast<double>(static_cast<float>(value)) : value; }

  void check_row(const CsrView& rows, std::int64_t i, std::int64_t row) {
    double sum = 0, absolute = 0;
    const std::int64_t begin = rows.row_ptr[static_cast<std::size_t>(i)] - rows.row_ptr[0];
    const std::int64_t end = rows.row_ptr[static_cast<std::size_t>(i) + 1] - rows.row_ptr[0];
    for (std::int64_t k = begin; k < end; ++k) {
      const double a = at_type(rows.values[static_cast<std::size_t>(k)]);
      const double x = at_type(x_[static_cast<std::size_t>(rows.col_idx[static_cast<std::size_t>(k)])]);
      sum += a * x;
      absolute += std::abs(a) * std::abs(x);
    }
    const auto local = static_cast<std::size_t>(local_of_row_[static_cast<std::size_t>(row)]);
    const double u = unit_roundoff(matrix_.type());
    const double alpha = at_type(product_.alpha), beta = at_type(product_.beta);
    double expected = alpha * sum;
    double bound = 2 * u * static_cast<double>(end - begin) * std::abs(alpha) * absolute;
    if (product_.beta != 0) {
      const double y0 = at_type(y0_[local]);
      expected += beta * y0;
      bound += 2 * u * (std::abs(alpha) * absolute + 2 * std::abs(beta * y0));
    }
    // A product below the smallest normal number is rounded absolutely, not relatively.
    if (absolute > 0)
      bound += static_cast<double>(end - begin + 2) * (f32_ ? static_cast<double>(std::numeric_limits<float>::denorm_min())
                                                            : std::numeric_limits<double>::denorm_min());
    record(product_.y[local], expected, bound, matrix_.row_ids()[local]);
  }

  void record(double computed, double expected, double bound, std::int64_t original_row) {
    const double error = std::abs(computed - expected);
    const bool right = error <= bound;  // false for NaN
    if (!right) ++wrong_;
    const double ratio = right
                             ? (bound > 0 ? error / bound : 0)
                             : (bound > 0 && std::isfinite(error) ? error / bound : std::numeric_limits<double>::infinity());
    if (ratio > worst_.ratio) worst_ = {ratio, error, bound, computed, expected, original_row};
  }

  const DistributedMatrix& matrix_;
  const RowSource& source_;
  const CheckedProduct& product_;
  bool f32_;
  HostVector<double> x_, y0_;
  HostVector<std::int64_t> local_of_row_;
  Worst worst_;
  std::int64_t checked_ = 0, wrong_ = 0;
};

/// All of this rank's rows, in ranges between which progress is reported, or the sampled blocks.
std::vector<RowRange> ranges_to_check(const DistributedMatrix& matrix, VerifyMode mode) {
  const std::int64_t rows = matrix.local_rows();
  const bool sampled = mode == VerifyMode::sampled && rows > kBlocks * kSampleBlockRows;
  std::vector<RowRange> ranges;
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
  Communicator& communicator = matrix.context().communicator();
  VerifyResult result;
  result.mode = resolve(mode, matrix.nnz(), communicator.size());
  struct Mine {
    Worst worst;
    std::int64_t checked = 0, wrong = 0;
    bool column_sums = true;
  };
  const Mine mine = communicator.together([&] {
    RankCheck check(matrix, source, product);
    const std::vector<RowRange> ranges = ranges_to_check(matrix, result.mode);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      check.check_rows(ranges[i]);
      report(progress, "verifying", static_cast<std::int64_t>(i) + 1, static_cast<std::int64_t>(ranges.size()));
    }
    return Mine{check.worst(), check.checked(), check.wrong(), result.mode == VerifyMode::full || check.column_sums_hold()};
  });
  for (const Mine& of_rank : communicator.all_gather(mine)) {
    result.rows_checked += of_rank.checked;
    result.wrong_rows += of_rank.wrong;
    result.column_sums_passed = result.column_sums_passed && of_rank.column_sums;
    const Worst& w = of_rank.worst;
    const double known = result.worst_row < 0     ? -1
                         : result.worst_bound > 0 ? result.worst_error / result.worst_bound
                         : result.worst_error > 0 ? std::numeric_limits<double>::infinity()
                                                  : 0;
    if (w.row < 0 || !(w.ratio > known || std::isnan(w.error))) continue;
    result.worst_row = w.row;
    result.worst_error = w.error;
    result.worst_bound = w.bound;
    result.worst_computed = w.computed;
    result.worst_expected = w.expected;
  }
  result.passed = result.wrong_rows == 0 && result.column_sums_passed;
  return result;
}

std::string VerifyResult::text() const {
  const std::string how =
      mode == VerifyMode::full ? "" : ", sampled; column sums " + std::string(column_sums_passed ? "agree" : "DISAGREE");
  if (worst_row < 0)
    return fmt::format("{} ({} rows checked{})", passed ? "passed" : "FAILED", human_count(rows_checked), how);
  if (!passed)
    return fmt::format(
        "FAILED: {} of {} rows wrong{}; worst row {}: computed {:.17g}, expected {:.17g}, error {:.2g} > bound {:.2g}",
        human_count(wrong_rows), human_count(rows_checked), how, worst_row, worst_computed, worst_expected, worst_error,
        worst_bound);
  return fmt::format("passed ({} rows{}); worst row {}: error {:.2g} ≤ bound {:.2g}", human_count(rows_checked), how,
                     worst_row, worst_error, worst_bound);
}

}  // namespace shardmat
