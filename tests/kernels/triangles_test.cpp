// Solves with incomplete factors on a GPU against plain loops, and the slices that they are made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/at.h"
#include "kernels/base/device.h"
#include "kernels/triangles/factor_solve.h"

namespace shardmat::triangles {
namespace {

template <class T>
HostVector<T> converted(const HostVector<double>& values) {
  HostVector<T> all(values.size());
  std::transform(values.begin(), values.end(), all.begin(), [](double value) { return static_cast<T>(value); });
  return all;
}

/// A strictly triangular matrix whose values are those of its type.
struct Triangle {
  HostVector<std::int64_t> start{0};
  HostVector<std::int32_t> column;
  HostVector<double> value;  ///< column-major blocks
  HostVector<float> narrow;
};

struct Example {
  ValueType type;
  int size;
  std::int64_t count;
  Triangle lower, upper;
  HostVector<double> inverse;
  HostVector<float> narrow_inverse;
  HostVector<std::int32_t> place;

  /// `most`: blocks of a row; `reach`: how far from the diagonal they lie. 0: one block, next to it.
  Example(ValueType t, int s, std::int64_t n, int most, std::int64_t reach) : type(t), size(s), count(n) {
    std::mt19937 random(static_cast<unsigned>(n + 7 * s + most));
    for (Triangle* const triangle : {&lower, &upper})
      for (std::int64_t q = 0; q < n; ++q) {
        std::vector<std::int64_t> before;
        const auto blocks = reach == 0 ? 1 : static_cast<std::int64_t>(random() % static_cast<unsigned>(most + 1));
        for (std::int64_t b = 0; b < std::min(blocks, q); ++b)
          before.push_back(
              q - 1 -
              static_cast<std::int64_t>(random() % static_cast<unsigned>(std::max<std::int64_t>(1, std::min(q, reach)))));
        std::sort(before.begin(), before.end());
        before.erase(std::unique(before.begin(), before.end()), before.end());
        for (const std::int64_t j : before) {
          triangle->column.push_back(static_cast<std::int32_t>(triangle == &lower ? j : n - 1 - j));
          for (int e = 0; e < s * s; ++e) triangle->value.push_back(draw(random) / (s * std::max(most, 1)));
        }
        triangle->start.push_back(std::ssize(triangle->column));
      }
    for (std::int64_t e = 0; e < n * s * s; ++e) inverse.push_back(e / s % s == e % s ? 2 : draw(random) / s);
    round(lower.value, lower.narrow), round(upper.value, upper.narrow), round(inverse, narrow_inverse);
    place.resize(at(n * s));
    std::iota(place.begin(), place.end(), 0);
    std::shuffle(place.begin(), place.end(), random);
  }

  static double draw(std::mt19937& random) { return static_cast<double>(random() % 2001) / 1000 - 1; }
  void round(HostVector<double>& values, HostVector<float>& narrow) const {
    narrow = converted<float>(values);
    if (type == ValueType::f32) values.assign(narrow.begin(), narrow.end());
  }
  HostFactors factors() const {
    const bool f32 = type == ValueType::f32;
    const auto rows = [&](const Triangle& t, bool reversed) {
      const void* const values = f32 ? static_cast<const void*>(t.narrow.data()) : t.value.data();
      return TriangleRows{count, t.start.data(), t.column.data(), values, reversed};
    };
    return {type, size, rows(lower, false), rows(upper, true),
            f32 ? static_cast<const void*>(narrow_inverse.data()) : inverse.data()};
  }

