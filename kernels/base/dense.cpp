#include "kernels/base/dense.h"

#include <fmt/format.h>

#include <string>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

std::string text(std::int64_t rows, std::int64_t columns, ValueType type, Device device) {
  return fmt::format("{} × {} of {} on {}", rows, columns, name(type),
                     device.backend == Backend::host ? "the host" : fmt::format("GPU {}", device.ordinal));
}

}  // namespace

void require_dense(std::string_view what, const ConstDense& view, std::int64_t rows, std::int64_t columns, ValueType type,
                   Device device) {
  const bool same_device =
      view.device.backend == device.backend && (device.backend == Backend::host || view.device.ordinal == device.ordinal);
  if (view.rows != rows || view.columns != columns || view.type != type || !same_device)
    throw Error(ErrorKind::usage,
                fmt::format("{} is {}, but the product takes {}", what,
                            text(view.rows, view.columns, view.type, view.device), text(rows, columns, type, device)));
  const bool by_rows = view.order == DenseOrder::row_major;
  const std::int64_t least = by_rows ? columns : rows;
  if (view.leading < least || (columns == 1 && by_rows && view.leading != 1))
    throw Error(ErrorKind::usage,
                columns == 1
                    ? fmt::format("{} is one column with gaps (leading dimension {}); its entries must lie one after "
                                  "another",
                                  what, view.leading)
                    : fmt::format("the leading dimension of {} is {}, but its {} have {} entries", what, view.leading,
                                  by_rows ? "rows" : "columns", least));
  const std::int64_t lines = by_rows ? rows : columns;
  constexpr std::int64_t kAddresses = std::int64_t{1} << 47;  // of a process
  if (lines > 0 && view.leading > kAddresses / static_cast<std::int64_t>(size_of(type)) / lines)
    throw Error(ErrorKind::usage, fmt::format("the leading dimension of {} is {}, more than there are addresses for {} {}",
                                              what, view.leading, lines, by_rows ? "rows" : "columns"));
  if (view.data == nullptr && rows > 0) throw Error(ErrorKind::usage, fmt::format("{} has no memory (null pointer)", what));
}

}  // namespace shardmat
