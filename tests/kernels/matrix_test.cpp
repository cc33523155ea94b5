#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/narrow.h"
#include "kernels/base/text.h"
#include "kernels/formats/csr.h"
#include "kernels/matrix/compact_csr.h"
#include "kernels/matrix/csr.h"
#include "kernels/matrix/halving.h"
#include "kernels/matrix/ordering.h"
#include "kernels/matrix/statistics.h"

namespace shardmat {
namespace {

HostCsr small() {
  HostCsr m;
  m.rows = 3;
  m.cols = 4;
  m.row_ptr = {0, 2, 2, 5};
  m.col_idx = {0, 3, 0, 1, 2};
  m.values = {1, 2, 3, 4, 5};
  return m;
}

std::string message_of(const HostCsr& m, const ValidationOptions& options = {}) {
  try {
    validate(m.view(), options);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    return e.what();
  }
  return {};
}

TEST(Csr, ValidMatrixPasses) { EXPECT_EQ(message_of(small()), ""); }

TEST(NumberView, ReadsBothWidths) {
  const std::vector<std::int64_t> wide{5, -3, 7, 7, 9};
  const std::vector<std::int32_t> narrow(wide.begin(), wide.end());
  for (const ColumnView& view : {ColumnView(wide), ColumnView(narrow)}) {
    EXPECT_EQ(view.is_narrow(), view.data().narrow() == narrow.data());
    EXPECT_TRUE(std::equal(view.begin(), view.end(), wide.begin(), wide.end()));
    EXPECT_EQ(view.front(), 5);
    EXPECT_EQ(view.back(), 9);
    const ColumnView part = view.subspan(1, 3);
    EXPECT_EQ(part.size(), 3u);
    EXPECT_EQ(part[0], -3);
    EXPECT_EQ(std::lower_bound(part.begin(), part.end(), 7) - part.begin(), 1);
    EXPECT_EQ(
        part.visit([](const auto& numbers) { return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0}); }),
        11);
  }
  EXPECT_TRUE(ColumnView().empty());
  EXPECT_EQ(ColumnView().visit([](const auto& numbers) { return numbers.size(); }), 0u);
}

TEST(CompactCsr, CopiesInTheNarrowestWidths) {
  HostCsr m = small();
  m.values[3] = 0.1;
  for (const ValueType type : {ValueType::f64, ValueType::f32, ValueType::bf16}) {
    const CompactCsr compact(m.view(), type);
    EXPECT_TRUE(compact.has_narrow_columns());
    EXPECT_EQ(compact.has_narrow_values(), type == ValueType::f32);
    EXPECT_EQ(compact.bytes(), 8 * 4 + 5 * CompactCsr::entry_bytes(4, type));
    EXPECT_TRUE(std::equal(m.col_idx.begin(), m.col_idx.end(), compact.columns().begin()));
    EXPECT_EQ(compact.values()[3], type == ValueType::f32 ? static_cast<double>(0.1f) : 0.1);
    const CompactCsr rows(m.view().rows_between(1, 3), type);
    EXPECT_EQ(rows.row_ptr, (HostVector<std::int64_t>{0, 0, 3}));
    EXPECT_EQ(rows.columns()[2], 2);
  }
  m.cols = (std::int64_t{1} << 31) + 1;
  m.col_idx[4] = m.cols - 1;
  const CompactCsr wide(m.view(), ValueType::f32);
  EXPECT_FALSE(wide.has_narrow_columns());
  EXPECT_EQ(wide.columns()[4], m.cols - 1);
  EXPECT_EQ(CompactCsr(HostCsr{}.view(), ValueType::f64).nnz(), 0);
}

