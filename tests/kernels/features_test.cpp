// Graph convolutions of batches against a plain f64 loop, on the host and on a GPU: any numbers of features, with and
// without gaps between rows. Outputs are poisoned with NaN, and what lies between their rows must not change.
#include "kernels/batched/features.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/batched/features_plans.h"
#include "tests/support/batch_zoo.h"
#include "tests/support/epilogue_check.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/plan_check.h"

namespace shardmat {
namespace {

using test::add_matrix;
using test::batch_zoo;
using test::Dense;
using test::NamedBatch;

/// `y` is `before` with act(alpha·A·x·w + beta·before + bias) in its entries and all else as it was.
template <class A, class T>
void expect_right(const HostBatch& batch, const Epilogue& e, const std::vector<T>& bias, const Dense<A>& x,
                  const Dense<A>& w, const Dense<T>& before, const std::vector<T>& y, ValueType type) {
  test::EpilogueCheck<T> check(e, bias, before, y, type);
  const auto in = static_cast<std::size_t>(x.columns), out = static_cast<std::size_t>(w.columns);
  std::vector<double> features(in), magnitude(in);
  for (std::size_t i = 0; i + 1 < batch.first_row.size(); ++i)
    for (std::int64_t row = batch.first_row[i]; row < batch.first_row[i + 1]; ++row) {
      features.assign(in, 0), magnitude.assign(in, 0);
      const auto begin = static_cast<std::size_t>(batch.row_ptr[static_cast<std::size_t>(row)]),
                 end = static_cast<std::size_t>(batch.row_ptr[static_cast<std::size_t>(row) + 1]);
      for (std::size_t k = begin; k < end; ++k)
        for (std::size_t f = 0; f < in; ++f) {
          const double term = static_cast<double>(static_cast<A>(batch.values[k])) *
                              x.at(batch.first_col[i] + batch.col_idx[k], static_cast<std::int64_t>(f));
          features[f] += term, magnitude[f] += std::abs(term);
        }
      for (std::size_t j = 0; j < out; ++j) {
        double sum = 0, absolute = 0;
        for (std::size_t f = 0; f < in; ++f) {
          const double weight = w.at(static_cast<std::int64_t>(f), static_cast<std::int64_t>(j));
          sum += features[f] * weight, absolute += magnitude[f] * std::abs(weight);
        }
        const double terms = static_cast<double>(end - begin + in) + 8;  // 8: of three terms of TF32
        ASSERT_TRUE(check.right(row, static_cast<std::int64_t>(j), sum, absolute, terms)) << "matrix " << i;
      }
    }
  check.expect_rest_untouched();
}

template <class A, class T>
void check_plan(const FeaturePlan& plan, const HostBatch& batch, std::int64_t skip, Stream& stream) {
  const DeviceBatch& stored = plan.batch();
  const Dense<A> x(stored.at.cols(), plan.in(), skip, 1000), w(plan.in(), plan.out(), skip, 300);
  const test::Fenced<A> device_x(x.entries, stream), device_w(w.entries, stream);
  std::vector<T> bias(static_cast<std::size_t>(plan.out()));
  for (std::size_t j = 0; j < bias.size(); ++j) bias[j] = static_cast<T>(test::value_of(9000 + j));
  const test::Fenced<T> device_bias(bias, stream);
  for (const Epilogue& e : {Epilogue{}, Epilogue{-0.5, 0, nullptr, true}, Epilogue{0.25, -2, device_bias.data(), false}}) {
    Dense<T> before(stored.at.rows(), plan.out(), skip, 5000);
    for (std::int64_t i = 0; i < stored.at.rows() && e.beta == 0; ++i)
      for (std::int64_t j = 0; j < plan.out(); ++j) before.at(i, j) = std::numeric_limits<T>::quiet_NaN();
    const test::Fenced<T> device_y(before.entries, stream), again(before.entries, stream);
    plan.multiply(device_x.data(), x.leading, device_w.data(), w.leading, device_y.data(), before.leading, e, stream);
    const std::vector<T> y = device_y.read(stream);
    expect_right(batch, e, e.bias == nullptr ? std::vector<T>{} : bias, x, w, before, y, stored.type);
    plan.multiply(device_x.data(), x.leading, device_w.data(), w.leading, again.data(), before.leading, e, stream);
    if (!y.empty()) {
      EXPECT_EQ(std::memcmp(y.data(), again.read(stream).data(), y.size() * sizeof(T)), 0) << "not bit-identical";
    }
  }
  EXPECT_EQ(device_x.read(stream), x.entries) << "X was changed";
  EXPECT_EQ(device_w.read(stream), w.entries) << "W was changed";
}

struct Shape {
  std::int64_t in, out, skip;
};
/// Every width of the kernels on a GPU, whole and not, with rows that can be loaded and stored at once and that cannot.
constexpr Shape kShapes[] = {{1, 1, 0},   {3, 2, 1},   {8, 8, 0},    {16, 64, 0}, {16, 33, 0},  {17, 40, 3},
                             {31, 32, 1}, {32, 40, 0}, {32, 32, 4},  {64, 64, 0}, {64, 31, 0},  {64, 32, 0},
                             {63, 64, 0}, {75, 64, 0}, {65, 128, 4}, {128, 7, 0}, {128, 32, 0}, {128, 128, 0}};

/// Shapes with groups of columns of every width.
constexpr Shape kFewShapes[] = {{3, 2, 1}, {31, 32, 1}, {64, 31, 0}, {65, 128, 4}, {128, 7, 0}};

void conform(Device device, const std::vector<ValueType>& types, std::span<const Shape> shapes = kShapes) {
  constexpr std::int64_t kMostOnHost = 4'000'000;  // products with weights
  Stream stream(device);
  std::size_t plans = 0;
  for (const NamedBatch& zoo : batch_zoo())
    for (const ValueType type : types) {
      const auto batch = upload(zoo.batch.view(), type, stream);
      for (const Shape& s : shapes) {
        if (device.backend == Backend::host && s.in * s.out * batch->at.rows() > kMostOnHost) continue;
        SCOPED_TRACE(fmt::format("{} {} {} to {} skip {}", zoo.name, name(type), s.in, s.out, s.skip));
        const auto plan = make_feature_plan(batch, s.in, s.out);
        plan->place(stream);
        dispatch_operands(type, [&](auto of_a, auto of_sum) {
          check_plan<typename decltype(of_a)::type, typename decltype(of_sum)::type>(*plan, zoo.batch, s.skip, stream);
        });
        if (testing::Test::HasFatalFailure()) return;
        ++plans;
      }
    }
  EXPECT_GT(plans, shapes.size() * types.size());
}

constexpr auto kAllTypes = {ValueType::f64, ValueType::f32, ValueType::f16, ValueType::bf16};

TEST(Features, Conform) { conform({Backend::host, 0}, kAllTypes); }

TEST(Features, ConformWithLowerInstructionSets) {
  for (const Isa isa : test::instruction_sets()) {
    if (isa == instruction_set()) continue;
    SCOPED_TRACE(std::string(name(isa)));
    const IsaScope scope(isa);
    conform({Backend::host, 0}, kAllTypes, kFewShapes);
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// A feature of Y has the same bits for all threads, and for all numbers of features with the same order of the two
/// products.
template <class A, class T>
void expect_same_bits(const NamedBatch& zoo, ValueType type, Stream& stream) {
  constexpr std::int64_t kIn = 19, kMost = 77;
  const auto batch = upload(zoo.batch.view(), type, stream);
  const Dense<A> x(batch->at.cols(), kIn, 0, 1000), w(kIn, kMost, 0, 300);
  const std::vector<T> bias(kMost, static_cast<T>(0.1));
  const auto product = [&](std::int64_t out) {
    const auto plan = make_feature_plan(batch, kIn, out);
    plan->place(stream);
    std::vector<T> y(static_cast<std::size_t>(batch->at.rows() * out), static_cast<T>(0.3));
    plan->multiply(x.entries.data(), kIn, w.entries.data(), kMost, y.data(), out, {0.3, -0.7, bias.data(), true}, stream);
    return y;
  };
  for (const auto& [most, fewer] :
       {std::pair<std::size_t, std::vector<std::int64_t>>{kIn - 1, {1, 2, 7, 16}}, {std::size_t{kMost}, {33, 64}}}) {
    const std::vector<T> all = product(static_cast<std::int64_t>(most));
    for (const int threads : {1, 3})
      for (const std::int64_t out : fewer) {
        SCOPED_TRACE(fmt::format("{} threads, {} features", threads, out));
        const ThreadCount scope(threads);
        const std::vector<T> y = product(out);
        const auto width = static_cast<std::size_t>(out);
        for (std::size_t i = 0; i < static_cast<std::size_t>(batch->at.rows()); ++i)
          ASSERT_EQ(std::memcmp(&y[i * width], &all[i * most], width * sizeof(T)), 0) << "row " << i;
      }
  }
}
TEST(Features, HaveTheSameBitsForAllWidthsAndThreads) {
  Stream stream({Backend::host, 0});
  for (const Isa isa : test::instruction_sets())
    for (const NamedBatch& zoo : batch_zoo())
      for (const ValueType type : kAllTypes) {
        SCOPED_TRACE(fmt::format("{} {} {}", name(isa), zoo.name, name(type)));
        const IsaScope scope(isa);
        dispatch_operands(type, [&](auto of_a, auto of_sum) {
          expect_same_bits<typename decltype(of_a)::type, typename decltype(of_sum)::type>(zoo, type, stream);
        });
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(GpuFeatures, Conform) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  conform({Backend::cuda, 0}, {ValueType::f32});
}

/// Batches that fill a GPU, where a block takes more columns of W than it does of small ones.
TEST(GpuFeatures, LargeBatches) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream(Device{Backend::cuda, 0});
  HostBatch batch;
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) add_matrix(batch, 15 + i % 31, 15 + i % 31, 9, random);
  const auto device = upload(batch.view(), ValueType::f32, stream);
  for (const Shape& s : {Shape{16, 8, 0}, Shape{48, 32, 0}, Shape{33, 31, 3}, Shape{64, 64, 0}, Shape{17, 50, 1},
                         Shape{128, 128, 0}, Shape{65, 101, 4}}) {
    SCOPED_TRACE(fmt::format("{} to {} skip {}", s.in, s.out, s.skip));
    const auto plan = make_feature_plan(device, s.in, s.out);
    plan->place(stream);
    check_plan<float, float>(*plan, batch, s.skip, stream);
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// Matrices of the most rows that X·W first takes, with more entries than a block has room for, beside others.
void take_most_rows(Device device) {
  Stream stream(device);
  std::mt19937 random(9);
  HostBatch batch, more;
  for (const auto& [rows, cols, entries] : {std::array{512, 512, 20}, {512, 1, 1}, {1, 512, 200}, {0, 3, 0}, {30, 0, 0}})
    add_matrix(batch, rows, cols, entries, random);
  add_matrix(more, 513, 4, 2, random);
  EXPECT_FALSE(weights_first(upload(more.view(), ValueType::f32, stream)->at, 128, 32));
  const auto stored = upload(batch.view(), ValueType::f32, stream);
  for (const Shape& s : {Shape{20, 17, 0}, Shape{128, 64, 0}}) {
    SCOPED_TRACE(fmt::format("{} to {}", s.in, s.out));
    EXPECT_TRUE(weights_first(stored->at, s.in, s.out));
    EXPECT_FALSE(weights_first(stored->at, s.out, s.in));
    const auto plan = make_feature_plan(stored, s.in, s.out);
    plan->place(stream);
    check_plan<float, float>(*plan, batch, s.skip, stream);
    if (testing::Test::HasFatalFailure()) return;
  }
}
TEST(Features, WeightsFirstTakeMatricesUpTo512Rows) { take_most_rows({Backend::host, 0}); }
TEST(GpuFeatures, WeightsFirstTakeMatricesUpTo512Rows) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  take_most_rows({Backend::cuda, 0});
}

/// Work is divided by rows where matrices are large, rows short, and the batch is not, see divided_by_rows().
TEST(Features, BatchesWhoseWorkIsDividedByRows) {
  const auto divided = [](std::int64_t count, std::int64_t rows, std::int64_t of_row, std::int64_t in, std::int64_t out) {
    std::vector<std::int64_t> first, entries;
    for (std::int64_t i = 0; i <= count; ++i) first.push_back(i * rows), entries.push_back(i * rows * of_row);
    return divided_by_rows(BatchOffsets(first, first, entries), in, out, 132);
  };
  EXPECT_TRUE(divided(100, 256, 3, 128, 64));
  EXPECT_TRUE(divided(100, 200, 5, 32, 8));
  EXPECT_FALSE(divided(100, 200, 6, 32, 8));    // long rows
  EXPECT_FALSE(divided(100, 256, 3, 32, 8));    // many rows of few features
  EXPECT_FALSE(divided(200, 256, 3, 128, 64));  // many rows
  EXPECT_FALSE(divided(100, 256, 3, 128, 65));
  EXPECT_FALSE(divided(100, 256, 3, 64, 64));
  EXPECT_FALSE(divided(10, 513, 3, 128, 64));
  EXPECT_TRUE(divided(100, 64, 3, 128, 32));
  EXPECT_FALSE(divided(100, 64, 3, 128, 64));
  EXPECT_FALSE(divided(100, 64, 3, 64, 32));
  EXPECT_FALSE(divided(400, 64, 3, 128, 32));
  EXPECT_FALSE(divided(100, 32, 3, 128, 32));
}

/// A matrix that turns the order of its rows round.
HostBatch reversal(std::int64_t rows) {
  HostBatch batch;
  batch.first_row = batch.first_col = {0, rows};
  for (std::int64_t i = 0; i < rows; ++i) {
    batch.col_idx.push_back(static_cast<std::int32_t>(rows - 1 - i));
    batch.values.push_back(1);
    batch.row_ptr.push_back(i + 1);
  }
  return batch;
}

/// Sums of many terms of one sign, where what is cut off every time would add up.
void expect_accurate(Device device) {
  constexpr std::int64_t kRows = 60'000, kIn = 128, kOut = 8;  // more rows than a GPU takes at once
  Stream stream(device);
  const auto plan = make_feature_plan(upload(reversal(kRows).view(), ValueType::f32, stream), kIn, kOut);
  plan->place(stream);
  Dense<float> x(kRows, kIn, 0, 1), w(kIn, kOut, 0, 2);
  for (float& v : x.entries) v = std::abs(v);
  for (float& v : w.entries) v = std::abs(v);
  const test::Fenced<float> device_x(x.entries, stream), device_w(w.entries, stream),
      device_y(std::vector<float>(kRows * kOut), stream);
  plan->multiply(device_x.data(), kIn, device_w.data(), kOut, device_y.data(), kOut, {}, stream);
  const std::vector<float> y = device_y.read(stream);
  const Dense<float>&x_read = x, &w_read = w;
  double errors = 0;
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kOut; ++j) {
      double sum = 0;
      for (std::int64_t f = 0; f < kIn; ++f) sum += x_read.at(kRows - 1 - i, f) * w_read.at(f, j);
      errors += std::abs(static_cast<double>(y[static_cast<std::size_t>(i * kOut + j)]) - sum) / sum;
    }
  EXPECT_LT(errors / (kRows * kOut), 6 * unit_roundoff(ValueType::f32));
}
TEST(Features, AddUpManyTermsOfOneSign) { expect_accurate({Backend::host, 0}); }
TEST(GpuFeatures, AddUpManyTermsOfOneSign) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  expect_accurate({Backend::cuda, 0});
}

/// A feature or weight that is no number, or too large for TF32, makes NaN of its row or column of Y, and of nothing else.
TEST(GpuFeatures, WhatIsNoNumberSpreads) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  constexpr std::int64_t kRows = 100, kOfX = 7, kIn = 5, kOut = 3;  // where it stands
  Stream stream(Device{Backend::cuda, 0});
  const auto device = upload(reversal(kRows).view(), ValueType::f32, stream);
  using Limits = std::numeric_limits<float>;
  for (const Shape& s : {Shape{64, 64, 0}, Shape{33, 31, 0}}) {
    const auto plan = make_feature_plan(device, s.in, s.out);
    plan->place(stream);
    const auto product = [&](const Dense<float>& x, const Dense<float>& w) {
      const test::Fenced<float> of_x(x.entries, stream), of_w(w.entries, stream),
          of_y(std::vector<float>(static_cast<std::size_t>(kRows * s.out)), stream);
      plan->multiply(of_x.data(), s.in, of_w.data(), s.out, of_y.data(), s.out, {1, 0, nullptr, true}, stream);
      return of_y.read(stream);
    };
    const Dense<float> x(kRows, s.in, 0, 1), w(s.in, s.out, 0, 2);
    const std::vector<float> usual = product(x, w);
    for (const float value : {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(), Limits::max(), -Limits::max()})
      for (const bool in_x : {true, false}) {
        SCOPED_TRACE(fmt::format("{} to {}: {} in {}", s.in, s.out, value, in_x ? "X" : "W"));
        Dense<float> other_x = x, other_w = w;
        (in_x ? other_x.at(kOfX, kIn) : other_w.at(kIn, kOut)) = value;
        const std::vector<float> y = product(other_x, other_w);
        for (std::int64_t i = 0; i < kRows; ++i)
          for (std::int64_t j = 0; j < s.out; ++j) {
            const auto place = static_cast<std::size_t>(i * s.out + j);
            if (in_x ? i == kRows - 1 - kOfX : j == kOut)
              ASSERT_TRUE(std::isnan(y[place])) << i << ", " << j << ": " << y[place];
            else ASSERT_EQ(y[place], usual[place]) << i << ", " << j;
          }
      }
  }
}

/// X and Y not where an allocation begins, and so not where several entries can be loaded or stored at once.
TEST(GpuFeatures, OperandsAtAnyPlace) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream(Device{Backend::cuda, 0});
  const HostBatch batch = batch_zoo().front().batch;
  const auto plan = make_feature_plan(upload(batch.view(), ValueType::f32, stream), 64, 64);
  plan->place(stream);
  const Dense<float> x(plan->batch().at.cols(), 64, 0, 1), w(64, 64, 0, 2);
  const test::Fenced<float> weights(w.entries, stream);
  std::vector<std::vector<float>> results;
  for (const std::size_t by : {0, 1, 2}) {
    std::vector<float> shifted(by);
    shifted.insert(shifted.end(), x.entries.begin(), x.entries.end());
    const std::vector<float> room(static_cast<std::size_t>(plan->batch().at.rows()) * 64 + by);
    const test::Fenced<float> device_x(shifted, stream), device_y(room, stream);
    plan->multiply(device_x.data() + by, 64, weights.data(), 64, device_y.data() + by, 64, {}, stream);
    const std::vector<float> y = device_y.read(stream);
    results.emplace_back(y.begin() + static_cast<std::ptrdiff_t>(by), y.end());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

/// Layers whose X is the Y before, launched while the one before is at work: the same bits as with a wait behind each.
TEST(GpuFeatures, ChainsOfLayers) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream(Device{Backend::cuda, 0});
  std::mt19937 random(5);
  HostBatch batch;
  for (int i = 0; i < 400; ++i) add_matrix(batch, 20 + i % 30, 20 + i % 30, 4, random);
  const auto device = upload(batch.view(), ValueType::f32, stream);
  const auto plan = make_feature_plan(device, 64, 64);
  plan->place(stream);
  const Dense<float> x(device->at.rows(), 64, 0, 1), w(64, 64, 0, 2);
  const test::Fenced<float> weights(w.entries, stream);
  const auto run = [&](bool waiting) {
    const test::Fenced<float> a(x.entries, stream), b(x.entries, stream);
    for (int i = 0; i < 16; ++i) {
      plan->multiply(i % 2 == 0 ? a.data() : b.data(), 64, weights.data(), 64, i % 2 == 0 ? b.data() : a.data(), 64,
                     {0.125, 0, nullptr, true}, stream);
      if (waiting) stream.synchronize();
    }
    return a.read(stream);
  };
  const std::vector<float> expected = run(true);
  for (int repetition = 0; repetition < 20; ++repetition) ASSERT_EQ(run(false), expected) << "repetition " << repetition;
}

/// The message of the usage error that f() throws; empty if it throws none.
template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    return e.what();
  }
  return {};
}

