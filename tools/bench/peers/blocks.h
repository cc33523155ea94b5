// Blocks of equal size, for the libraries that store a matrix by blocks.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tools/bench/peers/peer.h"

namespace shardmat::peers {

/// Block rows in compressed form; values are block after block, each by rows, with zeros where A has no entry.
template <class T>
struct Blocks {
  int size = 1, rows = 0, cols = 0;  ///< rows and cols count blocks
  std::vector<int> row_ptr, col_idx;
  std::vector<T> values;

  std::string detail() const { return std::to_string(size) + " × " + std::to_string(size) + " blocks"; }
};

/// Blocks of `size` that A touches. REQUIRES: `size` divides rows and columns.
inline std::int64_t count_blocks(const Operands& a, int size) {
  std::vector<int> last(static_cast<std::size_t>(a.cols() / size), -1);
  std::int64_t count = 0;
  for (int i = 0; i < a.rows(); ++i)
    for (int k = a.row_ptr()[i]; k < a.row_ptr()[i + 1]; ++k) {
      int& seen = last[static_cast<std::size_t>(a.col_idx()[k] / size)];
      if (seen != i / size) seen = i / size, ++count;
    }
  return count;
}

/// The size from 1 to 6 that takes the fewest bytes.
inline int best_block_size(const Operands& a) {
  const auto value = static_cast<double>(a.sizes().value_bytes);
  double least = (value + 4) * a.nnz() + 4.0 * a.rows();
  int best = 1;
  for (int size = 2; size <= 6; ++size) {
    if (a.rows() % size != 0 || a.cols() % size != 0) continue;
    const double bytes = (value * size * size + 4) * static_cast<double>(count_blocks(a, size)) + 4.0 * a.rows() / size;
    if (bytes < least) least = bytes, best = size;
  }
  return best;
}

/// The same for formats of blocks. Throws Refused if compressed rows take the fewest bytes.
inline int choose_block_size(const Operands& a) {
  const int size = best_block_size(a);
  if (size == 1) throw Refused("no blocks of 2 to 6 rows take fewer bytes than compressed rows");
  return size;
}

/// With `upper`, only the blocks on the diagonal and above it.
template <class T>
Blocks<T> make_blocks(const Operands& a, int size, bool upper = false) {
  Blocks<T> result;
  result.size = size, result.rows = a.rows() / size, result.cols = a.cols() / size;
  result.row_ptr.push_back(0);
  std::vector<int> place(static_cast<std::size_t>(result.cols), -1), columns;
  const auto area = static_cast<std::size_t>(size * size);
  for (int block_row = 0; block_row < result.rows; ++block_row) {
    columns.clear();
    for (int k = a.row_ptr()[block_row * size]; k < a.row_ptr()[(block_row + 1) * size]; ++k) {
      const int column = a.col_idx()[k] / size;
      if (upper && column < block_row) continue;
      if (place[static_cast<std::size_t>(column)] < 0)
        place[static_cast<std::size_t>(column)] = 0, columns.push_back(column);
    }
    std::sort(columns.begin(), columns.end());
    for (const int column : columns) {
      place[static_cast<std::size_t>(column)] = static_cast<int>(result.col_idx.size());
      result.col_idx.push_back(column);
    }
    result.values.resize(result.col_idx.size() * area);
    for (int i = block_row * size; i < (block_row + 1) * size; ++i)
      for (int k = a.row_ptr()[i]; k < a.row_ptr()[i + 1]; ++k) {
        const int column = a.col_idx()[k], block = place[static_cast<std::size_t>(column / size)];
        if (upper && column / size < block_row) continue;
        result.values[static_cast<std::size_t>(block) * area + static_cast<std::size_t>(i % size * size + column % size)] =
            a.values<T>()[k];
      }
    for (const int column : columns) place[static_cast<std::size_t>(column)] = -1;
    result.row_ptr.push_back(static_cast<int>(result.col_idx.size()));
  }
  return result;
}

/// The entries of compressed rows on the diagonal and on one side of it.
template <class T>
struct Triangle {
  std::vector<int> row_ptr{0}, col_idx;
  std::vector<T> values;
};

template <class T>
Triangle<T> triangle_of(const Operands& a, bool upper) {
  Triangle<T> result;
  for (int i = 0; i < a.rows(); ++i) {
    for (int k = a.row_ptr()[i]; k < a.row_ptr()[i + 1]; ++k)
      if (upper ? a.col_idx()[k] >= i : a.col_idx()[k] <= i) {
        result.col_idx.push_back(a.col_idx()[k]);
        result.values.push_back(a.values<T>()[k]);
      }
    result.row_ptr.push_back(static_cast<int>(result.col_idx.size()));
  }
  return result;
}

/// A copy in memory of this process.
template <class T>
std::vector<T> copy_of(std::span<const T> array) {
  return {array.begin(), array.end()};
}

}  // namespace shardmat::peers
