// Graph convolutions whose work is divided by rows, on a GPU: the bits of those that take whole matrices. They are right if
// those are, see features_test.cpp.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <list>
#include <memory>
#include <random>
#include <vector>

#include "kernels/batched/features_plans.h"
#include "tests/support/batch_zoo.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/plan_check.h"

namespace shardmat {
namespace {

struct Shape {
  std::int64_t in, out, skip;
};

/// Operands of a product, and Y by whole matrices.
class Trial {
 public:
  Trial(const HostBatch& batch, const Shape& shape, Stream& stream)
      : shape_(shape),
        stored_(upload(batch.view(), ValueType::f32, stream)),
        x_(stored_->at.cols(), shape.in, shape.skip, 1000),
        w_(shape.in, shape.out, shape.skip, 300),
        before_(stored_->at.rows(), shape.out, shape.skip, 5000),
        device_x_(x_.entries, stream),
        device_w_(w_.entries, stream) {
    const auto whole = make_features_weights_first(stored_, shape.in, shape.out);
    whole->place(stream);
    const test::Fenced<float> y = operand(stream);
    multiply(*whole, y, stream);
    expected_ = y.read(stream);
  }

  std::unique_ptr<FeaturePlan> plan(int patience, Stream& stream) const {
    auto plan = make_features_tiles(stored_, shape_.in, shape_.out, patience);
    plan->place(stream);
    return plan;
  }
  test::Fenced<float> operand(Stream& stream) const { return {before_.entries, stream}; }
  /// beta = 0, so that the same product may run again.
  void multiply(const FeaturePlan& plan, const test::Fenced<float>& y, Stream& stream) const {
    plan.multiply(device_x_.data(), x_.leading, device_w_.data(), w_.leading, y.data(), before_.leading,
                  {0.5, 0, nullptr, true}, stream);
  }
  void expect_right(const test::Fenced<float>& y, Stream& stream) const {
    EXPECT_EQ(std::memcmp(y.read(stream).data(), expected_.data(), expected_.size() * sizeof(float)), 0);
  }

 private:
  Shape shape_;
  std::shared_ptr<const StoredBatch> stored_;
  test::Dense<float> x_, w_, before_;
  test::Fenced<float> device_x_, device_w_;
  std::vector<float> expected_;
};

HostBatch uneven_batch() {
  std::mt19937 random(5);
  HostBatch batch;
  for (int i = 0; i < 100; ++i) test::add_matrix(batch, 32 + i * 37 % 225, 32 + i * 37 % 225, 5, random);
  return batch;
}

TEST(GpuFeatures, TilesHaveTheBitsOfWholeMatrices) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream(Device{Backend::cuda, 0});
  std::mt19937 random(5);
  HostBatch long_rows, tall, wide;
  for (const int n : {512, 1, 300, 0, 77}) test::add_matrix(long_rows, n, n + 3, 30, random);
  for (int i = 0; i < 40; ++i) test::add_matrix(tall, 300, i % 3, 2, random), test::add_matrix(wide, i % 3, 300, 20, random);
  for (const HostBatch& batch : {uneven_batch(), long_rows, tall, wide})
    for (const Shape& s : {Shape{128, 64, 0}, Shape{128, 32, 0}, Shape{128, 8, 0}, Shape{75, 33, 3}, Shape{40, 7, 1}}) {
      SCOPED_TRACE(
          fmt::format("{} rows, {} columns, {} to {}", batch.first_row.back(), batch.first_col.back(), s.in, s.out));
      const Trial trial(batch, s, stream);
      for (const int patience : {100, 0}) {  // 0: blocks compute what other blocks compute, too
        const auto plan = trial.plan(patience, stream);
        for (int run = 0; run < 3; ++run) {
          const auto y = trial.operand(stream);
          trial.multiply(*plan, y, stream);
          trial.expect_right(y, stream);
        }
      }
      if (testing::Test::HasFailure()) return;
    }
}

TEST(GpuFeatures, TilesRunInGraphsAndOnTwoStreamsAtOnce) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  constexpr int kTimes = 20;
  const Device device{Backend::cuda, 0};
  Stream first(device), second(device);
  const std::array<Stream*, 2> streams{&first, &second};
  const Trial trial(uneven_batch(), {128, 64, 0}, first);
  first.synchronize();
  const std::array plans{trial.plan(100, first), trial.plan(100, second)};
  const std::array operands{trial.operand(first), trial.operand(second)};
  std::list<Graph> graphs;
  for (std::size_t i = 0; i < plans.size(); ++i)
    graphs.emplace_back(*streams[i], [&, i] {
      for (int k = 0; k < 3; ++k) trial.multiply(*plans[i], operands[i], *streams[i]);
    });
  for (int k = 0; k < kTimes; ++k) {
    graphs.front().launch(first);
    graphs.back().launch(second);
    for (std::size_t i = 0; i < plans.size(); ++i) trial.multiply(*plans[i], operands[i], *streams[i]);
  }
  for (std::size_t i = 0; i < plans.size(); ++i) trial.expect_right(operands[i], *streams[i]);
}

}  // namespace
}  // namespace shardmat
