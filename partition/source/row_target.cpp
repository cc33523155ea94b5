#include "partition/source/row_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

/// The values of a row, narrowed where the target is. `place`: of the first one in the target.
template <class From, class To>
void put_values(std::span<const From> from, To* to, std::int64_t place, double limit, ValueType type,
                const std::string& source) {
  bool fits = true;
  for (std::size_t k = 0; k < from.size(); ++k) {
    const auto value = static_cast<double>(from[k]);
    fits = fits && !(std::abs(value) >= limit && std::isfinite(value));
    to[place + static_cast<std::int64_t>(k)] = static_cast<To>(value);
  }
  if (fits) return;
  for (std::size_t k = 0; k < from.size(); ++k)
    if (const auto value = static_cast<double>(from[k]); std::abs(value) >= limit && std::isfinite(value))
      refuse_out_of_range(type, place + static_cast<std::int64_t>(k), value, fmt::format("the values of {}", source));
}

}  // namespace

void require_lengths(std::span<const std::int64_t> row_ptr, std::int64_t first, std::int64_t first_row,
                     const RowTarget& target, const std::string& source) {
  for (std::size_t i = 0; i + 1 < row_ptr.size(); ++i) {
    const std::size_t row = static_cast<std::size_t>(first) + i;
    if (const std::int64_t length = row_ptr[i + 1] - row_ptr[i]; length != target.lengths[row])
      throw Error(ErrorKind::input,
                  fmt::format("{}: row {} has {} nonzeros but was counted with {}; the file changed or "
                              "is damaged",
                              source, first_row + static_cast<std::int64_t>(row), length, target.lengths[row]));
  }
}

void put_rows(const CsrView& slice, std::int64_t first, std::int64_t first_row, const RowTarget& target,
              const std::string& source) {
  require_lengths(slice.row_ptr, first, first_row, target, source);
  const double limit = least_out_of_range(target.type);
  target.visit([&](auto* columns, auto* values) {
    slice.col_idx.visit([&](const auto& from_columns) {
      slice.values.visit([&](const auto& from_values) {
        parallel_ranges(slice.rows, 1 << 10, [&](std::int64_t begin, std::int64_t end) {
          for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
            const auto from = static_cast<std::size_t>(slice.row_ptr[i] - slice.row_ptr[0]);
            const auto length = static_cast<std::size_t>(slice.row_ptr[i + 1] - slice.row_ptr[i]);
            const std::int64_t place = target.places[static_cast<std::size_t>(first) + i];
            std::transform(from_columns.begin() + static_cast<std::ptrdiff_t>(from),
                           from_columns.begin() + static_cast<std::ptrdiff_t>(from + length), columns + place,
                           [](auto column) { return static_cast<std::remove_pointer_t<decltype(columns)>>(column); });
            put_values(from_values.subspan(from, length), values, place, limit, target.type, source);
          }
        });
      });
    });
  });
}

}  // namespace shardmat