TEST(CompactCsr, SharesItsArraysWithCsrOnly) {
  for (const ValueType type : {ValueType::f64, ValueType::f32}) {
    Stream stream(Device{});
    CompactCsr compact(small().view(), type);
    std::shared_ptr<Storage> shared, part, copied;
    {
      ConversionInput all(compact.shared_view(), type, stream), rows(compact.shared_view().rows_between(1, 3), type, stream),
          apart(compact.view(), type, stream);
      shared = convert_csr(all, {}), part = convert_csr(rows, {}), copied = convert_csr(apart, {});
      EXPECT_THROW(update_csr(*shared, all), Error);
      ConversionInput renewed(compact.shared_view(), type, stream);
      const std::vector<double> values{6, 7, 8, 9, 10};
      renewed.replace_values(values);
      EXPECT_FALSE(static_cast<const CsrStorage&>(*convert_csr(renewed, {})).values.is_shared());
      EXPECT_NO_THROW(update_csr(*copied, apart));
    }
    const auto& whole = static_cast<const CsrStorage&>(*shared);
    EXPECT_TRUE(whole.col_idx.is_shared() && whole.values.is_shared());
    EXPECT_EQ(whole.col_idx.data(), compact.columns().data().narrow());
    EXPECT_EQ(static_cast<const CsrStorage&>(*part).col_idx.as<std::int32_t>(), whole.col_idx.as<std::int32_t>() + 2);
    EXPECT_FALSE(static_cast<const CsrStorage&>(*copied).values.is_shared());
    compact.clear();  // the storages keep the arrays
    EXPECT_EQ(whole.col_idx.as<std::int32_t>()[4], 2);
    EXPECT_EQ(type == ValueType::f64 ? whole.values.as<double>()[4] : static_cast<double>(whole.values.as<float>()[4]), 5);
  }
}

TEST(Csr, CountsOccupiedColumns) {
  EXPECT_EQ(occupied_columns(HostCsr{}.view(), 0), 0);
  EXPECT_EQ(occupied_columns(small().view(), 4), 4);
  HostCsr m;  // columns 0, 3, 6, … and in the last row 1
  m.rows = 5000, m.cols = 15000;
  for (std::int64_t i = 0; i < m.rows; ++i) m.col_idx.push_back(3 * i), m.row_ptr.push_back(i + 1);
  m.col_idx.back() = 1;
  m.values.assign(m.col_idx.size(), 1.0);
  EXPECT_EQ(occupied_columns(m.view(), m.cols), 5000);
  EXPECT_EQ(occupied_columns(m.view(), 5000), 5000);
  EXPECT_EQ(occupied_columns(m.view().rows_between(10, 20), m.cols), 10);
}

TEST(Csr, EmptyMatrixPasses) { EXPECT_EQ(message_of(HostCsr{}), ""); }

TEST(Csr, NamesFirstWrongRow) {
  HostCsr m = small();
  m.col_idx[4] = 4;
  EXPECT_NE(message_of(m).find("row 2: column 4 is out of range"), std::string::npos);
  m.col_idx[1] = -1;
  EXPECT_NE(message_of(m).find("row 0: column -1"), std::string::npos);
  ValidationOptions options;
  options.first_row = 100;
  options.source = "bar.h5";
  EXPECT_NE(message_of(m, options).find("bar.h5: row 100"), std::string::npos);
}

TEST(Csr, RejectsUnsortedAndDuplicateColumns) {
  HostCsr m = small();
  std::swap(m.col_idx[2], m.col_idx[3]);
  EXPECT_NE(message_of(m).find("strictly increasing"), std::string::npos);
  m.col_idx[3] = m.col_idx[2];
  EXPECT_NE(message_of(m).find("strictly increasing"), std::string::npos);
}

