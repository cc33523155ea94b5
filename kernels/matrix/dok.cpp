#include "kernels/matrix/dok.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/matrix/rows.h"

namespace shardmat {

std::size_t DokMatrix::Hash::operator()(const Key& key) const {
  const auto mixed = static_cast<std::uint64_t>(key.row) * 0x9e3779b97f4a7c15u ^ static_cast<std::uint64_t>(key.column);
  return static_cast<std::size_t>((mixed ^ mixed >> 31) * 0xbf58476d1ce4e5b9u);
}

DokMatrix::DokMatrix(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols) {
  if (rows < 0 || cols < 0) throw Error(ErrorKind::usage, fmt::format("a matrix cannot have the shape {} × {}", rows, cols));
}

DokMatrix::DokMatrix(const CsrView& matrix) : DokMatrix(matrix.rows, matrix.cols) {
  const Rows all(matrix);
  entries_.reserve(static_cast<std::size_t>(matrix.nnz()));
  for (std::int64_t row = 0; row < all.count(); ++row)
    for (std::int64_t k = all.begin(row); k < all.end(row); ++k) entries_.insert({{row, all.column(k)}, all.values()[k]});
}

void DokMatrix::require_inside(std::int64_t row, std::int64_t column) const {
  if (row < 0 || row >= rows_ || column < 0 || column >= cols_)
    throw Error(ErrorKind::usage,
                fmt::format("entry ({}, {}) lies outside the matrix of {} × {}", row, column, rows_, cols_));
}

void DokMatrix::insert(std::int64_t row, std::int64_t column, double value) {
  require_inside(row, column);
  entries_[{row, column}] = value;
}

void DokMatrix::add(std::int64_t row, std::int64_t column, double value) {
  require_inside(row, column);
  entries_[{row, column}] += value;
}

bool DokMatrix::erase(std::int64_t row, std::int64_t column) {
  require_inside(row, column);
  return entries_.erase({row, column}) > 0;
}

bool DokMatrix::contains(std::int64_t row, std::int64_t column) const {
  require_inside(row, column);
  return entries_.contains({row, column});
}

double DokMatrix::at(std::int64_t row, std::int64_t column) const {
  require_inside(row, column);
  const auto found = entries_.find({row, column});
  return found == entries_.end() ? 0 : found->second;
}

HostCsr DokMatrix::to_csr() const {
  HostCsr csr;
  csr.rows = rows_;
  csr.cols = cols_;
  csr.row_ptr.assign(static_cast<std::size_t>(rows_) + 1, 0);
  for (const auto& [key, value] : entries_) ++csr.row_ptr[static_cast<std::size_t>(key.row) + 1];
  accumulate_offsets(csr.row_ptr);
  std::vector<std::pair<std::int64_t, double>> sorted(entries_.size());
  std::vector<std::int64_t> next(csr.row_ptr.begin(), csr.row_ptr.end());
  for (const auto& [key, value] : entries_)
    sorted[static_cast<std::size_t>(next[static_cast<std::size_t>(key.row)]++)] = {key.column, value};
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows_); ++row)
    std::sort(sorted.begin() + csr.row_ptr[row], sorted.begin() + csr.row_ptr[row + 1]);
  csr.col_idx.reserve(sorted.size());
  csr.values.reserve(sorted.size());
  for (const auto& [column, value] : sorted) csr.col_idx.push_back(column), csr.values.push_back(value);
  return csr;
}

}  // namespace shardmat
