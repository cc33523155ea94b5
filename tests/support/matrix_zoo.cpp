#include "tests/support/matrix_zoo.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace shardmat::test {
namespace {

std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

using RowColumns = std::function<std::set<std::int64_t>(std::int64_t row)>;

HostCsr build(std::int64_t rows, std::int64_t cols, const RowColumns& columns_of) {
  HostCsr m;
  m.rows = rows;
  m.cols = cols;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (const std::int64_t column : columns_of(i)) {
      m.col_idx.push_back(column);
      m.values.push_back(m.values.size() % 97 == 13 ? 0.0 : value_of(m.values.size()));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.values.size()));
  }
  return m;
}

/// `count` distinct columns (fewer if there are not so many) chosen by the row.
std::set<std::int64_t> scattered(std::int64_t row, std::int64_t count, std::int64_t cols) {
  std::set<std::int64_t> columns;
  for (std::uint64_t k = 0; static_cast<std::int64_t>(columns.size()) < std::min(count, cols); ++k)
    columns.insert(
        static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(row) * 7919 + k) % static_cast<std::uint64_t>(cols)));
  return columns;
}

std::set<std::int64_t> range(std::int64_t begin, std::int64_t end) {
  std::set<std::int64_t> columns;
  for (std::int64_t j = begin; j < end; ++j) columns.insert(j);
  return columns;
}

std::set<std::int64_t> near(std::int64_t row, std::int64_t half, std::int64_t cols) {
  return range(std::max<std::int64_t>(0, row - half), std::min(cols, row + half + 1));
}

/// Three unknowns a node on an n×n×n grid, 27 neighbours.
std::set<std::int64_t> node_blocks(std::int64_t row, std::int64_t n) {
  const std::int64_t node = row / 3, x = node % n, y = node / n % n, z = node / n / n;
  std::set<std::int64_t> columns;
  for (std::int64_t k = std::max<std::int64_t>(0, z - 1); k <= std::min(n - 1, z + 1); ++k)
    for (std::int64_t j = std::max<std::int64_t>(0, y - 1); j <= std::min(n - 1, y + 1); ++j)
      for (std::int64_t i = std::max<std::int64_t>(0, x - 1); i <= std::min(n - 1, x + 1); ++i)
        for (std::int64_t c = 0; c < 3; ++c) columns.insert(((k * n + j) * n + i) * 3 + c);
  return columns;
}

}  // namespace

double value_of(std::uint64_t counter) { return static_cast<double>(mix(counter) >> 11) * 0x1p-52 - 1; }

HostCsr mirrored(const HostCsr& matrix) {
  std::vector<std::map<std::int64_t, double>> rows(static_cast<std::size_t>(matrix.rows));
  for (std::int64_t i = 0; i < matrix.rows; ++i)
    for (auto k = static_cast<std::size_t>(matrix.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(matrix.row_ptr[static_cast<std::size_t>(i) + 1]); ++k) {
      const std::int64_t j = matrix.col_idx[k];
      if (j > i) continue;
      rows[static_cast<std::size_t>(i)][j] = matrix.values[k];
      rows[static_cast<std::size_t>(j)][i] = matrix.values[k];
    }
  HostCsr all;
  all.rows = all.cols = matrix.rows;
  for (const auto& row : rows) {
    for (const auto& [column, value] : row) all.col_idx.push_back(column), all.values.push_back(value);
    all.row_ptr.push_back(std::ssize(all.values));
  }
  return all;
}

std::vector<NamedMatrix> matrix_zoo() {
  const auto none = [](std::int64_t) { return std::set<std::int64_t>{}; };
  std::vector<NamedMatrix> zoo;
  zoo.push_back({"0x0", build(0, 0, none)});
  zoo.push_back({"no rows", build(0, 7, none)});
  zoo.push_back({"no columns", build(7, 0, none)});
  zoo.push_back({"all rows empty", build(100, 100, none)});
  zoo.push_back({"1x1", build(1, 1, [](std::int64_t) { return range(0, 1); })});
  zoo.push_back({"diagonal", build(1000, 1000, [](std::int64_t i) { return range(i, i + 1); })});
  zoo.push_back(
      {"every third row", build(500, 500, [&](std::int64_t i) { return i % 3 == 0 ? scattered(i, 9, 500) : none(i); })});
  zoo.push_back(
      {"one dense row", build(300, 2000, [](std::int64_t i) { return i == 150 ? range(0, 2000) : scattered(i, 3, 2000); })});
  zoo.push_back({"one dense column", build(1000, 400, [](std::int64_t i) {
                   auto columns = scattered(i, 2, 400);
                   columns.insert(57);
                   return columns;
                 })});
  for (const std::int64_t width : {31, 32, 33, 255, 256, 257})
    zoo.push_back(
        {"width " + std::to_string(width), build(97, 600, [=](std::int64_t i) { return scattered(i, width, 600); })});
  zoo.push_back({"power law", build(1500, 1500, [](std::int64_t i) { return scattered(i, 1 + 1200 / (i + 1), 1500); })});
  zoo.push_back({"banded", build(700, 700, [](std::int64_t i) { return near(i, 8, 700); })});
  // Sorted by length, the short rows make a slice of their own, whose last two are three apart.
  zoo.push_back({"fixed points", build(50, 50, [](std::int64_t i) {
                   return i % 3 == 0 || i == 1 ? range(i, i + 1) : range(i - 1, std::min<std::int64_t>(i + 2, 50));
                 })});
  zoo.push_back({"node blocks", build(3 * 343, 3 * 343, [](std::int64_t i) { return node_blocks(i, 7); })});
  for (const std::string name : {"power law", "node blocks"}) {
    const auto found = std::find_if(zoo.begin(), zoo.end(), [&](const NamedMatrix& one) { return one.name == name; });
    const HostCsr symmetric = mirrored(found->matrix);
    zoo.push_back({name + ", symmetric", symmetric});
  }
  zoo.push_back({"wide", build(40, 5000, [](std::int64_t i) { return scattered(i, 60, 5000); })});
  zoo.push_back({"tall", build(5000, 40, [](std::int64_t i) { return scattered(i, 5, 40); })});
  return zoo;
}

}  // namespace shardmat::test
