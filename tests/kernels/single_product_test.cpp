// Products of single entries on a GPU (kernels/blocks/single_product.h), alone and with a smoother's step, against a plain
// loop in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/blocks/block_product.h"

namespace shardmat::blocks {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Example {
  std::string name;
  bool is_square;
  std::int64_t cols;
  HostVector<std::int64_t> start{0};
  HostVector<std::int32_t> column = {};
  HostVector<double> value = {};

  std::int64_t rows() const { return std::ssize(start) - 1; }
  void end_row(std::vector<std::int64_t> columns) {
    std::sort(columns.begin(), columns.end());
    for (auto k = columns.begin(), end = std::unique(columns.begin(), columns.end()); k != end; ++k)
      column.push_back(static_cast<std::int32_t>(*k));
    start.push_back(std::ssize(column));
  }
  /// size(row): the magnitude of the row's values.
  void draw(unsigned seed, const std::function<double(std::int64_t row)>& size) {
    std::mt19937 random(seed);
    value.resize(column.size());
    for (std::int64_t i = 0; i < rows(); ++i)
      for (std::int64_t k = start[at(i)]; k < start[at(i + 1)]; ++k)
        value[at(k)] = size(i) * (0.25 + static_cast<double>(random() % 1000) / 1000) * (random() % 2 == 0 ? 1 : -1);
  }
  BlockRows on_device(Stream& stream) const {
    BlockRows out;
    out.count = rows(), out.cols = cols, out.blocks = std::ssize(column);
    const auto put = [&](Buffer& to, const auto& from) {
      to = Buffer(stream.device(), from.size() * sizeof(from[0]));
      copy_to_device(to.data(), from.data(), to.bytes(), stream);
    };
    put(out.start, start), put(out.column, column), put(out.value, value);
    return out;
  }
  /// A·x in row i, the sum of the magnitudes of its terms, and that of the terms beside the diagonal by the largest value.
  struct Sum {
    double sum = 0, size = 0, rounded = 0;
  };
  Sum sum(const HostVector<float>& x, std::int64_t i) const {
    Sum all;
    double largest = 0, of_x = 0;
    for (std::int64_t k = start[at(i)]; k < start[at(i + 1)]; ++k) {
      const double of_column = static_cast<double>(x[at(column[at(k)])]), term = value[at(k)] * of_column;
      all.sum += term, all.size += std::abs(term);
      if (column[at(k)] != i) largest = std::max(largest, std::abs(value[at(k)])), of_x += std::abs(of_column);
    }
    all.rounded = largest * (of_x + static_cast<double>(start[at(i + 1)] - start[at(i)]));
    return all;
  }
};

/// The points of a grid with their neighbours within `reach` steps along an axis, or of all 3³.
Example stencil(const char* name, std::int64_t nx, std::int64_t ny, std::int64_t nz, bool full) {
  Example e{name, true, nx * ny * nz};
  for (std::int64_t z = 0; z < nz; ++z)
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t x = 0; x < nx; ++x) {
        std::vector<std::int64_t> columns;
        for (std::int64_t c = z - 1; c <= z + 1; ++c)
          for (std::int64_t b = y - 1; b <= y + 1; ++b)
            for (std::int64_t a = x - 1; a <= x + 1; ++a)
              if (a >= 0 && a < nx && b >= 0 && b < ny && c >= 0 && c < nz &&
                  (full || std::abs(a - x) + std::abs(b - y) + std::abs(c - z) <= 1))
                columns.push_back((c * ny + b) * nx + a);
        e.end_row(columns);
      }
  return e;
}

/// Rows of `least` to `most` entries, in columns at most `reach` from where the row would be; some have no diagonal.
Example scattered(const char* name, bool is_square, std::int64_t rows, std::int64_t cols, std::int64_t least,
                  std::int64_t most, std::int64_t reach) {
  Example e{name, is_square, cols};
  std::mt19937 random(static_cast<unsigned>(rows + most));
  for (std::int64_t i = 0; i < rows; ++i) {
    std::vector<std::int64_t> columns;
    const std::int64_t entries = least + static_cast<std::int64_t>(random() % at(most - least + 1)),
                       middle = i * cols / rows;
    for (std::int64_t k = 0; k < entries; ++k) {
      const std::int64_t wanted = middle - reach + static_cast<std::int64_t>(random() % at(2 * reach + 1));
      columns.push_back(std::clamp<std::int64_t>(wanted, 0, cols - 1));
    }
    if (is_square && entries > 0 && i % 5 != 0) columns.push_back(i);
    e.end_row(columns);
  }
  return e;
}

