#include "runtime/solvers/multigrid/take_nodes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include "kernels/base/memory_limits.h"
#include "kernels/matrix/csr.h"
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

/// Terms of a row: a 1 on the diagonal, or entries that lie one after another.
struct OneOfIdentity {};
struct Entries {
  std::int64_t begin, end;
};

std::vector<std::int64_t> divided(std::vector<std::int64_t> starts, std::int64_t size) {
  for (std::int64_t& start : starts) start /= size;
  return starts;
}

}  // namespace

HostVector<std::int64_t> rows_of_columns(const DistributedMatrix& matrix) {
  HostVector<std::int64_t> rows;
  for (const Column& column : columns_of(matrix, nullptr)) rows.push_back(column.row);
  return rows;
}

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
    require_host_memory(csr.row_ptr[at(map.local_rows())] * 8 * 3 / 2, "the rows of multigrid's finest level");
    csr.col_idx.visit([&](const auto& places_of_entries) {
      csr.values.visit([&](const auto& values) {
        // Entries of a row that lie in one node are terms together.
        const auto each_term = [&](std::int64_t node, auto use) SHARDMAT_INLINE_LAMBDA {
          for (int r = 0; r < size; ++r) {
            const std::int64_t row = rows[at(node * size + r)];
            if (is_held[at(row)] != 0) {
              use(static_cast<std::int32_t>(node), r, OneOfIdentity());
              continue;
            }
            const std::int64_t end = csr.row_ptr[at(row) + 1] - csr.row_ptr[0];
            for (std::int64_t k = csr.row_ptr[at(row)] - csr.row_ptr[0]; k < end;) {
              const std::int64_t first = k;
              const std::int32_t of_column = node_of[at(places_of_entries[at(k)])];
              while (++k < end && node_of[at(places_of_entries[at(k)])] == of_column) {
              }
              if (of_column >= 0) use(of_column, r, Entries{first, k});
            }
          }
          use(static_cast<std::int32_t>(node), 0, Entries{0, 0});  // a diagonal block in any case
        };
        const auto add = [&](double* block, int r, auto what) SHARDMAT_INLINE_LAMBDA {
          if constexpr (std::is_same_v<decltype(what), OneOfIdentity>) {
            block[r * size + r] += 1;
          } else {
            for (std::int64_t k = what.begin; k < what.end; ++k)
              block[r * size + unknown[at(places_of_entries[at(k)])]] += static_cast<double>(values[at(k)]);
          }
        };
        form_rows(nodes->own(), nodes->local_count(), 4 * csr.nnz(), each_term, add, out);
      });
    });
  });
  return out;
}

}  // namespace shardmat::multigrid