  /// x = b − T·from, rows in the order in which they can be solved.
  void pass(const Triangle& t, bool reversed, const HostVector<double>& b, const HostVector<double>& from,
            HostVector<double>& x) const {
    const std::int64_t s = size;
    for (std::int64_t q = 0; q < count; ++q) {
      const std::int64_t i = reversed ? count - 1 - q : q;
      for (std::int64_t r = 0; r < s; ++r) {
        double sum = b[at(i * s + r)];
        for (std::int64_t k = t.start[at(q)]; k < t.start[at(q + 1)]; ++k)
          for (std::int64_t c = 0; c < s; ++c) sum -= t.value[at((k * s + c) * s + r)] * from[at(t.column[at(k)] * s + c)];
        x[at(i * s + r)] = sum;
      }
    }
  }
  void solve(const Triangle& t, bool reversed, HostVector<double>& b, int sweeps) const {
    HostVector<double> x = b;
    if (sweeps == 0) pass(t, reversed, b, x, x);
    for (int i = 0; i < sweeps; ++i) {
      const HostVector<double> from = x;
      pass(t, reversed, b, from, x);
    }
    b = x;
  }
  /// Of one column.
  HostVector<double> apply(const HostVector<double>& r, int sweeps) const {
    const std::int64_t s = size;
    HostVector<double> x(r.size()), z(r.size()), scaled(r.size(), 0);
    for (std::size_t i = 0; i < r.size(); ++i) x[i] = r[at(place[i])];
    solve(lower, false, x, sweeps);
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t u = 0; u < s; ++u)
        for (std::int64_t c = 0; c < s; ++c) scaled[at(i * s + u)] += inverse[at((i * s + c) * s + u)] * x[at(i * s + c)];
    solve(upper, true, scaled, sweeps);
    for (std::size_t i = 0; i < r.size(); ++i) z[at(place[i])] = scaled[i];
    return z;
  }
};

/// Slices are complete: by levels each row comes after those that it needs, and solving them in their order is the plain
/// loop.
TEST(Triangles, SlicesHaveAllRowsInTheOrderOfTheirLevels) {
  for (const int size : {1, 2, 3, 6})
    for (const bool reversed : {false, true})
      for (const int team : {1, 4, 32}) {
        const Example e(ValueType::f64, size, 300, 9, 60);
        const HostFactors factors = e.factors();
        const TriangleRows& rows = reversed ? factors.upper : factors.lower;
        HostVector<std::int32_t> as_they_are(at(e.count)), number(at(e.count));
        std::iota(as_they_are.begin(), as_they_are.end(), 0);
        const Levels levels = find_levels(rows, as_they_are);
        for (std::int64_t i = 0; i < e.count; ++i) number[at(levels.row[at(i)])] = static_cast<std::int32_t>(i);
        const Slices slices = make_slices(rows, levels, number, size, ValueType::f64, team);
        ASSERT_EQ(slices.level.back(), slices.count());
        ASSERT_EQ(std::ssize(slices.level), levels.count() + 1);
        HostVector<double> b(at(e.count * size)), x(b.size(), std::nan("")), expected = b;
        for (std::size_t i = 0; i < b.size(); ++i) expected[i] = b[i] = static_cast<double>(i % 13) - 6;
        e.solve(reversed ? e.upper : e.lower, reversed, expected, 0);
        const auto* const value = reinterpret_cast<const double*>(slices.value.data());
        const std::int64_t of_slice = kLanes / team, s = size;
        std::int64_t solved = 0;
        for (std::int64_t slice = 0; slice < slices.count(); ++slice)
          for (std::int64_t t = 0; t < of_slice; ++t) {
            const std::int64_t i = slices.row[at(slice * of_slice + t)];
            if (i < 0) continue;
            ++solved;
            const std::int64_t row = levels.row[at(i)];
            for (std::int64_t r = 0; r < s; ++r) {
              double sum = b[at(row * s + r)];
              for (std::int64_t slot = slices.start[at(slice)]; slot < slices.start[at(slice + 1)]; ++slot)
                for (std::int64_t lane = t * team; lane < (t + 1) * team; ++lane) {
                  const std::int64_t column = slices.column[at(slot * kLanes + lane)];
                  for (std::int64_t c = 0; column >= 0 && c < s; ++c)
                    sum -= value[(slot * s * s + c * s + r) * kLanes + lane] *
                           x[at(levels.row[at(column)] * s + c)];  // NaN where it is not solved yet
                }
              x[at(row * s + r)] = sum;
            }
          }
        EXPECT_EQ(solved, e.count);
        for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], expected[i], 1e-12) << i;
      }
}

TEST(Triangles, LevelsAreAsFewAsCanBe) {
  const Example chain(ValueType::f64, 1, 50, 1, 0);
  const HostFactors factors = chain.factors();
  HostVector<std::int32_t> together(50);
  std::iota(together.begin(), together.end(), 0);
  EXPECT_EQ(find_levels(factors.lower, together).count(), 50);
  EXPECT_EQ(find_levels(factors.upper, together).count(), 50);
  EXPECT_EQ(one_level(factors.lower).count(), 1);
  const HostVector<std::int64_t> empty(51, 0);
  EXPECT_EQ(find_levels({50, empty.data(), nullptr, nullptr, false}, together).count(), 1);
  EXPECT_EQ(find_levels({0, empty.data(), nullptr, nullptr, false}, {}).count(), 0);
}

template <class T>
void put(const HostVector<double>& values, const Buffer& to, Stream& stream) {
  const HostVector<T> of_type = converted<T>(values);
  copy_to_device(to.data(), of_type.data(), of_type.size() * sizeof(T), stream);
}
template <class T>
HostVector<double> get(const Buffer& from, std::size_t count, Stream& stream) {
  HostVector<T> values(count);
  copy_to_host(values.data(), from.data(), count * sizeof(T), stream);
  return HostVector<double>(values.begin(), values.end());
}

