#include "runtime/order/placed_rows.h"

#include <algorithm>
#include <numeric>

#include "comm/items_by_rank.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

struct Place {
  std::int64_t position, length, original;
};

/// Everything but columns and values, for which there is room then.
PlacedRows make_room(const RowShare& share, std::span<const std::int64_t> position, Communicator& communicator) {
  PlacedRows placed;
  placed.starts = share.starts;
  const auto away = communicator.run_agreed([&] {
    require_host_memory(56 * share.rows(), "the new places of this rank's rows");
    const auto originals = share.source.permutation(share.begin, share.end);
    std::vector<Place> places;
    places.reserve(position.size());
    for (std::size_t i = 0; i < position.size(); ++i) places.push_back({position[i], share.lengths[i], originals[i]});
    return sort_by_rank<Place>(places, communicator.size(),
                               [&](const Place& place) { return owner_of(placed.starts, place.position); });
  });
  const ItemsByRank<Place> places = send_items(communicator, away);
  communicator.run_agreed([&] {
    const auto rows = places.items.size();
    require_host_memory(16 * static_cast<std::int64_t>(rows + 1), "the rows of this rank in their new order");
    placed.rows.rows = static_cast<std::int64_t>(rows), placed.rows.cols = share.source.cols();
    placed.rows.row_ptr.resize(rows + 1);
    placed.originals.resize(rows);
    for (const Place& place : places.items) {
      const auto i = static_cast<std::size_t>(place.position - share.begin);  // ranks have as many new rows as old ones
      placed.rows.row_ptr[i + 1] = place.length;
      placed.originals[i] = place.original;
    }
    placed.rows.row_ptr[0] = 0;
    std::partial_sum(placed.rows.row_ptr.begin(), placed.rows.row_ptr.end(), placed.rows.row_ptr.begin());
    require_host_memory(16 * placed.rows.nnz(), "the rows of this rank in their new order");
    placed.rows.col_idx.resize(static_cast<std::size_t>(placed.rows.nnz()));
    placed.rows.values.resize(static_cast<std::size_t>(placed.rows.nnz()));
  });
  return placed;
}

/// The new positions of the columns of some rows, asked of the ranks in whose shares they are.
HostVector<std::int64_t> new_columns(const RowShare& share, std::span<const std::int64_t> position,
                                     const HostVector<std::int64_t>& columns, Communicator& communicator) {
  const ItemsByRank<std::int64_t> wanted = communicator.run_agreed([&] {
    ItemsByRank<std::int64_t> result{{}, columns};
    std::sort(result.items.begin(), result.items.end());
    result.items.erase(std::unique(result.items.begin(), result.items.end()), result.items.end());
    auto from = result.items.begin();
    for (std::size_t rank = 0; rank + 1 < share.starts.size(); ++rank) {
      const auto to = std::lower_bound(from, result.items.end(), share.starts[rank + 1]);
      result.counts.push_back(to - from);
      from = to;
    }
    return result;
  });
  ItemsByRank<std::int64_t> asked = send_items(communicator, wanted);
  for (std::int64_t& column : asked.items) column = position[static_cast<std::size_t>(column - share.begin)];
  const HostVector<std::int64_t> found = send_items(communicator, asked).items;
  return communicator.run_agreed([&] {
    HostVector<std::int64_t> result(columns.size());
    parallel_ranges(std::ssize(columns), 1 << 16, [&](std::int64_t lo, std::int64_t hi) {
      for (auto k = static_cast<std::size_t>(lo); k < static_cast<std::size_t>(hi); ++k)
        result[k] = found[static_cast<std::size_t>(std::lower_bound(wanted.items.begin(), wanted.items.end(), columns[k]) -
                                                   wanted.items.begin())];
    });
    return result;
  });
}

struct RowsByRank {
  ItemsByRank<std::int64_t> numbers;  ///< of each row its position, then its columns
  ItemsByRank<double> values;
};

RowsByRank pack(const HostCsr& rows, std::span<const std::int64_t> columns, std::span<const std::int64_t> position,
                const PlacedRows& placed) {
  std::vector<std::int64_t> order(position.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto ranks = static_cast<int>(placed.starts.size()) - 1;
  const auto owner = [&](std::int64_t i) { return owner_of(placed.starts, position[static_cast<std::size_t>(i)]); };
  const ItemsByRank<std::int64_t> sorted = sort_by_rank<std::int64_t>(order, ranks, owner);
  RowsByRank items{{std::vector<std::int64_t>(sorted.counts.size()), {}},
                   {std::vector<std::int64_t>(sorted.counts.size()), {}}};
  items.numbers.items.reserve(position.size() + columns.size());
  items.values.items.reserve(columns.size());
  for (const std::int64_t i : sorted.items) {
    const auto begin = rows.row_ptr[static_cast<std::size_t>(i)], end = rows.row_ptr[static_cast<std::size_t>(i) + 1];
    const auto rank = static_cast<std::size_t>(owner(i));
    items.numbers.counts[rank] += 1 + end - begin;
    items.values.counts[rank] += end - begin;
    items.numbers.items.push_back(position[static_cast<std::size_t>(i)]);
    items.numbers.items.insert(items.numbers.items.end(), columns.begin() + begin, columns.begin() + end);
    items.values.items.insert(items.values.items.end(), rows.values.begin() + begin, rows.values.begin() + end);
  }
  return items;
}

void unpack(const RowsByRank& items, std::int64_t first_row, HostCsr& rows) {
  auto value = items.values.items.begin();
  for (auto number = items.numbers.items.begin(); number != items.numbers.items.end();) {
    const auto row = static_cast<std::size_t>(*number++ - first_row);
    const std::int64_t to = rows.row_ptr[row], length = rows.row_ptr[row + 1] - to;
    std::copy_n(number, length, rows.col_idx.begin() + to);
    std::copy_n(value, length, rows.values.begin() + to);
    number += length, value += length;
  }
}

}  // namespace

PlacedRows place_rows(const RowShare& share, std::span<const std::int64_t> position, Communicator& communicator) {
  PlacedRows placed = make_room(share, position, communicator);
  for_each_round(share, communicator, [&](std::int64_t first_row, const HostCsr& rows) {
    const auto columns = new_columns(share, position, rows.col_idx, communicator);
    const RowsByRank away = communicator.run_agreed([&] {
      return pack(rows, columns,
                  position.subspan(static_cast<std::size_t>(first_row - share.begin), static_cast<std::size_t>(rows.rows)),
                  placed);
    });
    unpack({send_items(communicator, away.numbers), send_items(communicator, away.values)}, share.begin, placed.rows);
  });
  communicator.run_agreed([&] { sort_rows_and_sum_duplicates(placed.rows); });  // there are none, so it sorts only
  return placed;
}

}  // namespace shardmat
