// The C interface as a binding uses it: memory and stream of the caller, sizes asked for first.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/batched/shardmat_batched.h"

namespace shardmat {
namespace {

/// Two matrices, 2 × 3 and 1 × 1, in memory of a device.
struct Example {
  Stream stream;
  std::vector<std::int64_t> first_row{0, 2, 3}, first_col{0, 3, 4}, first_entry{0, 3, 4};
  Buffer row_ptr, col_idx, values, x, y, bias;
  shardmat_batch batch{};

  explicit Example(Device device) : stream(device) {
    row_ptr = on_device<std::int32_t>({0, 2, 3, 4});
    col_idx = on_device<std::int32_t>({0, 2, 1, 0});
    values = on_device<float>({1, 2, 3, 4});
    x = on_device<float>({1, 2, 3, 4, 5, 6, 7, 8});
    y = on_device<float>({NAN, NAN, NAN, NAN, NAN, NAN});
    bias = on_device<float>({-20, 1});
    batch = {device.backend == Backend::host ? -1 : 0,
             SHARDMAT_F32,
             2,
             first_row.data(),
             first_col.data(),
             first_entry.data(),
             row_ptr.as<std::int32_t>(),
             nullptr,
             col_idx.as<std::int32_t>(),
             values.data()};
  }
  template <class T>
  Buffer on_device(const std::vector<T>& entries) {
    Buffer buffer(stream.device(), entries.size() * sizeof(T));
    copy_to_device(buffer.data(), entries.data(), buffer.bytes(), stream);
    return buffer;
  }
  template <class T>
  std::vector<T> read(const Buffer& buffer) {
    std::vector<T> entries(buffer.bytes() / sizeof(T));
    copy_to_host(entries.data(), buffer.data(), buffer.bytes(), stream);
    return entries;
  }
};

void convolve_on(Device device) {
  Example e(device);
  shardmat_batched_plan* plan = nullptr;
  ASSERT_EQ(shardmat_batched_features_create(&e.batch, 2, 3, &plan), SHARDMAT_OK) << shardmat_last_error();
  EXPECT_EQ(std::string(shardmat_batched_plan_kernel(plan)), "");
  const Buffer work(device, shardmat_batched_plan_work_bytes(plan) + 1), w = e.on_device<float>({1, 0, 2, 0, 1, -1}),
                                                                         y = e.on_device<float>(std::vector<float>(9, NAN)),
                                                                         bias = e.on_device<float>({0, 0, -5});
  std::vector<char> staging(shardmat_batched_plan_staging_bytes(plan) + 1);
  const auto convolve = [&](const shardmat_batched_plan* of, std::int64_t ldw) {
    return shardmat_batched_features(of, 1, e.x.data(), 2, w.data(), ldw, 0, y.data(), 3, bias.data(), 1, e.stream.native());
  };
  EXPECT_EQ(convolve(plan, 3), SHARDMAT_USAGE);
  EXPECT_NE(std::string(shardmat_last_error()).find("call shardmat_batched_plan_place()"), std::string::npos);
  ASSERT_EQ(shardmat_batched_plan_place(plan, work.data(), staging.data(), e.stream.native()), SHARDMAT_OK);
  ASSERT_EQ(convolve(plan, 3), SHARDMAT_OK) << shardmat_last_error();
  EXPECT_EQ(e.read<float>(y), (std::vector<float>{11, 14, 3, 9, 12, 1, 28, 32, 19}));
  EXPECT_EQ(convolve(plan, 2), SHARDMAT_USAGE);
  EXPECT_NE(std::string(shardmat_last_error()).find("of W is 2"), std::string::npos);
  EXPECT_EQ(shardmat_batched_multiply(plan, 1, e.x.data(), 2, 0, e.y.data(), 2, nullptr, 0, e.stream.native()),
            SHARDMAT_USAGE);
  shardmat_batched_plan_destroy(plan);
  ASSERT_EQ(shardmat_batched_plan_create(&e.batch, 2, nullptr, nullptr, &plan), SHARDMAT_OK);
  EXPECT_EQ(convolve(plan, 3), SHARDMAT_USAGE);
  shardmat_batched_plan_destroy(plan);
  EXPECT_EQ(shardmat_batched_features_create(&e.batch, 0, 3, &plan), SHARDMAT_USAGE);
}

void multiply_on(Device device) {
  Example e(device);
  ASSERT_EQ(shardmat_batched_check(&e.batch, e.stream.native()), SHARDMAT_OK) << shardmat_last_error();
  shardmat_batched_plan* plan = nullptr;
  ASSERT_EQ(shardmat_batched_plan_create(&e.batch, 2, nullptr, nullptr, &plan), SHARDMAT_OK) << shardmat_last_error();
  EXPECT_FALSE(std::string(shardmat_batched_plan_kernel(plan)).empty());
  const Buffer work(device, shardmat_batched_plan_work_bytes(plan) + 1);
  std::vector<char> staging(shardmat_batched_plan_staging_bytes(plan) + 1);
  EXPECT_EQ(shardmat_batched_multiply(plan, 1, e.x.data(), 2, 0, e.y.data(), 2, nullptr, 0, e.stream.native()),
            SHARDMAT_USAGE);
  EXPECT_NE(std::string(shardmat_last_error()).find("call shardmat_batched_plan_place()"), std::string::npos);
  ASSERT_EQ(shardmat_batched_plan_place(plan, work.data(), staging.data(), e.stream.native()), SHARDMAT_OK);
  for (const double alpha : {0.0, 1.0})
    for (const std::int64_t ldx :
         {std::int64_t{-1}, std::int64_t{1}, std::int64_t{1} << 50, std::numeric_limits<std::int64_t>::max()})
      EXPECT_EQ(shardmat_batched_multiply(plan, alpha, e.x.data(), ldx, 0, e.y.data(), 2, nullptr, 0, e.stream.native()),
                SHARDMAT_USAGE)
          << alpha << ' ' << ldx << ' ' << shardmat_last_error();
  ASSERT_EQ(shardmat_batched_multiply(plan, 1, e.x.data(), 2, 0, e.y.data(), 2, nullptr, 0, e.stream.native()), SHARDMAT_OK);
  EXPECT_EQ(e.read<float>(e.y), (std::vector<float>{11, 14, 9, 12, 28, 32}));
  ASSERT_EQ(shardmat_batched_multiply(plan, 1, e.x.data(), 2, 0, e.y.data(), 2, e.bias.data(), 1, e.stream.native()),
            SHARDMAT_OK);
  EXPECT_EQ(e.read<float>(e.y), (std::vector<float>{0, 15, 0, 13, 8, 33}));
  EXPECT_EQ(shardmat_batched_multiply(plan, 1, e.x.data(), 1, 0, e.y.data(), 2, nullptr, 0, e.stream.native()),
            SHARDMAT_USAGE);
  EXPECT_NE(std::string(shardmat_last_error()).find("leading dimension"), std::string::npos);
  shardmat_batched_plan_destroy(plan);

  std::size_t bytes = 0;
  ASSERT_EQ(shardmat_batched_transpose_work_bytes(&e.batch, &bytes), SHARDMAT_OK);
  const Buffer space(device, bytes + 1), rows(device, 5 * 4), cols(device, 4 * 4), values(device, 4 * 4);
  const Buffer offsets = e.on_device<std::int32_t>({0, 2, 3, 0, 3, 4});
  ASSERT_EQ(shardmat_batched_transpose(&e.batch, offsets.as<std::int32_t>(), rows.as<std::int32_t>(),
                                       cols.as<std::int32_t>(), values.data(), space.data(), e.stream.native()),
            SHARDMAT_OK);
  EXPECT_EQ(e.read<std::int32_t>(rows), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(e.read<std::int32_t>(cols), (std::vector<std::int32_t>{0, 1, 0, 0}));
  EXPECT_EQ(e.read<float>(values), (std::vector<float>{1, 3, 2, 4}));

  const std::int32_t outside = 3;
  copy_to_device(e.col_idx.as<std::int32_t>() + 1, &outside, sizeof outside, e.stream);
  EXPECT_EQ(shardmat_batched_check(&e.batch, e.stream.native()), SHARDMAT_INPUT);
  EXPECT_EQ(std::string(shardmat_last_error()), "matrix 0, entry 1: column 3 is outside its 2 × 3");
}

TEST(BatchedC, MultipliesInPlace) { multiply_on(Device{}); }
TEST(GpuBatchedC, MultipliesInPlace) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  multiply_on(Device{Backend::cuda, 0});
}

TEST(BatchedC, ConvolvesFeatures) { convolve_on(Device{}); }
TEST(GpuBatchedC, ConvolvesFeatures) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  convolve_on(Device{Backend::cuda, 0});
}

/// A framework's stream may be CUDA's default one, NULL.
TEST(GpuBatchedC, TakesTheDefaultStream) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  const Device device{Backend::cuda, 0};
  Example e(device);
  e.stream.synchronize();
  shardmat_batched_plan* plan = nullptr;
  ASSERT_EQ(shardmat_batched_plan_create(&e.batch, 2, "rows", nullptr, &plan), SHARDMAT_OK) << shardmat_last_error();
  const Buffer work(device, shardmat_batched_plan_work_bytes(plan));
  ASSERT_EQ(shardmat_batched_plan_place(plan, work.data(), nullptr, nullptr), SHARDMAT_OK) << shardmat_last_error();
  ASSERT_EQ(shardmat_batched_multiply(plan, 1, e.x.data(), 2, 0, e.y.data(), 2, nullptr, 0, nullptr), SHARDMAT_OK);
  ASSERT_EQ(shardmat_batched_check(&e.batch, nullptr), SHARDMAT_OK);  // waits
  Stream::borrowed(device, nullptr).synchronize();
  EXPECT_EQ(e.read<float>(e.y), (std::vector<float>{11, 14, 9, 12, 28, 32}));
  shardmat_batched_plan_destroy(plan);
}