/// Twice, for what a solve leaves behind; the second time from a graph.
template <class T>
void expect_solved(const Example& e, const Ways& ways, int columns) {
  Stream stream(Device{Backend::cuda, 0});
  const FactorSolve solve(e.factors(), e.place, ways, columns, stream);
  const std::size_t n = e.place.size(), all = n * at(columns);
  const Buffer r(stream.device(), all * sizeof(T)), z(stream.device(), all * sizeof(T));
  const ValueType type = sizeof(T) == 4 ? ValueType::f32 : ValueType::f64;
  std::unique_ptr<Graph> graph;
  for (int time = 0; time < 3; ++time) {
    HostVector<double> values(all);
    for (std::size_t i = 0; i < all; ++i) values[i] = static_cast<double>((i * 7 + at(time)) % 17) - 8;
    put<T>(values, r, stream);
    fill_bytes(z.data(), 0xff, z.bytes(), stream);
    if (time == 0) {
      solve.apply(r.data(), z.data(), type, stream);
    } else {
      if (!graph) graph = std::make_unique<Graph>(stream, [&] { solve.apply(r.data(), z.data(), type, stream); });
      graph->launch(stream);
    }
    const HostVector<double> found = get<T>(z, all, stream);
    for (int j = 0; j < columns; ++j) {
      HostVector<double> of_column(n);
      for (std::size_t i = 0; i < n; ++i) of_column[i] = values[i * at(columns) + at(j)];
      const HostVector<double> expected = e.apply(of_column, ways.sweeps);
      double worst = 0, largest = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double error = std::abs(found[i * at(columns) + at(j)] - expected[i]);
        worst = error <= worst ? worst : error;  // also NaN
        largest = std::max(largest, std::abs(expected[i]));
      }
      const bool exact = e.type == ValueType::f64 && type == ValueType::f64;
      ASSERT_LE(worst, (exact ? 1e-12 : 1e-4) * largest) << "column " << j << ", time " << time;
    }
  }
}

TEST(GpuTriangles, SolvesAreThoseOfPlainLoops) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  struct Shape {
    std::int64_t count;
    int most;
    std::int64_t reach;
  };
  for (const Shape& shape : {Shape{1, 0, 1}, Shape{33, 3, 5}, Shape{3000, 3, 40}, Shape{5000, 4, 5000}, Shape{700, 40, 700}})
    for (const int size : {1, 2, 3, 4, 5, 6})
      for (const ValueType type : {ValueType::f32, ValueType::f64}) {
        const Example e(type, size, shape.count, shape.most, shape.reach);
        for (const Ways& ways : {Ways{0, 0}, Ways{0, 1'000'000}, Ways{1, 0}, Ways{2, 0}, Ways{3, 0}})
          for (const int columns : {1, 3}) {
            SCOPED_TRACE("rows " + std::to_string(shape.count) + " size " + std::to_string(size) + " sweeps " +
                         std::to_string(ways.sweeps) + " launches " + std::to_string(ways.most_launches) + " columns " +
                         std::to_string(columns));
            expect_solved<double>(e, ways, columns);
            expect_solved<float>(e, ways, columns);
          }
      }
}

/// Each row waits for the one before it.
TEST(GpuTriangles, ChainsAreSolved) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  for (const int size : {1, 3}) {
    const Example e(ValueType::f64, size, 20'000, 1, 0);
    for (const int columns : {1, 5}) expect_solved<double>(e, Ways{0, 0}, columns);
  }
}

/// NaN of any kind ends in NaN, never in waiting, and the next solve knows nothing of it.
TEST(GpuTriangles, NotANumberIsNotWaitedFor) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  for (const ValueType type : {ValueType::f32, ValueType::f64}) {
    const Example e(type, 1, 2000, 3, 20);
    Stream stream(Device{Backend::cuda, 0});
    const FactorSolve solve(e.factors(), e.place, Ways{0, 0}, 1, stream);
    const std::size_t n = e.place.size();
    const Buffer r(stream.device(), n * 8), z(stream.device(), n * 8);
    fill_bytes(r.data(), 0xff, r.bytes(), stream);
    solve.apply(r.data(), z.data(), ValueType::f64, stream);
    for (const double value : get<double>(z, n, stream)) ASSERT_TRUE(std::isnan(value));
    const HostVector<double> ones(n, 1), expected = e.apply(ones, 0);
    put<double>(ones, r, stream);
    solve.apply(r.data(), z.data(), ValueType::f64, stream);
    const HostVector<double> found = get<double>(z, n, stream);
    for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(found[i], expected[i], 1e-4 * (1 + std::abs(expected[i])));
  }
}

}  // namespace
}  // namespace shardmat::triangles
