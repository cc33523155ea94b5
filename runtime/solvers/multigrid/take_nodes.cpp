#include "runtime/solvers/multigrid/take_nodes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/base/memory_limits.h"
#include "runtime/solvers/multigrid/form_rows.h"

namespace shardmat::multigrid {
namespace {

/// What stands in a place of x: the number of its row among all rows, in the order of the source.
struct Column {
  std::int64_t row;  ///< -1: no entry
  bool held;
};

HostVector<Column> columns_of(const DistributedMatrix& matrix, const HeldRows* held) {
  Communicator& ranks = matrix.context().communicator();
  HostVector<double> own = ranks.run_agreed([&] {
    const RowMap& map = *matrix.y_rows();
    const auto first = static_cast<double>(map.starts()[at(ranks.rank())]);
    HostVector<double> numbers(at(map.local_rows()));  // from 1; below 0 if held
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + static_cast<double>(map.place(i)) + 1;
    if (held != nullptr)
      for (const std::int64_t row : held->rows()) numbers[at(row)] *= -1;
    return numbers;
  });
  const HostVector<double> moved = matrix.column_values(own);
  return ranks.run_agreed([&] {
    HostVector<Column> columns(moved.size());
    std::transform(moved.begin(), moved.end(), columns.begin(), [](double number) {
      return Column{static_cast<std::int64_t>(std::abs(number)) - 1, number < 0};
    });
    return columns;
  });
}

std::vector<std::int64_t> divided(std::vector<std::int64_t> starts, std::int64_t size) {
  for (std::int64_t& start : starts) start /= size;
  return starts;
}

}  // namespace

NodeRows take_nodes(DistributedMatrix& matrix, int size, const HeldRows* held, Stream& stream) {
  Communicator& ranks = matrix.context().communicator();
  const HostVector<Column> columns = columns_of(matrix, held);
  const RowMap& map = *matrix.y_rows();
  const std::vector<std::int64_t> starts = divided(map.starts(), size);
  HostVector<std::int64_t> ghosts;
  const CsrView csr = ranks.run_agreed([&] {
    const std::int64_t first = starts[at(ranks.rank())], end = starts[at(ranks.rank()) + 1];
    for (const Column& column : columns)
      if (column.row >= 0 && (column.row / size < first || column.row / size >= end)) ghosts.push_back(column.row / size);
    std::sort(ghosts.begin(), ghosts.end());
    ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
    return matrix.host_rows(stream);
  });
  const auto nodes = std::make_shared<const Nodes>(starts, std::move(ghosts), ranks);
  NodeRows out{size, size, nodes, nodes, {}, {}, {}};
  ranks.run_agreed([&] {
    const std::int64_t places = std::ssize(columns);
    const HostVector<std::int64_t> rows = map.rows_by_place();
    // Of each entry of x: its node, -1 if it has none or its column is left out, and its unknown of the node.
    HostVector<std::int32_t> node_of(at(places)), unknown(at(places));
    parallel_ranges(places, 1 << 12, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t j = begin; j < end; ++j) {
        const Column& column = columns[at(j)];
        const bool taken = column.row >= 0 && !column.held;
        node_of[at(j)] = taken ? nodes->local(column.row / size) : -1;
        unknown[at(j)] = taken ? static_cast<std::int32_t>(column.row % size) : 0;
      }
    });
    HostVector<char> is_held(at(map.local_rows()), 0);
    if (held != nullptr)
      for (const std::int64_t row : held->rows()) is_held[at(row)] = 1;
    csr.col_idx.visit([&](const auto& places_of_entries) {
      const auto each_entry = [&](std::int64_t row, auto use) {
        if (is_held[at(row)] != 0) return;
        for (std::int64_t k = csr.row_ptr[at(row)] - csr.row_ptr[0]; k < csr.row_ptr[at(row) + 1] - csr.row_ptr[0]; ++k) {
          const auto place = at(places_of_entries[at(k)]);
          if (node_of[place] >= 0) use(k, node_of[place], unknown[place]);
        }
      };
      /// The rows of a node have the same columns as the row before, as those of elements.
      const auto as_before = [&](std::int64_t row, std::int64_t before) {
        const std::int64_t length = csr.row_ptr[at(row) + 1] - csr.row_ptr[at(row)];
        if (length != csr.row_ptr[at(before) + 1] - csr.row_ptr[at(before)] || is_held[at(row)] != is_held[at(before)])
          return false;
        const auto first = places_of_entries.begin() + (csr.row_ptr[at(row)] - csr.row_ptr[0]);
        return std::equal(first, first + length, places_of_entries.begin() + (csr.row_ptr[at(before)] - csr.row_ptr[0]));
      };
      const auto row_of = [&](std::int64_t node, int r) { return rows[at(node * size + r)]; };
      form_pattern(
          nodes->own(), nodes->local_count(),
          [&](std::int64_t node, auto use) {
            for (int r = 0; r < size; ++r)
              if (r == 0 || !as_before(row_of(node, r), row_of(node, r - 1)))
                each_entry(row_of(node, r), [&](std::int64_t, std::int32_t column, std::int32_t) { use(column); });
            use(static_cast<std::int32_t>(node));  // a diagonal block in any case
          },
          out);
      const std::int64_t entries = out.block_entries();
      require_host_memory(out.start.back() * entries * 8, "the rows of multigrid's finest level");
      out.value.resize(at(out.start.back() * entries));
      csr.values.visit([&](const auto& values) {
        parallel_ranges(out.count(), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
          std::vector<double*> block(at(nodes->local_count()));
          for (std::int64_t i = begin; i < end; ++i) {
            std::fill_n(out.block(out.start[at(i)]), (out.start[at(i) + 1] - out.start[at(i)]) * entries, 0.0);
            for (std::int64_t k = out.start[at(i)]; k < out.start[at(i) + 1]; ++k)
              block[at(out.column[at(k)])] = out.block(k);
            for (int r = 0; r < size; ++r) {
              each_entry(row_of(i, r), [&](std::int64_t k, std::int32_t column, std::int32_t c) {
                block[at(column)][r * size + c] = values[at(k)];
              });
              if (is_held[at(row_of(i, r))] != 0) block[at(i)][r * size + r] = 1;
            }
          }
        });
      });
    });
  });
  return out;
}

}  // namespace shardmat::multigrid
