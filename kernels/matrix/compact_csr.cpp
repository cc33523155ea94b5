#include "kernels/matrix/compact_csr.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kNarrowCols = std::int64_t{1} << 31;
constexpr std::int64_t kGrain = 1 << 16;

}  // namespace

std::int64_t CompactCsr::entry_bytes(std::int64_t cols, ValueType type) {
  return (cols > kNarrowCols ? 8 : 4) + (type == ValueType::f32 ? 4 : 8);
}

CompactCsr::CompactCsr(std::int64_t columns_of_matrix, HostVector<std::int64_t> offsets, ValueType type)
    : rows(std::ssize(offsets) - 1),
      cols(columns_of_matrix),
      row_ptr(std::move(offsets)),
      wide_columns_(cols > kNarrowCols),
      wide_values_(type != ValueType::f32) {
  const auto count = static_cast<std::size_t>(nnz());
  auto arrays = std::make_shared<Arrays>();
  arrays->columns = Buffer(Device{}, count * (wide_columns_ ? 8 : 4));
  arrays->values = Buffer(Device{}, count * (wide_values_ ? 8 : 4));
  arrays_ = std::move(arrays);
}

CompactCsr::CompactCsr(const CsrView& matrix, ValueType type)
    : CompactCsr(matrix.cols, HostVector<std::int64_t>(matrix.row_ptr.begin(), matrix.row_ptr.end()), type) {
  const std::int64_t first = row_ptr.front();
  for (std::int64_t& offset : row_ptr) offset -= first;
  const auto copy = [](const auto& from, auto to) {
    using To = std::remove_reference_t<decltype(to[0])>;
    from.visit([&](const auto& numbers) {
      parallel_ranges(std::ssize(to), kGrain, [&](std::int64_t begin, std::int64_t end) {
        std::transform(numbers.begin() + begin, numbers.begin() + end, to.begin() + begin,
                       [](auto number) { return static_cast<To>(number); });
      });
    });
  };
  change_columns([&](auto columns) { copy(matrix.col_idx, columns); });
  change_values([&](auto values) { copy(matrix.values, values); });
}

ColumnView CompactCsr::columns() const {
  const auto count = static_cast<std::size_t>(arrays_ == nullptr ? 0 : nnz());
  if (wide_columns_) return {ColumnPointer(column_data<std::int64_t>()), count};
  return {ColumnPointer(column_data<std::int32_t>()), count};
}

ValueView CompactCsr::values() const {
  const auto count = static_cast<std::size_t>(arrays_ == nullptr ? 0 : nnz());
  if (wide_values_) return {ValuePointer(value_data<double>()), count};
  return {ValuePointer(value_data<float>()), count};
}

std::int64_t CompactCsr::bytes() const {
  const auto of_arrays = arrays_ == nullptr ? 0 : arrays_->columns.bytes() + arrays_->values.bytes();
  return static_cast<std::int64_t>(8 * row_ptr.size() + of_arrays);
}

void CompactCsr::clear() {
  row_ptr = HostVector<std::int64_t>();
  arrays_.reset();
}

}  // namespace shardmat
