// Products of dense blocks with several vectors on a GPU (kernels/blocks/columns_product.h) against a plain loop in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/blocks/columns_product.h"

namespace shardmat::blocks {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Shape {
  const char* name;
  std::int64_t count, cols;  ///< nodes
  std::int64_t least, most;  ///< blocks of a row
};

/// Values that f32 holds, too.
struct Example {
  int row_size, col_size;
  std::int64_t cols;
  HostVector<std::int64_t> start{0};
  HostVector<std::int32_t> column;
  HostVector<double> value;

  Example(const Shape& shape, int r, int c) : row_size(r), col_size(c), cols(shape.cols) {
    std::mt19937 random(static_cast<unsigned>(shape.count + 7 * r + c));
    for (std::int64_t i = 0; i < shape.count; ++i) {
      const std::int64_t blocks = shape.least + static_cast<std::int64_t>(random() % at(shape.most - shape.least + 1));
      HostVector<std::int32_t> of_row;
      for (std::int64_t k = 0; k < blocks; ++k) of_row.push_back(static_cast<std::int32_t>(random() % at(cols)));
      std::sort(of_row.begin(), of_row.end());
      column.insert(column.end(), of_row.begin(), std::unique(of_row.begin(), of_row.end()));
      start.push_back(std::ssize(column));
    }
    draw(random);
  }
  void draw(std::mt19937& random) {
    value.resize(column.size() * at(row_size * col_size));
    for (double& v : value) v = number(random);
  }
  static double number(std::mt19937& random) { return (static_cast<double>(random() % 2001) - 1000) / 1024; }
  std::int64_t count() const { return std::ssize(start) - 1; }
  std::int64_t rows() const { return count() * row_size; }

