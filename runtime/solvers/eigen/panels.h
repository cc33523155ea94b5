// Blocks of vectors in host memory, and the two operations between them that block methods live on.
//
// A panel is eight vectors side by side: row-major, 64 bytes a row. A block is a number of panels, so that every product
// with a matrix, every cycle and every inner loop has the same width. Places that a method has no vector for are 0.
//
// Threads: a block is used by one thread at a time; the work is spread over its host threads. Nothing is collective.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/host_vector.h"

namespace shardmat::modes {

constexpr std::int64_t kPanel = 8;  ///< vectors

class Block {
 public:
  /// Zeros. Checks the memory first.
  Block(std::int64_t rows, std::int64_t panels);
  std::int64_t rows() const { return rows_; }
  std::int64_t panels() const { return panels_; }
  std::int64_t columns() const { return panels_ * kPanel; }
  double* panel(std::int64_t p) { return memory_.data() + p * rows_ * kPanel; }
  const double* panel(std::int64_t p) const { return memory_.data() + p * rows_ * kPanel; }
  double& entry(std::int64_t row, std::int64_t column) { return panel(column / kPanel)[row * kPanel + column % kPanel]; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.size() * sizeof(double)); }

 private:
  std::int64_t rows_, panels_;
  HostVector<double> memory_;
};

/// Some panels, of one or several blocks.
using Panels = std::vector<double*>;
Panels panels_of(Block& block, std::int64_t count);
Panels joined(std::initializer_list<Panels> parts);

/// A small dense matrix, row-major.
struct Small {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;

  Small() = default;
  Small(std::int64_t of_rows, std::int64_t of_columns)
      : rows(of_rows), columns(of_columns), values(static_cast<std::size_t>(of_rows * of_columns)) {}
  double& operator()(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * columns + j)]; }
  double operator()(std::int64_t i, std::int64_t j) const { return values[static_cast<std::size_t>(i * columns + j)]; }
};
Small product(const Small& a, const Small& b);
/// aᵀ·b.
Small transposed_product(const Small& a, const Small& b);

/// AᵀB of this rank's rows. The bits do not depend on the number of threads.
Small gram(const Panels& a, const Panels& b, std::int64_t rows);

/// Y = A·C. `y` may be among the panels of `a`.
void combine(const Panels& a, const Small& c, const Panels& y, std::int64_t rows);

}  // namespace shardmat::modes
