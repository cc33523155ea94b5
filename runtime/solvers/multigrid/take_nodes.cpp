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
    const HostVector<std::int64_t> rows = map.rows_by_place();
    HostVector<std::int32_t> local(columns.size());
    for (std::size_t j = 0; j < columns.size(); ++j)
      local[j] = columns[j].row < 0 ? -1 : nodes->local(columns[j].row / size);
    const auto each = [&](std::int64_t node, auto use) {
      use(static_cast<std::int32_t>(node), -1, -1, 0.0);  // a diagonal block in any case
      for (int r = 0; r < size; ++r) {
        const std::int64_t row = rows[at(node * size + r)], number = (nodes->first() + node) * size + r;
        for (std::int64_t k = csr.row_ptr[at(row)]; k < csr.row_ptr[at(row) + 1]; ++k) {
          const std::int64_t place = csr.col_idx[at(k - csr.row_ptr[0])];
          const Column& column = columns[at(place)];
          if (column.held && column.row != number) continue;
          const double value = column.held ? 1 : csr.values[at(k - csr.row_ptr[0])];
          use(local[at(place)], r, static_cast<int>(column.row % size), value);
        }
      }
    };
    // A held row keeps its diagonal only.
    HostVector<char> is_held(at(map.local_rows()), 0);
    if (held != nullptr)
      for (const std::int64_t row : held->rows()) is_held[at(map.place(at(row)))] = 1;
    const auto kept = [&](std::int64_t node, auto use) {
      each(node, [&](std::int32_t column, int r, int c, double value) {
        if (r >= 0 && is_held[at(node * size + r)] != 0 && (column != node || c != r)) return;
        use(column, r, c, value);
      });
    };
    form_pattern(nodes->own(), nodes->local_count(), kept, out);
    const std::int64_t entries = out.block_entries();
    require_host_memory(out.start.back() * entries * 8, "the rows of multigrid's finest level");
    out.value.resize(at(out.start.back() * entries));
    parallel_ranges(out.count(), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::int64_t> place(at(nodes->local_count()));
      for (std::int64_t i = begin; i < end; ++i) {
        std::fill_n(out.block(out.start[at(i)]), (out.start[at(i) + 1] - out.start[at(i)]) * entries, 0.0);
        for (std::int64_t k = out.start[at(i)]; k < out.start[at(i) + 1]; ++k) place[at(out.column[at(k)])] = k;
        kept(i, [&](std::int32_t column, int r, int c, double value) {
          if (r >= 0) out.block(place[at(column)])[r * size + c] = value;
        });
      }
    });
  });
  return out;
}

}  // namespace shardmat::multigrid