TEST(Csr, NonfiniteOnlyWhenAllowed) {
  HostCsr m = small();
  m.values[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(message_of(m).find("row 2"), std::string::npos);
  ValidationOptions options;
  options.allow_nonfinite = true;
  EXPECT_EQ(message_of(m, options), "");
}

TEST(Csr, RejectsDecreasingPointersAndWrongSizes) {
  HostCsr m = small();
  m.row_ptr = {0, 3, 2, 5};
  EXPECT_NE(message_of(m).find("row 1 has a negative length"), std::string::npos);
  m = small();
  m.values.pop_back();
  EXPECT_NE(message_of(m).find("promise 5 nonzeros"), std::string::npos);
  m = small();
  m.row_ptr.pop_back();
  EXPECT_NE(message_of(m).find("row pointers"), std::string::npos);
}

TEST(Csr, SortsRowsAndSumsDuplicates) {
  HostCsr m;
  m.rows = 3;
  m.cols = 4;
  m.row_ptr = {0, 4, 4, 6};
  m.col_idx = {3, 0, 3, 1, 2, 0};
  m.values = {1, 2, 4, 8, 16, 32};
  sort_rows_and_sum_duplicates(m);
  EXPECT_EQ(m.row_ptr, (HostVector<std::int64_t>{0, 3, 3, 5}));
  EXPECT_EQ(m.col_idx, (HostVector<std::int64_t>{0, 1, 3, 0, 2}));
  EXPECT_EQ(m.values, (HostVector<double>{2, 8, 5, 32, 16}));
}

TEST(Statistics, CountsRows) {
  const RowStatistics s = row_statistics(small().row_ptr);
  EXPECT_EQ(s.rows, 3);
  EXPECT_EQ(s.nnz, 5);
  EXPECT_EQ(s.min_row, 0);
  EXPECT_EQ(s.max_row, 3);
  EXPECT_EQ(s.empty_rows, 1);
  EXPECT_DOUBLE_EQ(s.stddev_row, std::sqrt((1.0 / 9 + 25.0 / 9 + 16.0 / 9) / 3));
  EXPECT_EQ(row_statistics({}).rows, 0);
}

/// A square matrix of ones with these columns in its rows.
HostCsr pattern(std::int64_t n, const std::vector<std::vector<std::int64_t>>& rows) {
  HostCsr m{n, n, {0}, {}, {}};
  for (const auto& row : rows) {
    m.col_idx.insert(m.col_idx.end(), row.begin(), row.end());
    m.values.resize(m.col_idx.size(), 1.0);
    m.row_ptr.push_back(std::ssize(m.col_idx));
  }
  return m;
}

/// Largest distance of an entry from the diagonal, rows and columns in an order.
std::int64_t bandwidth(const HostCsr& m, std::span<const std::int64_t> order) {
  const auto place = invert_permutation(order);
  std::int64_t width = 0;
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t k = m.row_ptr[static_cast<std::size_t>(i)]; k < m.row_ptr[static_cast<std::size_t>(i) + 1]; ++k)
      width = std::max(width, std::abs(place[static_cast<std::size_t>(i)] -
                                       place[static_cast<std::size_t>(m.col_idx[static_cast<std::size_t>(k)])]));
  return width;
}

/// The 5-point stencil on length × width points, numbered at random; `below`: only the entries below the diagonal and on it.
HostCsr shuffled_grid(std::int64_t length, std::int64_t width, bool below) {
  const std::int64_t n = length * width;
  std::vector<std::int64_t> number(static_cast<std::size_t>(n));
  std::iota(number.begin(), number.end(), std::int64_t{0});
  std::shuffle(number.begin(), number.end(), std::mt19937(7));
  std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(n));
  const auto at = [&](std::int64_t x, std::int64_t y) { return number[static_cast<std::size_t>(x * width + y)]; };
  for (std::int64_t x = 0; x < length; ++x)
    for (std::int64_t y = 0; y < width; ++y)
      for (const auto& [dx, dy] : {std::pair{0, 0}, std::pair{1, 0}, std::pair{-1, 0}, std::pair{0, 1}, std::pair{0, -1}})
        if (x + dx >= 0 && x + dx < length && y + dy >= 0 && y + dy < width && (!below || at(x + dx, y + dy) <= at(x, y)))
          rows[static_cast<std::size_t>(at(x, y))].push_back(at(x + dx, y + dy));
  for (auto& row : rows) std::sort(row.begin(), row.end());
  return pattern(n, rows);
}

TEST(ReverseCuthillMcKee, FindsTheNarrowOrderOfAGrid) {
  const HostCsr m = shuffled_grid(200, 9, false);
  std::vector<std::int64_t> given(static_cast<std::size_t>(m.rows));
  std::iota(given.begin(), given.end(), std::int64_t{0});
  EXPECT_GT(bandwidth(m, given), 1000);
  const auto order = order_by_rcm(m.view());
  EXPECT_LE(bandwidth(m, order), 12);  // 9 is best
  EXPECT_EQ(order, order_by_rcm(m.view()));
  EXPECT_EQ(order, order_by_rcm(shuffled_grid(200, 9, true).view())) << "half of a symmetric pattern says the same";
}

TEST(ReverseCuthillMcKee, AnyShape) {
  EXPECT_TRUE(order_by_rcm(HostCsr{0, 0, {0}, {}, {}}.view()).empty());
  // Two components, a lonely vertex, an empty row that others point to.
  const HostCsr m = pattern(7, {{0, 6}, {1}, {4}, {0, 3}, {}, {2, 4}, {6}});
  const auto order = order_by_rcm(m.view());
  EXPECT_NO_THROW(invert_permutation(order));
  EXPECT_EQ(order.size(), 7u);
  EXPECT_LE(bandwidth(m, order), 2);
  EXPECT_THROW(order_by_rcm(HostCsr{1, 2, {0, 0}, {}, {}}.view()), Error);
}

