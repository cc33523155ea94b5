// Devices and the thread that calls: no thread has to set a device, and each keeps the one it has.
#include "kernels/base/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/base/device_cuda.h"
#include "kernels/base/parallel.h"
#include "kernels/choose/registry.h"
#include "kernels/vector.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/plan_check.h"

namespace shardmat {
namespace {

TEST(Device, OfTheHostHasTheThreadsOfTheCaller) {
  const ThreadCount three(3);
  EXPECT_EQ(properties(Device{}).multiprocessors, 3);
}

class GpuThreads : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  }
  /// The second GPU if there are two: a new thread's current device is the first.
  const Device device_{Backend::cuda, std::min(1, cuda_device_count() - 1)};

  /// Runs work() on a thread that never set a device, and checks that its current device stays the first.
  template <class F>
  static void on_another_thread(const F& work) {
    available_memory(Device{Backend::cuda, 0});  // an unused first device would not become current again
    std::thread([&] {
      work();
      EXPECT_EQ(cuda::set_device(0), -1) << "the thread's current device was changed";
    }).join();
  }
};

TEST_F(GpuThreads, MakeUseAndFreeObjects) {
  constexpr std::int64_t kCount = 1000;
  on_another_thread([&] {
    Stream stream(device_), other(device_, Stream::Priority::high);
    Event begin(device_), end(device_);
    const Buffer x(device_, kCount * sizeof(double)), y(device_, kCount * sizeof(double));
    HostBuffer back;
    back.reserve(kCount * sizeof(double), device_, true);
    begin.record(stream);
    fill_vector(ValueType::f64, kCount, 2.5, x.data(), stream);
    Graph graph(stream, [&] { combine(ValueType::f64, kCount, 1, {2}, x.data(), {0}, y.data(), stream); });
    graph.launch(stream);
    end.record(stream);
    other.wait_for(end);
    copy_to_host_async(back.data(), y.data(), kCount * sizeof(double), other);
    other.synchronize();
    EXPECT_TRUE(stream.finished());
    EXPECT_GE(end.seconds_since(begin), 0);
    EXPECT_EQ(std::count(back.as<double>(), back.as<double>() + kCount, 5.0), kCount);
    EXPECT_GT(available_memory(device_), 0);
  });
}

TEST_F(GpuThreads, RunEveryKernel) {
  const auto zoo = test::matrix_zoo();
  const auto banded = std::find_if(zoo.begin(), zoo.end(), [](const auto& one) { return one.name == "banded"; });
  ASSERT_NE(banded, zoo.end());
  const HostCsr& m = banded->matrix;
  Stream stream(device_);
  ConversionInput input(m.view(), ValueType::f64, stream);
  for (const Kernel& kernel : kernels()) {
    if (kernel.backend != Backend::cuda) continue;
    SCOPED_TRACE(std::string(kernel.name));
    const Format& format = find_format(kernel.format);
    const Policy layout = format.layouts(input).front();
    std::unique_ptr<Plan> plan;
    on_another_thread([&] {
      const auto storage = store(format, input, layout);
      if (!kernel.supports(*storage)) return;
      plan = make_plan(kernel, storage, kernel.policies(input.rows()).front(), stream);
      test::check_plan<double>(*plan, m, ValueType::f64, stream);
    });
    if (plan) test::check_plan<double>(*plan, m, ValueType::f64, stream);  // made by the other thread
    on_another_thread([&] { plan.reset(); });
  }
}

}  // namespace
}  // namespace shardmat
