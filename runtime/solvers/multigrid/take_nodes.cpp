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

std::vector<std::int64_t> multiplied(std::vector<std::int64_t> starts, std::int64_t size) {
  for (std::int64_t& start : starts) start *= size;
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

std::unique_ptr<DistributedMatrix> make_matrix(const NodeRows& m, Context& context, MatrixOptions options) {
  Communicator& ranks = context.communicator();
  LoadedPart part;
  const std::int64_t local_nnz = m.blocks() * m.block_entries();
  part.rows = m.rows->all() * m.row_size;
  part.cols = m.cols->all() * m.col_size;
  part.nnz = ranks.all_reduce(local_nnz, Reduction::sum);
  part.partition_origin = "given";
  part.node_block_size = m.row_size;
  part.node_block_origin = "given";
  ranks.run_agreed([&] {
    const std::int64_t rows = m.count() * m.row_size;
    const RowMap* const map = options.y_rows.get();
    part.y.size = part.rows;
    part.y.starts = multiplied(m.rows->starts(), m.row_size);
    part.first_row = part.y.starts[at(ranks.rank())];
    if (map != nullptr) {
      part.y.ids = map->ids(), part.y.places = map->places();
    } else {
      part.y.ids.resize(at(rows));
      std::iota(part.y.ids.begin(), part.y.ids.end(), part.first_row);
    }
    if (!part.square()) {
      part.x.size = part.cols;
      part.x.starts = multiplied(m.cols->starts(), m.col_size);
      if (const RowMap* const x = options.x_rows.get()) {
        part.x.ids = x->ids(), part.x.places = x->places();
      } else {
        part.x.ids.resize(at(m.cols->own() * m.col_size));
        std::iota(part.x.ids.begin(), part.x.ids.end(), part.x.starts[at(ranks.rank())]);
      }
    }
    HostVector<std::int64_t> offsets(at(rows + 1)), nodes(at(rows));
    part.value_starts.resize(at(rows));
    offsets[0] = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t place = part.y.place(at(i)), node = place / m.row_size;
      const std::int64_t blocks = m.start[at(node) + 1] - m.start[at(node)];
      offsets[at(i) + 1] = offsets[at(i)] + blocks * m.col_size;
      part.value_starts[at(i)] = m.start[at(node)] * m.block_entries() + (place % m.row_size) * blocks * m.col_size;
    }
    part.csr = CompactCsr(part.cols, std::move(offsets), options.type);
    const auto fill = [&](auto columns, auto values) {
      using Column = typename decltype(columns)::value_type;
      using Value = typename decltype(values)::value_type;
      parallel_ranges(rows, kRowGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t place = part.y.place(at(i)), node = place / m.row_size, r = place % m.row_size;
          std::size_t to = at(part.csr.row_ptr[at(i)]);
          for (std::int64_t k = m.start[at(node)]; k < m.start[at(node) + 1]; ++k) {
            const std::int64_t first = m.cols->global(m.column[at(k)]) * m.col_size;
            for (int c = 0; c < m.col_size; ++c, ++to)
              columns[to] = static_cast<Column>(first + c), values[to] = static_cast<Value>(m.block(k)[r * m.col_size + c]);
          }
        }
      });
    };
    part.csr.change_columns([&](auto columns) { part.csr.change_values([&](auto values) { fill(columns, values); }); });
  });
  return std::make_unique<DistributedMatrix>(std::move(part), context, options);
}

}  // namespace shardmat::multigrid