TEST(Features, RefuseWhatTheyCannotTake) {
  Stream stream(Device{Backend::host, 0});
  HostBatch batch;
  std::mt19937 random(5);
  add_matrix(batch, 3, 3, 2, random);
  const auto csr = upload(batch.view(), ValueType::f32, stream);
  const auto plan = make_feature_plan(csr, 4, 2);
  plan->place(stream);
  std::vector<float> room(64);
  const auto multiply = [&](std::int64_t ldx, std::int64_t ldw, std::int64_t ldy) {
    plan->multiply(room.data(), ldx, room.data(), ldw, room.data(), ldy, {}, stream);
  };
  EXPECT_NE(refusal([&] { multiply(3, 2, 2); }).find("of X is 3"), std::string::npos);
  EXPECT_NE(refusal([&] { multiply(4, 1, 2); }).find("of W is 1"), std::string::npos);
  EXPECT_NE(refusal([&] { multiply(4, 2, 1); }).find("of Y is 1"), std::string::npos);
  EXPECT_NE(refusal([&] { make_feature_plan(csr, 0, 2); }).find("0 features in"), std::string::npos);
  EXPECT_THROW(make_feature_plan(upload(to_coo(batch.view(), 3).view(), ValueType::f32, stream), 4, 2), Error);
}

TEST(GpuFeatures, RefuseWhatTheyCannotTake) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream(Device{Backend::cuda, 0});
  HostBatch batch;
  std::mt19937 random(5);
  add_matrix(batch, 3, 3, 2, random);
  EXPECT_NE(refusal([&] { make_feature_plan(upload(batch.view(), ValueType::f32, stream), 129, 2); }).find("dense library"),
            std::string::npos);
  EXPECT_THROW(make_feature_plan(upload(batch.view(), ValueType::f64, stream), 4, 2), Error);
}

}  // namespace
}  // namespace shardmat
