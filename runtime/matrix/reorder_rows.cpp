#include "runtime/matrix/reorder_rows.h"

#include <algorithm>
#include <span>

#include "kernels/base/memory_limits.h"

namespace shardmat {
namespace {

/// Where each row of an order begins in an array of their entries, and the end.
HostVector<std::int64_t> offsets_in_order(const HostVector<std::int64_t>& row_ptr, std::span<const std::int64_t> order) {
  HostVector<std::int64_t> offsets(order.size() + 1);
  offsets[0] = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto row = static_cast<std::size_t>(order[i]);
    offsets[i + 1] = offsets[i] + row_ptr[row + 1] - row_ptr[row];
  }
  return offsets;
}

/// Sorts the entries of all rows in place. Those of the first `kept` rows are not copied aside.
template <class Entry>
void move_entries(std::span<Entry> entries, const HostVector<std::int64_t>& row_ptr, const HostVector<std::int64_t>& order,
                  const HostVector<std::int64_t>& offsets, std::size_t kept_rows) {
  const auto copy_row = [&](std::size_t i, Entry* to) {
    const auto row = static_cast<std::size_t>(order[i]);
    std::copy(entries.begin() + row_ptr[row], entries.begin() + row_ptr[row + 1], to);
  };
  const std::int64_t kept = offsets[kept_rows];
  HostVector<Entry> taken(entries.size() - static_cast<std::size_t>(kept));
  for (std::size_t i = kept_rows; i < order.size(); ++i) copy_row(i, taken.data() + (offsets[i] - kept));
  for (std::size_t i = 0; i < kept_rows; ++i) copy_row(i, entries.data() + offsets[i]);
  std::copy(taken.begin(), taken.end(), entries.begin() + kept);
}

}  // namespace

HostVector<std::int64_t> in_order(const HostVector<std::int64_t>& from, const HostVector<std::int64_t>& order) {
  HostVector<std::int64_t> to(from.size());
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[static_cast<std::size_t>(order[i])];
  return to;
}

void reorder_rows(CompactCsr& part, const HostVector<std::int64_t>& order, std::int64_t kept) {
  HostVector<std::int64_t> offsets = offsets_in_order(part.row_ptr, order);
  const std::int64_t copied = part.nnz() - offsets[static_cast<std::size_t>(kept)];
  require_host_memory(8 * copied + 16 * part.rows, "this rank's rows in another order");
  part.change_columns(
      [&](auto columns) { move_entries(columns, part.row_ptr, order, offsets, static_cast<std::size_t>(kept)); });
  part.change_values(
      [&](auto values) { move_entries(values, part.row_ptr, order, offsets, static_cast<std::size_t>(kept)); });
  part.row_ptr.swap(offsets);
}

}  // namespace shardmat
