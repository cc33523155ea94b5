// The passes of GMRES over the vectors of a basis: sums and combinations, for all numbers of vectors that a pass takes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/krylov/gmres_steps.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat::krylov {
namespace {

/// A basis of `count` vectors, a vector w and factors, on a device and on the host.
template <class T>
class Case {
 public:
  Case(Backend backend, std::int64_t rows, int columns, int count)
      : stream_({backend, 0}),
        passes_(stream_.device(), columns),
        rows_(rows),
        columns_(columns),
        count_(count),
        apart_((rows * columns + 63) / 64 * 64),
        vectors_(static_cast<std::size_t>(apart_ * (count + 1))),
        factors_(static_cast<std::size_t>(columns * count)),
        memory_(stream_.device(), vectors_.size() * sizeof(T)),
        spread_(stream_.device(), static_cast<std::size_t>(apart_) * sizeof(T)),
        scalars_(stream_.device(), static_cast<std::size_t>(2 * columns * (count + 1)) * sizeof(double)),
        wanted_(stream_.device(), static_cast<std::size_t>(columns) * sizeof(double)) {
    for (std::size_t i = 0; i < vectors_.size(); ++i) vectors_[i] = static_cast<T>(test::value_of(i));
    for (std::size_t i = 0; i < factors_.size(); ++i) factors_[i] = test::value_of(i + 4711) / 8;
    copy_to_device(scalars_.data(), factors_.data(), factors_.size() * sizeof(double), stream_);
    reset();
  }

  template <int W>
  void check_sums() {
    for (const bool self : {false, true}) {
      if (self && count_ == W) continue;
      run(GmresDots<T, W>{basis<W>(nullptr), w(), self, sums()});
      expect_sums(self);
      const std::vector<double> first = found_sums(self);
      run(GmresDots<T, W>{basis<W>(nullptr), w(), self, sums()});
      EXPECT_EQ(found_sums(self), first);
    }
    if (count_ == W) return;
    want(0);
    run(GmresAddDots<T, W>{basis<W>(factors()), w(), sums(), wanted_.template as<double>()});
    expect_w();  // as it was
    want(1);
    run(GmresAddDots<T, W>{basis<W>(factors()), w(), sums(), wanted_.template as<double>()});
    subtract();
    expect_w();
    expect_sums(true);
    reset();
  }

  template <int W>
  void check_combinations() {
    run(GmresAdd<T, W>{basis<W>(factors()), w(), -1, nullptr});
    subtract();
    expect_w();
    reset();
    const double inverse = 0.5;  // of each column
    std::vector<double> inverses(static_cast<std::size_t>(columns_), inverse);
    copy_to_device(sums(), inverses.data(), inverses.size() * sizeof(double), stream_);
    run(GmresAddSpread<T, W, Scaling::none>{basis<W>(factors()), {w(), spread_.template as<T>(), nullptr, sums()}});
    subtract();
    for (std::int64_t i = 0; i < rows_ * columns_; ++i) expected_[static_cast<std::size_t>(i)] *= inverse;
    expect_w();
    std::vector<T> spread(static_cast<std::size_t>(rows_ * columns_)), own(spread.size());
    copy_to_host(spread.data(), spread_.data(), spread.size() * sizeof(T), stream_);
    copy_to_host(own.data(), w(), own.size() * sizeof(T), stream_);
    EXPECT_EQ(spread, own);
    reset();
  }

 private:
  T* w() const { return memory_.template as<T>() + count_ * apart_; }
  const double* factors() const { return scalars_.template as<double>(); }
  double* sums() const { return scalars_.template as<double>() + columns_ * (count_ + 1); }
  template <int W>
  GmresBasis<T, W> basis(const double* h) const {
    return {memory_.template as<T>(), apart_, count_, h, columns_};
  }
  template <class Step>
  void run(const Step& step) {
    passes_.run(step, rows_, stream_);
  }
  double entry(int vector, std::int64_t row, int column) const {
    return static_cast<double>(vectors_[static_cast<std::size_t>(vector * apart_ + row * columns_ + column)]);
  }

