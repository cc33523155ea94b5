// Vectors to columns of a matrix and back, on every device of this machine.
#include "kernels/column_packing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/base/isa.h"

namespace shardmat {
namespace {

std::vector<Device> devices() {
  std::vector<Device> all{Device{}};
  if (cuda_device_count() > 0) all.push_back({Backend::cuda, 0});
  return all;
}

/// A vector in memory of a device.
template <class T>
struct OnDevice {
  OnDevice(const std::vector<T>& values, Stream& stream)
      : memory(stream.device(), values.size() * sizeof(T)), n(values.size()) {
    copy_to_device(memory.data(), values.data(), n * sizeof(T), stream);
  }
  std::vector<T> read(Stream& stream) const {
    std::vector<T> values(n);
    copy_to_host(values.data(), memory.data(), n * sizeof(T), stream);
    return values;
  }
  Buffer memory;
  std::size_t n;
};

template <class T>
std::vector<T> random_values(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(n);
  for (T& value : values) value = uniform(random);
  return values;
}

template <class T>
void check(ValueType type, Device device) {
  Stream stream(device);
  constexpr std::size_t kRows = 1000, kWidth = 40;
  const OnDevice<T> first(random_values<T>(kRows, 1), stream), last(random_values<T>(kRows, 2), stream);
  OnDevice<T> matrix(std::vector<T>(kRows * kWidth, T(7)), stream);
  std::vector<const void*> vectors(kWidth - 1);
  vectors[0] = first.memory.data(), vectors[kWidth - 2] = last.memory.data();
  pack_columns(type, kRows, vectors, matrix.memory.data(), kWidth, stream);
  const std::vector<T> packed = matrix.read(stream), a = first.read(stream), b = last.read(stream);
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < kWidth; ++j)
      ASSERT_EQ(packed[i * kWidth + j], j == 0 ? a[i] : j == kWidth - 2 ? b[i] : T(7)) << i << ", " << j;

  const std::vector<T> old = random_values<T>(kRows, 3), nan(kRows, std::numeric_limits<T>::quiet_NaN());
  OnDevice<T> written(nan, stream), added(old, stream);
  std::vector<UnpackedColumn> columns(kWidth - 1);
  columns[0] = {written.memory.data(), 0.3, 0}, columns[kWidth - 2] = {added.memory.data(), 0.3, -0.7};
  unpack_columns(type, kRows, matrix.memory.data(), kWidth, columns, stream);
  const std::vector<T> y = written.read(stream), z = added.read(stream);

  std::vector<std::int64_t> places(kRows);
  for (std::size_t i = 0; i < kRows; ++i) places[i] = static_cast<std::int64_t>((i * 7) % kRows);
  std::vector<T> placed = old;
  std::vector<UnpackedColumn> to_places(kWidth - 1);
  to_places[kWidth - 2] = {placed.data(), 0.3, -0.7};
  unpack_columns_on_host(type, packed.data(), kWidth, places, to_places, device);

  const bool fused = instruction_set() != Isa::baseline;
  const auto expected = [&](T sum, T y_before) {
    const T alpha = static_cast<T>(0.3), beta = static_cast<T>(-0.7);
    const T product = alpha * sum;
    return fused || device.backend == Backend::cuda ? std::fma(beta, y_before, product) : product + beta * y_before;
  };
  for (std::size_t i = 0; i < kRows; ++i) {
    ASSERT_EQ(y[i], static_cast<T>(0.3) * a[i]) << i;
    ASSERT_EQ(z[i], expected(b[i], old[i])) << i;
    const auto place = static_cast<std::size_t>(places[i]);
    ASSERT_EQ(placed[place], expected(b[i], old[place])) << i;
  }
}

TEST(ColumnPacking, VectorsBecomeColumnsAndColumnsBecomeVectors) {
  for (const Device device : devices()) {
    check<double>(ValueType::f64, device);
    check<float>(ValueType::f32, device);
  }
}

TEST(ColumnPacking, TakesNothing) {
  Stream stream{Device{}};
  pack_columns(ValueType::f64, 0, std::vector<const void*>{nullptr}, nullptr, 1, stream);
  unpack_columns(ValueType::f64, 0, nullptr, 1, std::vector<UnpackedColumn>(1), stream);
}

}  // namespace
}  // namespace shardmat