std::vector<Example> examples() {
  std::vector<Example> all;
  all.push_back(stencil("7 points", 37, 21, 19, false));
  all.push_back(stencil("27 points", 64, 16, 11, true));
  all.push_back(stencil("a line", 5000, 1, 1, false));
  all.push_back(scattered("one row", true, 1, 1, 1, 1, 0));
  all.push_back(scattered("empty rows", true, 70, 70, 0, 0, 1));
  all.push_back(scattered("near columns", true, 3001, 3001, 0, 40, 300));
  all.push_back(scattered("far columns", true, 5003, 200'000, 0, 9, 150'000));
  all.push_back(scattered("long rows", true, 100, 30'000, 300, 900, 20'000));
  all.push_back(scattered("prolongation", false, 7001, 311, 1, 8, 4));
  all.push_back(scattered("restriction", false, 311, 90'000, 20, 60, 30'000));
  return all;
}

template <class T>
Buffer given(const HostVector<T>& from, Stream& stream) {
  Buffer to(stream.device(), from.size() * sizeof(T));
  copy_to_device(to.data(), from.data(), to.bytes(), stream);
  return to;
}
HostVector<float> taken(const Buffer& from, Stream& stream) {
  HostVector<float> to(from.bytes() / sizeof(float));
  copy_to_host(to.data(), from.data(), from.bytes(), stream);
  return to;
}
HostVector<float> vector(std::int64_t entries, int kind) {
  HostVector<float> x(at(entries));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(kind == 0 ? 1.0 : std::sin(static_cast<double>(i) * (kind + 0.3) + 1));
  return x;
}

class Tested {
 public:
  Tested(const Example& e, ValueType type, const HostVector<double>* modes, Stream& stream)
      : e_(e), type_(type), stream_(stream) {
    if (modes != nullptr) modes_ = given(*modes, stream);
    EXPECT_TRUE(SingleProduct::takes(e.on_device(stream), type, stream));
    product_.emplace(e.on_device(stream), type, e.is_square, modes == nullptr ? nullptr : &modes_, stream);
  }
  /// Between guards that must not change.
  HostVector<float> multiply(double alpha, const HostVector<float>& x, double beta, const HostVector<float>& y) {
    constexpr std::size_t kGuard = 64;
    HostVector<float> all(y.size() + 2 * kGuard, 12345.f);
    std::copy(y.begin(), y.end(), all.begin() + kGuard);
    const Buffer from = given(x, stream_), to = given(all, stream_);
    product_->multiply(alpha, from.data(), beta, to.as<float>() + kGuard, stream_);
    all = taken(to, stream_);
    EXPECT_EQ(std::count(all.begin(), all.begin() + kGuard, 12345.f), std::ptrdiff_t{kGuard});
    EXPECT_EQ(std::count(all.end() - kGuard, all.end(), 12345.f), std::ptrdiff_t{kGuard});
    return HostVector<float>(all.begin() + kGuard, all.end() - kGuard);
  }
  /// What the product may differ by in row i; `is_smooth`: x is the vector that f16 keeps. What makes up for rounding on the
  /// diagonal is as large as the modes differ, by a factor of 5 here.
  double bound(const Example::Sum& sum, std::int64_t i, bool is_smooth) const {
    const double rounding = 6e-8 * (static_cast<double>(e_.start[at(i + 1)] - e_.start[at(i)]) + 4) * sum.size;
    return type_ == ValueType::f32 ? rounding
           : is_smooth             ? rounding + 2e-7 * sum.rounded
                                   : rounding + (modes_.bytes() > 0 ? 6 : 1.5) * std::ldexp(1.0, -11) * sum.rounded;
  }
  void expect_products(const HostVector<double>* modes) {
    for (const int kind : {0, 1, 2}) {
      HostVector<float> x = vector(e_.cols, kind);
      if (kind == 0 && modes != nullptr)
        for (std::size_t i = 0; i < x.size() && i < modes->size(); ++i) x[i] = static_cast<float>((*modes)[i]);
      for (const auto& [alpha, beta] : {std::pair{1.0, 0.0}, {-0.5, 2.0}, {1.0, 1.0}}) {
        HostVector<float> y = vector(e_.rows(), 3);
        if (beta == 0) std::fill(y.begin(), y.end(), NAN);
        const HostVector<float> found = multiply(alpha, x, beta, y);
        for (std::int64_t i = 0; i < e_.rows(); ++i) {
          const Example::Sum sum = e_.sum(x, i);
          const double before = beta == 0 ? 0 : beta * static_cast<double>(y[at(i)]);
          const double most = std::abs(alpha) * bound(sum, i, kind == 0) + 2e-7 * (std::abs(before) + std::abs(sum.sum));
          ASSERT_LE(std::abs(static_cast<double>(found[at(i)]) - (alpha * sum.sum + before)), most)
              << "row " << i << ", x " << kind << ", alpha " << alpha << ", beta " << beta;
        }
      }
    }
  }
  void expect_step(bool x_lacks_d) {
    const std::int64_t n = e_.rows();
    const HostVector<float> d = vector(e_.cols, 1), r = vector(n, 2), x = vector(n, 3), inverse = vector(n, 4),
                            product = multiply(1, d, 0, HostVector<float>(at(n), 0.f));
    const Buffer of_d = given(d, stream_), of_r = given(r, stream_), of_x = given(x, stream_),
                 of_inverse = given(inverse, stream_), of_e(stream_.device(), at(n) * sizeof(float));
    product_->multiply(of_d.data(), {of_inverse.data(), of_r.data(), of_x.data(), of_e.data(), 0.5, 0.25, x_lacks_d},
                       stream_);
    const HostVector<float> r_found = taken(of_r, stream_), e_found = taken(of_e, stream_), x_found = taken(of_x, stream_);
    for (std::size_t i = 0; i < at(n); ++i) {
      ASSERT_NEAR(r_found[i], r[i] - product[i], 1e-6 * (1 + std::abs(product[i]))) << "row " << i;
      const double e =
          0.5 * static_cast<double>(inverse[i]) * static_cast<double>(r_found[i]) + 0.25 * static_cast<double>(d[i]);
      ASSERT_NEAR(e_found[i], e, 1e-6 * (1 + std::abs(static_cast<double>(r_found[i])))) << "row " << i;
      const double before = static_cast<double>(x[i]) + (x_lacks_d ? static_cast<double>(d[i]) : 0.0);
      ASSERT_NEAR(x_found[i], before + e, 1e-6 * (2 + std::abs(e))) << "row " << i;
    }
  }
  void update() { product_->update(e_.on_device(stream_), stream_); }
  std::int64_t bytes() const { return product_->bytes(); }

