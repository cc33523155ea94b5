#include "partition/batched/batch_body.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
std::span<const T> array(const std::byte* bytes, std::uint64_t offset, std::int64_t count) {
  return {reinterpret_cast<const T*>(bytes + offset), place(count)};
}

std::string fault_of(const char* what, std::span<const std::int64_t> offsets, std::int64_t end, const char* end_name) {
  if (offsets.front() != 0) return fmt::format("{} begins with {}, not with 0", what, offsets.front());
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] < offsets[i - 1])
      return fmt::format("{} decreases from {} to {} at {}; it must ascend", what, offsets[i - 1], offsets[i], i);
  if (offsets.back() != end)
    return fmt::format("{} ends with {}, but the request says {}={}", what, offsets.back(), end_name, end);
  return {};
}

}  // namespace

BatchBody::BatchBody(const BatchShape& shape, std::span<const std::byte> bytes)
    : shape_(shape),
      bytes_(bytes.data()),
      first_row_(array<std::int64_t>(bytes_, 0, shape.count + 1)),
      first_col_(array<std::int64_t>(bytes_, shape.first_col(), shape.count + 1)),
      row_ptr_(array<std::int64_t>(bytes_, shape.row_ptr(), shape.rows + 1)),
      col_idx_(array<std::int32_t>(bytes_, shape.column_indices(), shape.nnz)) {}

std::string BatchBody::fault_of_offsets() const {
  if (auto fault = fault_of("first_row", first_row_, shape_.rows, "rows"); !fault.empty()) return fault;
  if (auto fault = fault_of("first_column", first_col_, shape_.cols, "cols"); !fault.empty()) return fault;
  if (row_ptr_.front() != 0) return fmt::format("row_ptr begins with {}, not with 0", row_ptr_.front());
  if (row_ptr_.back() != shape_.nnz)
    return fmt::format("row_ptr ends with {}, but the request says nnz={}", row_ptr_.back(), shape_.nnz);
  for (std::int64_t i = 0; i < shape_.count; ++i) {
    const std::int64_t begin = row_ptr_[place(first_row_[place(i)])], end = row_ptr_[place(first_row_[place(i) + 1])];
    if (begin < 0 || end < begin || end > shape_.nnz)
      return fmt::format("row_ptr of matrix {} goes from {} to {}; it must ascend, and stay within {} entries", i, begin,
                         end, shape_.nnz);
  }
  return {};
}

std::int64_t BatchBody::weight(std::int64_t matrix) const {
  const std::int64_t first = first_row_[place(matrix)], end = first_row_[place(matrix) + 1];
  return row_ptr_[place(end)] - row_ptr_[place(first)] + end - first;
}

BatchBody::Sizes BatchBody::sizes(std::int64_t begin, std::int64_t end) const {
  const std::int64_t first_row = first_row_[place(begin)], end_row = first_row_[place(end)];
  return {end - begin, end_row - first_row, first_col_[place(end)] - first_col_[place(begin)],
          row_ptr_[place(end_row)] - row_ptr_[place(first_row)]};
}

BatchView BatchBody::view(std::int64_t begin, std::int64_t end, HostVector<double>& values) const {
  const std::int64_t first_row = first_row_[place(begin)], end_row = first_row_[place(end)];
  const std::int64_t first = row_ptr_[place(first_row)], last = row_ptr_[place(end_row)];
  values.resize(place(last - first));
  dispatch(shape_.type, [&]<class T>(TypeTag<T>) {
    const T* from = reinterpret_cast<const T*>(bytes_ + shape_.values()) + first;
    std::transform(from, from + (last - first), values.begin(), [](T value) { return static_cast<double>(value); });
  });
  const std::size_t matrices = place(end - begin) + 1;
  return {first_row_.subspan(place(begin), matrices), first_col_.subspan(place(begin), matrices),
          row_ptr_.subspan(place(first_row), place(end_row - first_row) + 1),
          col_idx_.subspan(place(first), place(last - first)), values};
}

}  // namespace shardmat
