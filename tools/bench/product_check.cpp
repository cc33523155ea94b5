#include "tools/bench/product_check.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "kernels/base/parallel.h"

namespace shardmat::tools {
namespace {

constexpr std::int64_t kGrain = 1 << 12;

}  // namespace

ProductCheck::ProductCheck(const CsrView& matrix, ValueType type, std::span<const double> x)
    : type_(type), expected_(static_cast<std::size_t>(matrix.rows)), bound_(expected_.size()) {
  parallel_ranges(matrix.rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      double sum = 0, absolute = 0;
      const std::int64_t first = matrix.row_ptr[i] - matrix.row_ptr[0], last = matrix.row_ptr[i + 1] - matrix.row_ptr[0];
      for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
        const double value = matrix.values[k];
        const double a = type == ValueType::f32 ? static_cast<double>(static_cast<float>(value)) : value;
        const double term = a * x[static_cast<std::size_t>(matrix.col_idx[k])];
        sum += term;
        absolute += std::abs(term);
      }
      expected_[i] = sum;
      bound_[i] = 2 * unit_roundoff(type) * static_cast<double>(last - first + 2) * absolute;
    }
  });
}

ProductCheck::Outcome ProductCheck::compare(const void* y, Stream& stream) const {
  Outcome outcome;
  double worst_ratio = -1;
  std::mutex mutex;
  dispatch(type_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    HostVector<T> computed(expected_.size());
    copy_to_host(computed.data(), y, computed.size() * sizeof(T), stream);
    parallel_ranges(static_cast<std::int64_t>(computed.size()), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const double error = std::abs(static_cast<double>(computed[i]) - expected_[i]);
        if (error <= bound_[i]) continue;  // not so for NaN
        const double ratio = std::isnan(error) || bound_[i] == 0 ? HUGE_VAL : error / bound_[i];
        const std::lock_guard lock(mutex);
        ++outcome.wrong_rows;
        const auto row = static_cast<std::int64_t>(i);
        if (ratio < worst_ratio || (ratio == worst_ratio && row > outcome.worst_row)) continue;
        worst_ratio = ratio;
        outcome.worst_row = row;
        outcome.error = error;
        outcome.bound = bound_[i];
      }
    });
  });
  return outcome;
}

}  // namespace shardmat::tools