  /// Whether all columns want a second time.
  void want(double which) {
    const std::vector<double> all(static_cast<std::size_t>(columns_), which);
    copy_to_device(wanted_.data(), all.data(), wanted_.bytes(), stream_);
  }
  void reset() {
    copy_to_device(memory_.data(), vectors_.data(), memory_.bytes(), stream_);
    const auto first = vectors_.begin() + count_ * apart_;
    expected_.assign(first, first + rows_ * columns_);
  }
  void subtract() {
    for (std::int64_t i = 0; i < rows_; ++i)
      for (int j = 0; j < columns_; ++j)
        for (int v = 0; v < count_; ++v)
          expected_[static_cast<std::size_t>(i * columns_ + j)] -=
              factors_[static_cast<std::size_t>(v * columns_ + j)] * entry(v, i, j);
  }

  /// w as it was found becomes what later sums are expected from.
  void expect_w() {
    std::vector<T> found(expected_.size());
    copy_to_host(found.data(), w(), found.size() * sizeof(T), stream_);
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(found[i]), expected_[i], 4 * unit_roundoff(kType) * (count_ + 2)) << "entry " << i;
      expected_[i] = static_cast<double>(found[i]);
    }
  }

  std::vector<double> found_sums(bool self) {
    std::vector<double> found(static_cast<std::size_t>(columns_ * (count_ + (self ? 1 : 0))));
    copy_to_host(found.data(), sums(), found.size() * sizeof(double), stream_);
    return found;
  }
  void expect_sums(bool self) {
    const std::vector<double> found = found_sums(self);
    for (int v = 0; v < count_ + (self ? 1 : 0); ++v)
      for (int j = 0; j < columns_; ++j) {
        double sum = 0, absolute = 0;
        for (std::int64_t i = 0; i < rows_; ++i) {
          const double of_w = expected_[static_cast<std::size_t>(i * columns_ + j)];
          const double term = of_w * (v == count_ ? of_w : entry(v, i, j));
          sum += term, absolute += std::abs(term);
        }
        ASSERT_NEAR(found[static_cast<std::size_t>(v * columns_ + j)], sum,
                    0x1p-52 * static_cast<double>(rows_ + 2) * absolute)
            << "vector " << v << ", column " << j;
      }
  }

  static constexpr ValueType kType = sizeof(T) == 4 ? ValueType::f32 : ValueType::f64;
  Stream stream_;
  Passes passes_;
  std::int64_t rows_;
  int columns_, count_;
  std::int64_t apart_;
  std::vector<T> vectors_;
  std::vector<double> factors_, expected_;
  Buffer memory_, spread_, scalars_, wanted_;
};

template <class T>
void check(Backend backend) {
  for (const std::int64_t rows : {1, 3, 127, 1000, 40003})
    for (const int columns : {1, 3})
      for (const int count : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32}) {
        SCOPED_TRACE(testing::Message() << rows << " rows, " << columns << " columns, " << count << " vectors");
        if (count > 8 && (backend == Backend::host || (rows > 1000 && columns > 1))) continue;
        Case<T> c(backend, rows, columns, count);
        if (count <= 8) c.template check_sums<8>(), c.template check_combinations<8>();
        if (backend == Backend::host) continue;
        if (count <= 16) c.template check_sums<16>(), c.template check_combinations<16>();
        c.template check_sums<32>(), c.template check_combinations<32>();
      }
}

TEST(Basis, PassesF64) { check<double>(Backend::host); }
TEST(Basis, PassesF32) { check<float>(Backend::host); }
TEST(GpuBasis, PassesF64) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check<double>(Backend::cuda);
}
TEST(GpuBasis, PassesF32) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check<float>(Backend::cuda);
}

}  // namespace
}  // namespace shardmat::krylov
