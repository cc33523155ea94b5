#include "tools/bench/spmm_trial.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"

namespace shardmat::tools {
namespace {

constexpr std::int64_t kPlaces = 32, kRowsOfPlace = 8, kColumnsChecked = 64;
constexpr double kMostSeconds = 1;

std::int64_t find_longest_row(const CsrView& matrix) {
  const auto length = [&](std::int64_t i) {
    return matrix.row_ptr[static_cast<std::size_t>(i) + 1] - matrix.row_ptr[static_cast<std::size_t>(i)];
  };
  std::int64_t longest = 0;
  for (std::int64_t i = 1; i < matrix.rows; ++i)
    if (length(i) > length(longest)) longest = i;
  return longest;
}

}  // namespace

SpmmTrial::SpmmTrial(const CsrView& matrix, ValueType type, Stream& stream, const TrialOptions& options)
    : matrix_(matrix),
      options_(options),
      input_(matrix, type, stream),
      tuner_(input_),
      table_(type),
      csr_bytes_(find_format("csr").bytes(input_, {})),
      longest_row_(find_longest_row(matrix)),
      x_rows_(count_touched_columns(matrix)) {
  input_.csr();
}

std::int64_t SpmmTrial::leading(DenseOrder order, std::int64_t rows) const {
  return order == DenseOrder::row_major ? rhs_.count : rows;
}

void SpmmTrial::prepare(const RightHandSides& rhs) {
  require_count(rhs.count);
  rhs_ = rhs;
  x_ = Buffer(), y_ = Buffer();
  const auto bytes = [&](std::int64_t rows, ValueType type) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(rhs.count) * size_of(type);
  };
  const std::size_t x_bytes = bytes(matrix_.cols, input_.type()), y_bytes = bytes(matrix_.rows, sum_type(input_.type()));
  const Device device = input_.stream().device();
  require_memory(device, static_cast<std::int64_t>(x_bytes + y_bytes),
                 "X and Y for " + std::to_string(rhs.count) + " right-hand sides");
  x_ = Buffer(device, x_bytes);
  y_ = Buffer(device, y_bytes);
  table_.fill(x_, input_.stream());
}

double SpmmTrial::least_bytes() const {
  const auto of_x = static_cast<double>(size_of(input_.type())),
             of_y = static_cast<double>(size_of(sum_type(input_.type())));
  return static_cast<double>(csr_bytes_) +
         static_cast<double>(rhs_.count) * (of_x * static_cast<double>(x_rows_) + of_y * static_cast<double>(matrix_.rows));
}

std::int64_t SpmmTrial::count_wrong() {
  const std::int64_t rows = matrix_.rows, value = static_cast<std::int64_t>(size_of(sum_type(input_.type())));
  const std::int64_t columns = std::min(rhs_.count, kColumnsChecked);
  const bool by_rows = rhs_.y == DenseOrder::row_major;
  std::int64_t wrong = 0;
  for (std::int64_t place = 0; place <= kPlaces; ++place) {
    const std::int64_t wanted = place == kPlaces ? longest_row_ : rows * place / std::max<std::int64_t>(1, kPlaces - 1);
    const std::int64_t first = std::max<std::int64_t>(0, std::min(wanted, rows - kRowsOfPlace)),
                       last = std::min(rows, first + kRowsOfPlace);
    const std::int64_t across = by_rows ? rhs_.count : last - first;  // entries that lie together
    std::vector<double> y(static_cast<std::size_t>(kRowsOfPlace * std::max(columns, rhs_.count)));
    dispatch_operands(input_.type(), [&](auto of_a, auto of_sum) {
      using A = typename decltype(of_a)::type;
      using T = typename decltype(of_sum)::type;
      std::vector<T> part(static_cast<std::size_t>(across));
      for (std::int64_t k = 0; k < (by_rows ? last - first : columns); ++k) {
        const std::int64_t at = by_rows ? (first + k) * rhs_.count : first + k * rows;
        copy_to_host(part.data(), y_.as<char>() + at * value, part.size() * sizeof(T), input_.stream());
        input_.stream().synchronize();
        for (std::int64_t e = 0; e < (by_rows ? columns : across); ++e)
          y[static_cast<std::size_t>(by_rows ? k * columns + e : e * columns + k)] = part[static_cast<std::size_t>(e)];
      }
      for (std::int64_t i = first; i < last; ++i) {
        const auto begin = static_cast<std::size_t>(matrix_.row_ptr[static_cast<std::size_t>(i)] - matrix_.row_ptr[0]),
                   end = static_cast<std::size_t>(matrix_.row_ptr[static_cast<std::size_t>(i) + 1] - matrix_.row_ptr[0]);
        for (std::int64_t j = 0; j < columns; ++j) {
          double sum = 0, absolute = 0;
          for (std::size_t k = begin; k < end; ++k) {
            const std::int64_t column = matrix_.col_idx[k];
            const std::int64_t at = rhs_.x == DenseOrder::row_major ? column * rhs_.count + j : column + j * matrix_.cols;
            const double term = static_cast<double>(static_cast<A>(matrix_.values[k])) * table_.at(at);
            sum += term, absolute += std::abs(term);
          }
          const double bound = 2 * unit_roundoff(input_.type()) * (static_cast<double>(end - begin) + 2) * absolute;
          wrong += !(std::abs(y[static_cast<std::size_t>((i - first) * columns + j)] - sum) <= bound);
        }
      }
    });
  }
  return wrong;
}

SpmmResult SpmmTrial::measure(const SpmmPlan& plan) {
  Stream& stream = input_.stream();
  const auto product = [&] {
    plan.multiply(1, x_.data(), leading(rhs_.x, matrix_.cols), 0, y_.data(), leading(rhs_.y, matrix_.rows), stream);
  };
  SpmmResult result;
  result.kernel = plan.kernel;
  result.policy = plan.tunables();
  result.format_bytes = plan.storage().bytes;
  if (options_.verify) {
    fill_bytes(y_.data(), 0xff, y_.bytes(), stream);  // NaN
    product();
    result.wrong = count_wrong();
  }
  TimingOptions timing;
  timing.repetitions = options_.repetitions;
  timing.warm_up_seconds = kUsualWarmUp;
  timing.most_seconds = kMostSeconds;
  timing.flush = options_.flush;
  result.timing = time_work(product, stream, timing);
  return result;
}

}  // namespace shardmat::tools