 private:
  const Example& e_;
  ValueType type_;
  Stream& stream_;
  Buffer modes_;
  std::optional<SingleProduct> product_;
};

TEST(GpuSingleProduct, IsThatOfAPlainLoop) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream(Device{Backend::cuda, 0});
  for (Example& e : examples())
    for (const ValueType type : {ValueType::f32, ValueType::f16})
      for (const bool with_modes : {false, true}) {
        if (type == ValueType::f16 && !e.is_square) continue;
        if (type == ValueType::f32 && with_modes) continue;
        SCOPED_TRACE(e.name + (type == ValueType::f16 ? ", f16" : ", f32") + (with_modes ? ", modes" : ""));
        HostVector<double> modes(at(e.cols));
        for (std::size_t i = 0; i < modes.size(); ++i) modes[i] = static_cast<float>(1.5 + std::sin(static_cast<double>(i)));
        e.draw(1, [](std::int64_t) { return 1.0; });
        Tested tested(e, type, with_modes ? &modes : nullptr, stream);
        const auto expect_all = [&] {
          tested.expect_products(with_modes ? &modes : nullptr);
          for (const bool lacks : {false, true})
            if (e.is_square && e.cols == e.rows()) tested.expect_step(lacks);
        };
        expect_all();
        // New values of rows that lie near in size, then far apart: each then needs a scale of its own. And near again.
        for (const double apart : {2.0, 1e6, 3.0}) {
          SCOPED_TRACE(apart);
          e.draw(static_cast<unsigned>(apart), [&](std::int64_t i) { return i % 3 == 1 ? apart : 1 / apart; });
          tested.update();
          expect_all();
          if (HasFatalFailure()) return;
        }
      }
}

TEST(GpuSingleProduct, TakesFewBytesForStencils) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream(Device{Backend::cuda, 0});
  Example e = stencil("27 points", 64, 48, 40, true);
  e.draw(1, [](std::int64_t) { return 1.0; });
  const auto bytes_a_row = [&](ValueType type) {
    return static_cast<double>(Tested(e, type, nullptr, stream).bytes()) / static_cast<double>(e.rows());
  };
  EXPECT_LT(bytes_a_row(ValueType::f32), 26 * 4 + 4 + 16);
  EXPECT_LT(bytes_a_row(ValueType::f16), 26 * 2 + 4 + 14);
}

TEST(GpuSingleProduct, LeavesOtherRows) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream(Device{Backend::cuda, 0});
  Example e = scattered("a very long row", true, 3, 30'000, 9'000, 20'000, 30'000);
  e.draw(1, [](std::int64_t) { return 1.0; });
  EXPECT_FALSE(SingleProduct::takes(e.on_device(stream), ValueType::f32, stream));
  Example few = scattered("few", true, 30, 30, 1, 3, 4);
  few.draw(1, [](std::int64_t) { return 1.0; });
  EXPECT_FALSE(SingleProduct::takes(few.on_device(stream), ValueType::f64, stream));
  BlockRows blocks = few.on_device(stream);
  blocks.row_size = 2;
  EXPECT_FALSE(SingleProduct::takes(blocks, ValueType::f32, stream));
}

}  // namespace
}  // namespace shardmat::blocks
