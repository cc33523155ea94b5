// Rows ordered by all ranks and read by rank 0, against the same done by one process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "kernels/matrix/adjacency.h"
#include "kernels/matrix/ordering.h"
#include "partition/source/permuted_source.h"
#include "runtime/order/distributed_graph.h"
#include "runtime/order/distributed_order.h"
#include "runtime/order/placed_rows.h"
#include "runtime/order/rows_on_rank_0.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

std::vector<test::NamedMatrix> square_zoo() {
  std::vector<test::NamedMatrix> zoo = test::matrix_zoo();
  std::erase_if(zoo, [](const test::NamedMatrix& m) { return m.matrix.rows != m.matrix.cols; });
  return zoo;
}

std::unique_ptr<RowSource> source_of(const HostCsr& matrix) {
  return make_memory_source(std::make_shared<const HostCsr>(matrix), "test");
}

HostVector<std::int64_t> shuffled(std::int64_t rows) {
  HostVector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(3));
  return order;
}

/// What rank 0 reads from all ranks is what one process makes of this order, in whatever ranges; empty if so.
std::string difference(const PlacedRows& placed, const RowSource& original, const HostVector<std::int64_t>& order) {
  const auto expected = make_reordered_source(original, order, read_row_pointers(original), RowOrder::graph);
  std::string wrong;
  read_all_on_rank_0(placed, "test", world(), [&](const RowSource& found) {
    const std::int64_t rows = expected->rows();
    if (found.rows() != rows || found.cols() != expected->cols() || found.row_order() != RowOrder::graph) wrong += " shape";
    for (const auto& [begin, end] :
         {std::pair{std::int64_t{0}, rows}, {rows / 3, rows}, {rows / 2, rows / 2}, {0, rows / 2}}) {
      const HostCsr a = found.read_rows(begin, end), b = expected->read_rows(begin, end);
      if (a.row_ptr != b.row_ptr || a.col_idx != b.col_idx || a.values != b.values) wrong += fmt::format(" rows {}", begin);
      if (found.row_lengths(begin, end) != expected->row_lengths(begin, end)) wrong += fmt::format(" lengths {}", begin);
      if (found.permutation(begin, end) != expected->permutation(begin, end)) wrong += fmt::format(" permutation {}", begin);
    }
  });
  return wrong;
}

TEST(DistributedGraph, is_this_ranks_part_of_the_graph) {
  for (const auto& [name, matrix] : square_zoo()) {
    const auto source = source_of(matrix);
    const RowShare share = take_share(*source, world());
    const GraphShare graph = graph_of(share, world());
    const Adjacency whole = adjacency_of(matrix.view());
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      const auto i = static_cast<std::size_t>(row - share.begin);
      const std::vector<std::int64_t> found(graph.neighbour.begin() + graph.first[i],
                                            graph.neighbour.begin() + graph.first[i + 1]);
      const auto expected = whole.of(static_cast<Adjacency::Vertex>(row));
      EXPECT_EQ(found, std::vector<std::int64_t>(expected.begin(), expected.end())) << name << ", row " << row;
    }
  }
}

TEST(PlacedRows, are_those_of_one_process) {
  for (const auto& [name, matrix] : square_zoo()) {
    const auto memory = source_of(matrix);
    const auto sorted = make_length_sorted_source(*memory, read_row_pointers(*memory));
    for (const RowSource* source : {memory.get(), sorted.get()}) {  // orders compose
      const auto order = shuffled(matrix.rows), positions = invert_permutation(order);
      const RowShare share = take_share(*source, world());
      const PlacedRows placed = place_rows(
          share, std::span(positions).subspan(static_cast<std::size_t>(share.begin), static_cast<std::size_t>(share.rows())),
          world());
      EXPECT_EQ(difference(placed, *source, order), "") << name << ", " << shardmat::name(source->row_order());
    }
  }
}

TEST(PlacedRows, an_error_while_reading_them_is_every_ranks) {
  const auto source = source_of(square_zoo().back().matrix);
  const RowShare share = take_share(*source, world());
  HostVector<std::int64_t> positions(static_cast<std::size_t>(share.rows()));
  std::iota(positions.begin(), positions.end(), share.begin);
  const PlacedRows placed = place_rows(share, positions, world());
  const std::string error = error_of(ErrorKind::resources, [&] {
    read_all_on_rank_0(placed, "test", world(),
                       [](const RowSource&) { throw Error(ErrorKind::resources, "the disk is full"); });
  });
  EXPECT_NE(error.find("the disk is full"), std::string::npos) << error;
}

TEST(DistributedOrder, is_a_permutation_part_after_part) {
  if (!built_with_ptscotch() || world().size() == 1) GTEST_SKIP() << "needs PT-Scotch and several ranks";
  for (const auto& [name, matrix] : square_zoo())
    for (const int parts : {1, 3, 1000}) {
      const auto source = source_of(matrix);
      const RowShare share = take_share(*source, world());
      const HostVector<std::int64_t> mine = order_by_graph(share, world(), parts);
      std::vector<std::int64_t> all(static_cast<std::size_t>(matrix.rows), 0);
      std::copy(mine.begin(), mine.end(), all.begin() + share.begin);
      world().all_reduce(std::span<std::int64_t>(all), Reduction::sum);
      const auto order = invert_permutation(all);  // throws if it is none
      std::int64_t ends = 0;
      for (std::size_t i = 1; i < order.size(); ++i) ends += order[i] < order[i - 1];
      EXPECT_LT(ends, parts) << name;
    }
}

}  // namespace
}  // namespace shardmat