  BlockRows on_device(Stream& stream) const {
    BlockRows rows;
    rows.row_size = row_size, rows.col_size = col_size, rows.count = count(), rows.cols = cols;
    rows.blocks = std::ssize(column);
    const auto put = [&](Buffer& to, const auto& from) {
      to = Buffer(stream.device(), from.size() * sizeof(from[0]));
      copy_to_device(to.data(), from.data(), to.bytes(), stream);
    };
    put(rows.start, start), put(rows.column, column), put(rows.value, value);
    return rows;
  }
  /// A·x of column c in row i, and the sum of the magnitudes of its terms.
  std::pair<double, double> sum(const HostVector<double>& x, int columns, std::int64_t i, int c) const {
    double sum = 0, size = 0;
    const std::int64_t node = i / row_size, r = i % row_size;
    for (std::int64_t k = start[at(node)]; k < start[at(node + 1)]; ++k)
      for (std::int64_t q = 0; q < col_size; ++q) {
        const double term =
            value[at((k * row_size + r) * col_size + q)] * x[at((column[at(k)] * col_size + q) * columns + c)];
        sum += term, size += std::abs(term);
      }
    return {sum, size};
  }
};

/// Y between guard words that must not change.
template <class T>
HostVector<T> product(const ColumnsProduct& of, const Example& e, int columns, double alpha, const HostVector<double>& x,
                      double beta, const HostVector<double>& y, Stream& stream) {
  constexpr std::size_t kGuard = 64;
  constexpr T kWord = T(12345);
  const auto narrow = [](double v) { return static_cast<T>(v); };
  HostVector<T> x_of_type(x.size()), all(at(e.rows() * columns) + 2 * kGuard, kWord);
  std::transform(x.begin(), x.end(), x_of_type.begin(), narrow);
  std::transform(y.begin(), y.end(), all.begin() + kGuard, narrow);
  const Buffer on_x(stream.device(), x_of_type.size() * sizeof(T)), on_y(stream.device(), all.size() * sizeof(T));
  copy_to_device(on_x.data(), x_of_type.data(), on_x.bytes(), stream);
  copy_to_device(on_y.data(), all.data(), on_y.bytes(), stream);
  of.multiply(alpha, on_x.data(), beta, on_y.as<T>() + kGuard, stream);
  copy_to_host(all.data(), on_y.data(), on_y.bytes(), stream);
  EXPECT_EQ(std::count(all.begin(), all.begin() + kGuard, kWord), std::ptrdiff_t{kGuard});
  EXPECT_EQ(std::count(all.end() - kGuard, all.end(), kWord), std::ptrdiff_t{kGuard});
  return HostVector<T>(all.begin() + kGuard, all.end() - kGuard);
}

template <class T>
void expect_products(Example e, int columns, Stream& stream) {
  const ValueType type = std::is_same_v<T, float> ? ValueType::f32 : ValueType::f64;
  ColumnsProduct tested(e.on_device(stream), type, columns, stream);
  std::mt19937 random(3);
  HostVector<double> x(at(e.cols * e.col_size * columns)), y(at(e.rows() * columns));
  for (double& v : x) v = Example::number(random);
  for (const bool updated : {false, true}) {
    if (updated) {
      e.draw(random);
      tested.update(e.on_device(stream), stream);
    }
    for (const auto& [alpha, beta] : {std::pair{1.0, 0.0}, {-0.5, 2.0}, {1.0, 1.0}}) {
      for (double& v : y) v = beta == 0 ? std::nan("") : Example::number(random);
      const HostVector<T> found = product<T>(tested, e, columns, alpha, x, beta, y, stream);
      for (std::int64_t i = 0; i < e.rows(); ++i)
        for (int c = 0; c < columns; ++c) {
          const auto [sum, size] = e.sum(x, columns, i, c);
          const double before = beta == 0 ? 0 : beta * y[at(i * columns + c)];
          const double terms =
              static_cast<double>((e.start[at(i / e.row_size + 1)] - e.start[at(i / e.row_size)]) * e.col_size);
          const double bound = std::numeric_limits<T>::epsilon() * (terms + 3) * (std::abs(alpha) * size + std::abs(before));
          const double error = std::abs(static_cast<double>(found[at(i * columns + c)]) - (alpha * sum + before));
          ASSERT_TRUE(error <= bound) << "row " << i << ", column " << c << ": " << error << " > " << bound << ", alpha "
                                      << alpha << ", beta " << beta << (updated ? ", new values" : "");
        }
    }
  }
}

/// A column has the same bits whatever the others hold.
template <class T>
void expect_columns_apart(const Example& e, int columns, Stream& stream) {
  const ValueType type = std::is_same_v<T, float> ? ValueType::f32 : ValueType::f64;
  const ColumnsProduct tested(e.on_device(stream), type, columns, stream);
  std::mt19937 random(5);
  HostVector<double> x(at(e.cols * e.col_size * columns));
  for (double& v : x) v = Example::number(random);
  const HostVector<double> y(at(e.rows() * columns), 0.0);
  const HostVector<T> plain = product<T>(tested, e, columns, 1, x, 0, y, stream);
  const int mine = columns / 2;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (static_cast<int>(i % at(columns)) != mine) x[i] = std::nan("");
  const HostVector<T> beside = product<T>(tested, e, columns, 1, x, 0, y, stream);
  for (std::int64_t i = 0; i < e.rows(); ++i)
    ASSERT_EQ(std::memcmp(&plain[at(i * columns + mine)], &beside[at(i * columns + mine)], sizeof(T)), 0) << "row " << i;
}

TEST(GpuColumnsProduct, IsThatOfAPlainLoop) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream(Device{Backend::cuda, 0});
  for (const Shape& shape : {Shape{"none", 0, 5, 0, 0}, Shape{"one row", 1, 3, 3, 3}, Shape{"empty rows", 37, 9, 0, 0},
                             Shape{"few blocks", 2003, 700, 0, 9}, Shape{"many blocks", 130, 4000, 20, 40},
                             Shape{"many rows", 1200, 4000, 16, 24}, Shape{"wide rows", 7, 5000, 300, 900}})
    for (const auto& [row_size, col_size] : {std::pair{6, 3}, {3, 6}, {3, 3}, {1, 1}, {2, 2}, {1, 6}, {6, 6}}) {
      const Example e(shape, row_size, col_size);
      for (const int columns : {1, 2, 3, 4, 5, 31, 32}) {
        SCOPED_TRACE(std::string(shape.name) + ", blocks " + std::to_string(row_size) + "×" + std::to_string(col_size) +
                     ", " + std::to_string(columns) + " columns");
        ASSERT_TRUE(ColumnsProduct::takes(row_size, col_size, columns, shape.count));
        expect_products<double>(e, columns, stream);
        expect_products<float>(e, columns, stream);
        expect_columns_apart<double>(e, columns, stream);
        expect_columns_apart<float>(e, columns, stream);
        if (HasFatalFailure()) return;
      }
      EXPECT_FALSE(ColumnsProduct::takes(row_size, col_size, 33, shape.count));
    }
  EXPECT_FALSE(ColumnsProduct::takes(4, 4, 3, 100));
  EXPECT_FALSE(ColumnsProduct::takes(3, 5, 3, 100));
  EXPECT_FALSE(ColumnsProduct::takes(3, 3, 3, 100'000));
}

}  // namespace
}  // namespace shardmat::blocks
