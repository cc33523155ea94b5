// The operands of one product Y = A·X, or of one system A·Y = X, as `shardmat bench` hands them to the peer programs: one
// block of shared memory that begins with this header. scipy_peer.py reads the same header by the order of its fields.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardmat::peers {

/// Sizes, and where the arrays begin, in bytes from the header.
struct OperandsHeader {
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t columns = 1;       ///< of X and Y
  std::int64_t column_major = 0;  ///< 1: X and Y are stored by columns; 0: by rows. They have no gaps
  std::int64_t value_bytes = 8;   ///< 8: f64, 4: f32
  std::int64_t row_ptr = 0;       ///< rows + 1 offsets, 32 bits each, from 0
  std::int64_t col_idx = 0;       ///< nnz columns, 32 bits each, ascending in each row
  std::int64_t values = 0;        ///< nnz values
  std::int64_t x = 0, y = 0;      ///< the peer writes Y, which lies last
  std::int64_t bytes = 0;         ///< of the whole block
  // Of a system, for its solvers.
  std::int64_t node_size = 0;    ///< unknowns of a node; 0: not known
  std::int64_t dimensions = 0;   ///< coordinates of a node; 0: not known
  std::int64_t coordinates = 0;  ///< `dimensions` f64 for each node

  /// Sets where the arrays begin.
  void lay_out() {
    std::int64_t end = sizeof *this;
    const auto place = [&](std::int64_t count, std::int64_t size) {
      const std::int64_t begin = (end + 63) / 64 * 64;
      end = begin + count * size;
      return begin;
    };
    row_ptr = place(rows + 1, 4);
    col_idx = place(nnz, 4);
    values = place(nnz, value_bytes);
    x = place(cols * columns, value_bytes);
    coordinates = place(dimensions > 0 ? rows / node_size * dimensions : 0, 8);
    y = place(rows * columns, value_bytes);
    bytes = end;
  }
};

}  // namespace shardmat::peers