TEST(BatchedC, RefusesNonsense) {
  Example e(Device{});
  shardmat_batched_plan* plan = nullptr;
  EXPECT_EQ(shardmat_batched_plan_create(nullptr, 2, nullptr, nullptr, &plan), SHARDMAT_USAGE);
  EXPECT_EQ(shardmat_batched_plan_create(&e.batch, 0, nullptr, nullptr, &plan), SHARDMAT_USAGE);
  EXPECT_EQ(shardmat_batched_plan_create(&e.batch, 2, "stage", nullptr, &plan), SHARDMAT_USAGE);
  EXPECT_EQ(shardmat_batched_plan_create(&e.batch, 2, nullptr, "rows=2", &plan), SHARDMAT_USAGE);
  shardmat_batch bad = e.batch;
  bad.type = 9;
  EXPECT_EQ(shardmat_batched_plan_create(&bad, 2, nullptr, nullptr, &plan), SHARDMAT_USAGE);
  bad = e.batch;
  bad.device = 4711;
  EXPECT_EQ(shardmat_batched_plan_create(&bad, 2, nullptr, nullptr, &plan), SHARDMAT_USAGE);
  EXPECT_NE(std::string(shardmat_last_error()).find("no CUDA device 4711"), std::string::npos);
  EXPECT_EQ(shardmat_batched_multiply(nullptr, 1, e.x.data(), 2, 0, e.y.data(), 2, nullptr, 0, nullptr), SHARDMAT_USAGE);
  EXPECT_EQ(shardmat_batched_plan_place(nullptr, nullptr, nullptr, nullptr), SHARDMAT_USAGE);
  EXPECT_EQ(shardmat_batched_transpose_work_bytes(&e.batch, nullptr), SHARDMAT_USAGE);
  bad = e.batch;
  bad.row_idx = bad.col_idx;
  EXPECT_EQ(shardmat_batched_plan_create(&bad, 2, nullptr, nullptr, &plan), SHARDMAT_USAGE);
  e.first_entry[1] = 5;
  EXPECT_EQ(shardmat_batched_plan_create(&e.batch, 2, nullptr, nullptr, &plan), SHARDMAT_INPUT);
  EXPECT_NE(std::string(shardmat_last_error()).find("matrix 1"), std::string::npos);
  EXPECT_EQ(plan, nullptr);
}

}  // namespace
}  // namespace shardmat
