#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/bandwidth.h"
#include "kernels/scale_matrix.h"
#include "kernels/vector.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

template <class T>
void check(Backend backend, ValueType type, std::int64_t n) {
  Stream stream({backend, 0});
  std::vector<T> x(static_cast<std::size_t>(n)), y(x.size());
  double xy = 0, yy = 0, absolute = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<T>(test::value_of(i));
    y[i] = static_cast<T>(test::value_of(i + 77777));
    xy += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    yy += static_cast<double>(y[i]) * static_cast<double>(y[i]);
    absolute += std::abs(static_cast<double>(x[i]) * static_cast<double>(y[i]));
  }
  const Buffer dx(stream.device(), x.size() * sizeof(T)), dy(stream.device(), x.size() * sizeof(T)),
      dots(stream.device(), 2 * sizeof(double));
  copy_to_device(dx.data(), x.data(), dx.bytes(), stream);
  copy_to_device(dy.data(), y.data(), dy.bytes(), stream);
  DotProducts products(stream.device());
  double result[2], again[2];
  products.compute(type, n, dx.data(), dy.data(), dots.as<double>(), stream);
  copy_to_host(result, dots.data(), sizeof result, stream);
  products.compute(type, n, dx.data(), dy.data(), dots.as<double>(), stream);
  copy_to_host(again, dots.data(), sizeof again, stream);
  const double u = 0x1p-53 * static_cast<double>(n + 2);
  EXPECT_LE(std::abs(result[0] - xy), 2 * u * absolute);
  EXPECT_LE(std::abs(result[1] - yy), 2 * u * yy);
  EXPECT_EQ(result[0], again[0]);
  EXPECT_EQ(result[1], again[1]);

  normalise(type, n, dy.data(), dots.as<double>() + 1, dx.data(), stream);
  copy_to_host(x.data(), dx.data(), dx.bytes(), stream);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(static_cast<double>(x[i]), static_cast<double>(y[i]) / std::sqrt(yy), 4 * unit_roundoff(type));

  double least = std::numeric_limits<double>::infinity(), largest = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double magnitude = std::abs(static_cast<double>(y[i]));
    if (i % 3 == 1) y[i] = std::numeric_limits<T>::quiet_NaN();
    else least = std::min(least, magnitude), largest = std::max(largest, magnitude);
  }
  copy_to_device(dy.data(), y.data(), dy.bytes(), stream);
  const Magnitudes found = magnitudes(type, n, dy.data(), stream);
  EXPECT_EQ(found.least, least);
  EXPECT_EQ(found.largest, largest);
}

/// Entries of `width` values.
template <class T>
void check_gather(Backend backend, std::int64_t n, std::size_t width) {
  Stream stream({backend, 0});
  std::vector<T> from(static_cast<std::size_t>(2 * n + 1) * width), to(static_cast<std::size_t>(n) * width);
  std::vector<std::int32_t> places(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int32_t>(i * 7919 % (2 * places.size() + 1));
  const Buffer df(stream.device(), from.size() * sizeof(T)), dt(stream.device(), to.size() * sizeof(T)),
      dp(stream.device(), places.size() * sizeof(std::int32_t));
  copy_to_device(df.data(), from.data(), df.bytes(), stream);
  copy_to_device(dp.data(), places.data(), dp.bytes(), stream);
  gather_entries(width * sizeof(T), n, dp.as<std::int32_t>(), df.data(), dt.data(), stream);
  copy_to_host(to.data(), dt.data(), dt.bytes(), stream);
  for (std::size_t i = 0; i < to.size(); ++i)
    ASSERT_EQ(to[i], from[static_cast<std::size_t>(places[i / width]) * width + i % width]) << i;
}

/// Columns [2, 2 + width) of rows of width + 5 values become columns [1, 1 + width) of rows of width + 2.
template <class T>
void check_rows(Backend backend, std::int64_t n, std::size_t width) {
  Stream stream({backend, 0});
  const auto rows = static_cast<std::size_t>(n);
  const std::size_t from_apart = width + 5, to_apart = width + 2;
  std::vector<T> from(rows * from_apart), to(rows * to_apart);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i + 1);
  const Buffer df(stream.device(), from.size() * sizeof(T)), dt(stream.device(), to.size() * sizeof(T));
  copy_to_device(df.data(), from.data(), df.bytes(), stream);
  fill_bytes(dt.data(), 0, dt.bytes(), stream);
  copy_rows(width * sizeof(T), n, df.as<T>() + 2, from_apart * sizeof(T), dt.as<T>() + 1, to_apart * sizeof(T), stream);
  copy_to_host(to.data(), dt.data(), dt.bytes(), stream);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t row = i / to_apart, column = i % to_apart;
    const bool copied = column >= 1 && column <= width;
    ASSERT_EQ(to[i], copied ? from[row * from_apart + column + 1] : T{0}) << i;
  }
}

