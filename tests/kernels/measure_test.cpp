#include "kernels/measure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/choose/registry.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

struct NoStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {}; }
};

/// Counts its products, each of which takes at least `milliseconds`.
class SlowPlan final : public Plan {
 public:
  explicit SlowPlan(int milliseconds) : Plan(std::make_shared<NoStorage>()), milliseconds_(milliseconds) {}
  void multiply(double, const void*, double, void*, Stream&) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_));
    ++products;
  }
  mutable int products = 0;

 private:
  int milliseconds_;
};

TEST(TimeProduct, TakesTheRepetitionsAskedFor) {
  Stream stream({Backend::host, 0});
  const SlowPlan plan(2);
  TimingOptions options;
  options.repetitions = 4;
  const Timing timing = time_product(plan, nullptr, nullptr, stream, options);
  EXPECT_EQ(timing.repetitions, 4);
  EXPECT_EQ(plan.products, 2 + 4);
  EXPECT_GE(timing.min, 0.002);
  EXPECT_LE(timing.min, timing.median);
  EXPECT_LE(timing.median, timing.max);
}

TEST(TimeProduct, RepeatsASlowProductLessOften) {
  Stream stream({Backend::host, 0});
  const SlowPlan plan(10);
  TimingOptions options;
  options.repetitions = 1000;
  options.most_seconds = 0.001;
  EXPECT_EQ(time_product(plan, nullptr, nullptr, stream, options).repetitions, 3);
}

TEST(TimeProduct, DoesNotRepeatAHopelessProductThatWarmUpsTell) {
  Stream stream({Backend::host, 0});
  const SlowPlan plan(5);
  TimingOptions options;
  options.warm_ups = 3;
  options.hopeless_seconds = 0.004;
  const Timing timing = time_product(plan, nullptr, nullptr, stream, options);
  EXPECT_EQ(timing.repetitions, 0);
  EXPECT_GE(timing.median, 0.005);
  EXPECT_EQ(plan.products, 3);
}

TEST(TimeProduct, RepeatsAHopelessProductTwiceAfterOneWarmUp) {
  Stream stream({Backend::host, 0});
  const SlowPlan plan(5);
  TimingOptions options;
  options.warm_ups = 1;
  options.hopeless_seconds = 0.004;
  EXPECT_EQ(time_product(plan, nullptr, nullptr, stream, options).repetitions, 2);
  EXPECT_EQ(plan.products, 1 + 2);
}

TEST(TimeProduct, WarmsUpAsLongAsAsked) {
  Stream stream({Backend::host, 0});
  const SlowPlan plan(1);
  TimingOptions options;
  options.repetitions = 1;
  options.warm_up_seconds = 0.25;
  const auto begun = std::chrono::steady_clock::now();
  time_product(plan, nullptr, nullptr, stream, options);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(250));
  EXPECT_GT(plan.products, 3);
}

void flush_between_products(Backend backend) {
  Stream stream({backend, 0});
  const HostCsr m = test::matrix_zoo().back().matrix;
  ConversionInput input(m.view(), ValueType::f64, stream);
  const Kernel& kernel =
      *std::find_if(kernels().begin(), kernels().end(), [&](const Kernel& k) { return k.backend == backend; });
  const auto plan =
      make_plan(kernel, store(find_format(kernel.format), input, find_format(kernel.format).layouts(input).front()),
                kernel.policies(input.rows()).front(), stream);
  const Buffer x(stream.device(), 8 * static_cast<std::size_t>(m.cols)),
      y(stream.device(), 8 * static_cast<std::size_t>(m.rows));
  fill_bytes(x.data(), 0, x.bytes(), stream);
  CacheFlush flush(stream.device());
  TimingOptions options;
  options.flush = &flush;
  const auto begun = std::chrono::steady_clock::now();
  const Timing timing = time_product(*plan, x.data(), y.data(), stream, options);
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begun;
  EXPECT_EQ(timing.repetitions, 9);
  EXPECT_LT(9 * timing.min, all.count() / 2) << "the flush counts as part of the product";
}

TEST(TimeProduct, FlushIsNotTimedOnTheHost) { flush_between_products(Backend::host); }
TEST(GpuTimeProduct, FlushIsNotTimedOnTheGpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  flush_between_products(Backend::cuda);
}

}  // namespace
}  // namespace shardmat