/// A grid of `length` × `width` vertices, lines one after the other.
Adjacency grid_graph(Adjacency::Vertex length, Adjacency::Vertex width) {
  Adjacency graph;
  for (Adjacency::Vertex v = 0; v < length * width; ++v) {
    graph.first.push_back(std::ssize(graph.neighbour));
    if (v >= length) graph.neighbour.push_back(v - length);
    if (v % length > 0) graph.neighbour.push_back(v - 1);
    if (v % length < length - 1) graph.neighbour.push_back(v + 1);
    if (v < length * (width - 1)) graph.neighbour.push_back(v + length);
    graph.degree.push_back(static_cast<std::int32_t>(std::ssize(graph.neighbour) - graph.first.back()));
  }
  return graph;
}

TEST(Halving, CutsAcrossTheLongerDirection) {
  constexpr Adjacency::Vertex kLength = 64, kWidth = 8, kMost = 128;
  const auto order = order_by_halving(grid_graph(kLength, kWidth), kMost);
  ASSERT_EQ(std::ssize(order), kLength * kWidth);
  for (std::ptrdiff_t part = 0; part < 4; ++part) {
    const auto first = order.begin() + part * kMost;
    EXPECT_TRUE(std::is_sorted(first, first + kMost));
    const auto [low, high] =
        std::minmax_element(first, first + kMost, [](auto a, auto b) { return a % kLength < b % kLength; });
    EXPECT_LE(*high % kLength - *low % kLength, kLength / 4 + kWidth) << "part " << part;
  }
}

TEST(Halving, HoldsEveryVertexOnce) {
  Adjacency apart = grid_graph(50, 1);  // and 50 vertices without neighbours
  apart.first.resize(100, std::ssize(apart.neighbour)), apart.degree.resize(100, 0);
  for (const Adjacency& graph : {grid_graph(37, 23), apart, grid_graph(1, 1), Adjacency{}})
    for (const Adjacency::Vertex most : {0, 1, 7, 1000}) {
      auto order = order_by_halving(graph, most);
      EXPECT_EQ(order, order_by_halving(graph, most));
      std::sort(order.begin(), order.end());
      std::vector<Adjacency::Vertex> all(static_cast<std::size_t>(graph.vertices()));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(order, all);
    }
}

TEST(Ordering, RowLengthIsStableAndInvertible) {
  const HostVector<std::int64_t> row_ptr{0, 1, 3, 3, 5};
  const auto order = order_by_row_length(row_ptr);
  EXPECT_EQ(order, (HostVector<std::int64_t>{1, 3, 0, 2}));
  EXPECT_EQ(invert_permutation(order), (HostVector<std::int64_t>{2, 0, 3, 1}));
  EXPECT_THROW(invert_permutation(HostVector<std::int64_t>{0, 0}), Error);
}

TEST(Narrow, ThrowsInsteadOfWrapping) {
  EXPECT_EQ(narrow<int>(std::int64_t{7}, "n"), 7);
  EXPECT_THROW(narrow<int>(std::int64_t{1} << 31, "n"), Error);
  EXPECT_THROW(narrow<unsigned>(-1, "n"), Error);
}

TEST(Text, NearestSuggestsOnlyWhatIsNear) {
  EXPECT_EQ(nearest("elastcity", {"poisson", "elasticity"}), "elasticity");
  EXPECT_EQ(nearest("sede", {"size", "seed"}), "seed");  // two letters are swapped
  EXPECT_EQ(nearest("zebra", {"poisson", "elasticity"}), "");
  EXPECT_EQ(human_count(-1234567), "-1,234,567");
  EXPECT_EQ(human_count(1, "nonzero"), "1 nonzero");
  EXPECT_EQ(human_count(1234, "nonzero"), "1,234 nonzeros");
  EXPECT_EQ(human_count(0, "vertex", "vertices"), "0 vertices");
  EXPECT_EQ(human_bytes(1.5e9), "1.5 GB");
  EXPECT_EQ(human_change(0.1234), "+12.3 %");
  EXPECT_EQ(human_change(-0.0456), "-4.6 %");
  for (const double next_to_nothing : {0.0, 1e-16, -1e-16, -4e-4}) EXPECT_EQ(human_change(next_to_nothing), "+0.0 %");
}

}  // namespace
}  // namespace shardmat