/// Between all pairs of orders, with gaps on both sides, which stay.
template <class T>
void check_copies(Backend backend, ValueType type, std::int64_t rows, std::int64_t columns) {
  Stream stream({backend, 0});
  for (const DenseOrder from_order : {DenseOrder::row_major, DenseOrder::column_major})
    for (const DenseOrder to_order : {DenseOrder::row_major, DenseOrder::column_major}) {
      const auto leading = [&](DenseOrder order, std::int64_t gap) {
        return (order == DenseOrder::row_major ? columns : rows) + gap;
      };
      Dense from{nullptr, rows, columns, leading(from_order, 3), from_order, type, stream.device()},
          to{nullptr, rows, columns, leading(to_order, 2), to_order, type, stream.device()};
      const auto entries = [&](const Dense& view) {
        return static_cast<std::size_t>(view.leading * (view.order == DenseOrder::row_major ? rows : columns));
      };
      const auto at = [](const Dense& view, std::int64_t i, std::int64_t j) {
        return static_cast<std::size_t>(view.order == DenseOrder::row_major ? i * view.leading + j : i + j * view.leading);
      };
      std::vector<T> given(entries(from)), found(entries(to), T(9)), expected = found;
      for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<T>(i % 50'000 + 10);
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) expected[at(to, i, j)] = given[at(from, i, j)];
      const Buffer df(stream.device(), given.size() * sizeof(T)), dt(stream.device(), found.size() * sizeof(T));
      copy_to_device(df.data(), given.data(), df.bytes(), stream);
      copy_to_device(dt.data(), found.data(), dt.bytes(), stream);
      from.data = df.data(), to.data = dt.data();
      copy_matrix(from, to, stream);
      copy_to_host(found.data(), dt.data(), dt.bytes(), stream);
      ASSERT_EQ(found, expected) << rows << " × " << columns << " of " << sizeof(T) << " bytes";
    }
}

void check_all_copies(Backend backend) {
  for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 4}, {1, 1}, {1, 3}, {5, 1}, {31, 2}, {33, 32}, {1000, 3}, {4099, 4}, {1025, 33}, {700, 100}, {3, 5000}}) {
    check_copies<std::uint16_t>(backend, ValueType::bf16, rows, columns);
    check_copies<float>(backend, ValueType::f32, rows, columns);
    check_copies<double>(backend, ValueType::f64, rows, columns);
  }
}

