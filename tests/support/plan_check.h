// Is a plan right? Against a plain f64 loop, with outputs poisoned with NaN and fenced with guard bytes, so that a row
// nobody writes and a write outside fail.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/plan.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat::test {

constexpr std::size_t kGuards = 64;
constexpr unsigned char kGuardByte = 0xa5;

/// A vector on the device between guard bytes.
template <class T>
class Fenced {
 public:
  Fenced(const std::vector<T>& values, Stream& stream)
      : count_(values.size()), buffer_(stream.device(), kGuards + count_ * sizeof(T) + kGuards) {
    fill_bytes(buffer_.data(), kGuardByte, buffer_.bytes(), stream);
    copy_to_device(data(), values.data(), count_ * sizeof(T), stream);
  }
  T* data() const { return reinterpret_cast<T*>(buffer_.as<char>() + kGuards); }
  std::vector<T> read(Stream& stream) const {
    std::vector<char> bytes(buffer_.bytes());
    copy_to_host(bytes.data(), buffer_.data(), bytes.size(), stream);
    for (std::size_t i = 0; i < kGuards; ++i) {
      EXPECT_EQ(static_cast<unsigned char>(bytes[i]), kGuardByte) << "written before the vector";
      EXPECT_EQ(static_cast<unsigned char>(bytes[bytes.size() - 1 - i]), kGuardByte) << "written behind the vector";
    }
    std::vector<T> values(count_);
    if (count_ > 0) std::memcpy(values.data(), bytes.data() + kGuards, count_ * sizeof(T));
    return values;
  }

 private:
  std::size_t count_;
  Buffer buffer_;
};

struct Scalars {
  double alpha, beta;
};

template <class T>
void expect_right(const HostCsr& m, Scalars s, const std::vector<T>& x, const std::vector<T>& y0, const std::vector<T>& y,
                  ValueType type) {
  for (std::int64_t i = 0; i < m.rows; ++i) {
    double sum = 0, absolute = 0;
    const auto row = static_cast<std::size_t>(i);
    for (auto k = static_cast<std::size_t>(m.row_ptr[row]); k < static_cast<std::size_t>(m.row_ptr[row + 1]); ++k) {
      const double term =
          static_cast<double>(static_cast<T>(m.values[k])) * static_cast<double>(x[static_cast<std::size_t>(m.col_idx[k])]);
      sum += term;
      absolute += std::abs(term);
    }
    const double old = s.beta == 0 ? 0 : s.beta * static_cast<double>(y0[row]);
    const auto terms = static_cast<double>(m.row_ptr[row + 1] - m.row_ptr[row]);
    const double bound = 2 * unit_roundoff(type) * ((terms + 2) * std::abs(s.alpha) * absolute + 2 * std::abs(old));
    ASSERT_LE(std::abs(static_cast<double>(y[row]) - (s.alpha * sum + old)), bound) << "row " << i;
  }
}

template <class T>
void check_plan(const Plan& plan, const HostCsr& m, ValueType type, Stream& stream) {
  std::vector<T> x(static_cast<std::size_t>(m.cols)), y0(static_cast<std::size_t>(m.rows));
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<T>(value_of(1000 + j));
  const Fenced<T> device_x(x, stream);
  for (const Scalars s : {Scalars{1, 0}, Scalars{-0.5, 0}, Scalars{1, 1}, Scalars{0.25, -2}, Scalars{0, 3}}) {
    for (std::size_t i = 0; i < y0.size(); ++i)
      y0[i] = s.beta == 0 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(value_of(5000 + i));
    const Fenced<T> device_y(y0, stream), again(y0, stream);
    plan.multiply(s.alpha, device_x.data(), s.beta, device_y.data(), stream);
    const std::vector<T> y = device_y.read(stream);
    expect_right(m, s, x, y0, y, type);
    plan.multiply(s.alpha, device_x.data(), s.beta, again.data(), stream);
    const std::vector<T> repeated = again.read(stream);
    expect_right(m, s, x, y0, repeated, type);
    if (plan.reproducible() && !y.empty()) {
      EXPECT_EQ(std::memcmp(y.data(), repeated.data(), y.size() * sizeof(T)), 0) << "not bit-identical from run to run";
    }
  }
  EXPECT_EQ(device_x.read(stream), x) << "x was changed";
}

}  // namespace shardmat::test