template <class T>
void check_scaling(Backend backend, ValueType type, DenseOrder order, double factor) {
  Stream stream(Device{backend, 0});
  for (const auto& [lines, length, gap] : std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{
           {0, 4, 1}, {4, 0, 1}, {1, 7, 0}, {3, 1, 2}, {3, 5, 0}, {3, 5, 4}, {5000, 3, 2}, {2, 70'001, 5}, {300, 300, 1}}) {
    const bool by_rows = order == DenseOrder::row_major;
    const std::int64_t apart = length + gap;
    std::vector<T> found(static_cast<std::size_t>(lines * apart)), expected;
    for (std::size_t i = 0; i < found.size(); ++i)
      found[i] = factor == 0 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(i % 1000 + 1);
    expected = found;
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t i = 0; i < length; ++i) {
        T& entry = expected[static_cast<std::size_t>(line * apart + i)];
        entry = factor == 0 ? T(0) : static_cast<T>(factor) * entry;
      }
    const Buffer memory(stream.device(), found.size() * sizeof(T));
    copy_to_device(memory.data(), found.data(), memory.bytes(), stream);
    scale_matrix(
        factor,
        Dense{memory.data(), by_rows ? lines : length, by_rows ? length : lines, apart, order, type, stream.device()},
        stream);
    copy_to_host(found.data(), memory.data(), memory.bytes(), stream);
    ASSERT_EQ(std::memcmp(found.data(), expected.data(), memory.bytes()), 0) << lines << " lines of " << length;
  }
}

/// The gaps hold NaN or numbers, which stay.
void check_all_scalings(Backend backend) {
  for (const double factor : {0.0, 1.0, -2.5})
    for (const DenseOrder order : {DenseOrder::row_major, DenseOrder::column_major}) {
      check_scaling<float>(backend, ValueType::f32, order, factor);
      check_scaling<double>(backend, ValueType::f64, order, factor);
    }
}

TEST(Vector, ScalingLeavesGapsAloneOnHost) { check_all_scalings(Backend::host); }
TEST(GpuVector, ScalingLeavesGapsAloneOnCuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_all_scalings(Backend::cuda);
}

TEST(Vector, CopiesOfMatricesOnHost) { check_all_copies(Backend::host); }
TEST(GpuVector, CopiesOfMatricesOnCuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_all_copies(Backend::cuda);
}

/// Sums, updates and fills of several columns; a guard row behind Y stays.
template <class T>
void check_columns(Backend backend, ValueType type, std::int64_t n, std::int64_t columns) {
  Stream stream({backend, 0});
  const auto entries = static_cast<std::size_t>(n * columns), k = static_cast<std::size_t>(columns);
  std::vector<T> x(entries), y(entries + k, T(99));
  std::vector<double> sums(k, 0.0), bounds(k, 0.0);
  for (std::size_t i = 0; i < entries; ++i) {
    x[i] = static_cast<T>(test::value_of(i)), y[i] = static_cast<T>(test::value_of(i + 4711));
    const double term = static_cast<double>(x[i]) * static_cast<double>(y[i]);
    sums[i % k] += term, bounds[i % k] += 2 * 0x1p-53 * static_cast<double>(n + 2) * std::abs(term);
  }
  const Buffer dx(stream.device(), entries * sizeof(T)), dy(stream.device(), y.size() * sizeof(T)),
      result(stream.device(), k * sizeof(double));
  copy_to_device(dx.data(), x.data(), dx.bytes(), stream);
  copy_to_device(dy.data(), y.data(), dy.bytes(), stream);
  ColumnDots dots(stream.device(), columns);
  std::vector<double> found(k), again(k);
  for (std::vector<double>* to : {&found, &again}) {
    fill_bytes(result.data(), 0xff, result.bytes(), stream);
    dots.compute(type, n, dx.data(), dy.data(), result.as<double>(), stream);
    copy_to_host(to->data(), result.data(), result.bytes(), stream);
  }
  EXPECT_EQ(found, again);
  for (std::size_t j = 0; j < k; ++j) ASSERT_LE(std::abs(found[j] - sums[j]), bounds[j]) << "column " << j;

  combine(type, n, columns, {-0.5, result.as<double>()}, dx.data(), {2}, dy.data(), stream);
  std::vector<T> combined(y.size());
  copy_to_host(combined.data(), dy.data(), dy.bytes(), stream);
  for (std::size_t i = 0; i < entries; ++i) {
    const double a = -0.5 * found[i % k] * static_cast<double>(x[i]), b = 2 * static_cast<double>(y[i]);
    ASSERT_NEAR(static_cast<double>(combined[i]), a + b, 4 * unit_roundoff(type) * (std::abs(a) + std::abs(b)));
  }
  for (std::size_t j = 0; j < k; ++j) ASSERT_EQ(combined[entries + j], T(99));
  fill_bytes(dy.data(), 0xff, entries * sizeof(T), stream);  // NaN: with b = 0 it is not read
  combine(type, n, columns, {1}, dx.data(), {0}, dy.data(), stream);
  copy_to_host(combined.data(), dy.data(), dy.bytes(), stream);
  for (std::size_t i = 0; i < entries; ++i) ASSERT_EQ(combined[i], x[i]);
  combine(type, n, columns, {}, nullptr, {0.25}, dy.data(), stream);
  copy_to_host(combined.data(), dy.data(), dy.bytes(), stream);
  for (std::size_t i = 0; i < entries; ++i) ASSERT_EQ(combined[i], x[i] / 4);
  fill_vector(type, n * columns, 3, dy.data(), stream);
  copy_to_host(combined.data(), dy.data(), dy.bytes(), stream);
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(combined[i], i < entries ? T(3) : T(99));
}

void check_all_columns(Backend backend) {
  for (const std::int64_t n : {0, 1, 31, 4099})
    for (const std::int64_t columns : {1, 2, 3, 8, 100, 256, 257, 600}) {
      check_columns<float>(backend, ValueType::f32, n, columns);
      check_columns<double>(backend, ValueType::f64, n, columns);
    }
}

TEST(Vector, ColumnsOnHost) { check_all_columns(Backend::host); }
TEST(GpuVector, ColumnsOnCuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_all_columns(Backend::cuda);
}

void check_all(Backend backend) {
  for (const std::int64_t n : {0, 1, 255, 256, 257, 100'003}) {
    check<float>(backend, ValueType::f32, n);
    check<double>(backend, ValueType::f64, n);
    for (const std::size_t width : {1, 2, 3, 32}) {
      check_gather<std::uint16_t>(backend, n, width);
      check_gather<float>(backend, n, width);
      check_gather<double>(backend, n, width);
      check_rows<std::uint16_t>(backend, n, width);
      check_rows<float>(backend, n, width);
      check_rows<double>(backend, n, width);
    }
  }
}

TEST(Vector, DotsAndNormaliseOnHost) { check_all(Backend::host); }
TEST(GpuVector, DotsAndNormaliseOnCuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_all(Backend::cuda);
}

TEST(Vector, ZeroNormGivesZero) {
  Stream stream({Backend::host, 0});
  double y[2] = {3, 4}, x[2] = {1, 1}, norm = 0;
  normalise(ValueType::f64, 2, y, &norm, x, stream);
  EXPECT_EQ(x[0], 0);
}

TEST(Graph, HostReplaysWork) {
  Stream stream({Backend::host, 0});
  int runs = 0;
  Graph graph(stream, [&] { ++runs; });
  EXPECT_EQ(runs, 0);
  graph.launch(stream);
  graph.launch(stream);
  EXPECT_EQ(runs, 2);
}

TEST(GpuGraph, ReplaysRecordedWork) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream({Backend::cuda, 0});
  const Buffer a(stream.device(), 1024), b(stream.device(), 1024);
  fill_bytes(a.data(), 7, 1024, stream);
  fill_bytes(b.data(), 0, 1024, stream);
  Graph graph(stream, [&] { copy_on_device(b.data(), a.data(), 1024, stream); });
  std::vector<char> host(1024);
  copy_to_host(host.data(), b.data(), 1024, stream);
  EXPECT_EQ(host[1023], 0);
  graph.launch(stream);
  copy_to_host(host.data(), b.data(), 1024, stream);
  EXPECT_EQ(host[1023], 7);
}

TEST(Bandwidth, HostCopyIsMeasured) {
  Stream stream({Backend::host, 0});
  EXPECT_GT(measure_copy_bandwidth(stream, 1 << 24), 1e8);
}

}  // namespace
}  // namespace shardmat
