// Products beside the kernel that writes part of their x: what reads that part waits for it, and the rest does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "kernels/choose/registry.h"
#include "kernels/choose/spmm_registry.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/packed.h"
#include "kernels/matrix/csr.h"
#include "tests/support/plan_check.h"

namespace shardmat {
namespace {

/// Of slices that a device takes at once, and of more.
constexpr std::int64_t kFewRows = 20'000, kManyRows = 80'000;
constexpr std::int64_t kGap = 32, kLate = 500;               ///< behind own entries of x, and late ones
constexpr long long kPatience = 200'000'000;                 ///< clocks to wait for a product to begin
constexpr long long kDelay = 500'000;                        ///< clocks before own entries of x are written
constexpr std::uint64_t kUntouched = 0x3ff800003ff80000ull;  ///< in y: a number

/// A band of blocks of three rows, the last of which need late entries.
HostCsr band_with_late_entries(std::int64_t rows) {
  HostCsr m;
  m.rows = rows, m.cols = rows + kGap + kLate;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    const std::int64_t node = i / 3 * 3, behind = node - (rows - kLate) / 3 * 3;
    for (std::int64_t c = std::max<std::int64_t>(node - 6, 0); c < std::min(node + 9, rows); ++c) m.col_idx.push_back(c);
    if (behind >= 0 && behind + 3 <= kLate)
      for (std::int64_t c = 0; c < 3; ++c) m.col_idx.push_back(rows + kGap + behind + c);
    m.row_ptr.push_back(std::ssize(m.col_idx));
  }
  m.values.resize(m.col_idx.size());
  for (std::size_t k = 0; k < m.values.size(); ++k) m.values[k] = test::value_of(k);
  validate(m.view());
  return m;
}

/// Lets the next kernel begin, waits until that has written to `y`, or for some time, and only then writes the late entries.
__global__ void write_late(const char* from, char* to, std::int64_t bytes, const volatile std::uint64_t* y, int* seen) {
  cuda::wait_for_previous();  // first: the next one does not
  cuda::let_next_begin();
  if (threadIdx.x == 0) {
    const long long begin = clock64();
    bool begun = false;
    while (!begun && clock64() - begin < kPatience) begun = *y != kUntouched;
    *seen = begun ? 1 : 0;
  }
  __syncthreads();
  for (std::int64_t k = threadIdx.x; k < bytes; k += blockDim.x) to[k] = from[k];
}

/// Lets the next kernel begin and takes its time: who does not wait for it sees what was there before.
__global__ void copy_words(const std::uint32_t* from, std::uint32_t* to, std::int64_t words) {
  cuda::let_next_begin();
  for (const long long begin = clock64(); clock64() - begin < kDelay;) {
  }
  for (std::int64_t k = blockIdx.x * blockDim.x + threadIdx.x; k < words; k += gridDim.x * blockDim.x) to[k] = from[k];
}

__global__ void touch(std::uint64_t* word) { *word = 0; }

/// A kernel can begin beside the one before it: tools that look at kernels one by one, as compute-sanitizer does, keep them
/// from that. Says so if not.
bool kernels_overlap(Stream& stream) {
  const Buffer word(stream.device(), sizeof kUntouched), seen(stream.device(), sizeof(int));
  copy_to_device(word.data(), &kUntouched, sizeof kUntouched, stream);
  cuda::launch_blocks(write_late, 1, 256, 0, stream, nullptr, nullptr, 0, word.as<std::uint64_t>(), seen.as<int>());
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = stream.native();
  config.attrs = &early;
  config.numAttrs = 1;
  SHARDMAT_CUDA_CHECK(cudaLaunchKernelEx(&config, touch, word.as<std::uint64_t>()));
  int begun = 0;
  copy_to_host(&begun, seen.data(), sizeof begun, stream);
  if (begun == 0) std::cerr << "Kernels run one by one here: that products begin early is not checked.\n";
  return begun != 0;
}

/// Products multiply(x, y), which add to half of y, with `width` values an entry; `early_product`: they begin beside the
/// kernel before them. Own entries of x and y are new each time, so that those of the time before would show.
template <class Multiply>
void expect_waits(const Storage& storage, std::size_t width, bool early_product, Stream& stream, const Multiply& multiply) {
  ASSERT_TRUE(storage.expects_late);
  static const bool overlap = kernels_overlap(stream);
  const std::int64_t rows = storage.rows, early_row = rows / 2;  // far from those that need late entries
  const std::size_t entry = width * size_of(storage.type), early = (rows + kGap) * entry, all = storage.cols * entry;
  const Buffer x_whole(stream.device(), all), x(stream.device(), all), seen(stream.device(), sizeof(int)),
      expected(stream.device(), rows * entry), y(stream.device(), rows * entry);
  std::vector<char> host(all), results[2];
  const std::vector<std::uint64_t> untouched(rows * entry / sizeof(std::uint64_t), kUntouched);
  for (std::size_t time = 0; time < 3; ++time) {
    dispatch(storage.type, [&](auto tag) {
      auto* values = reinterpret_cast<typename decltype(tag)::type*>(host.data());
      for (std::size_t k = 0; k < all / sizeof *values; ++k)
        values[k] = static_cast<typename decltype(tag)::type>(test::value_of(7 + k + 1000 * time));
    });
    copy_to_device(x_whole.data(), host.data(), all, stream);
    copy_to_device(expected.data(), untouched.data(), y.bytes(), stream);
    multiply(x_whole.data(), expected.data());
    copy_to_device(y.data(), untouched.data(), y.bytes(), stream);
    fill_bytes(x.as<char>() + early, 0xff, all - early, stream);  // no number
    cuda::launch_blocks(copy_words, 64, 256, 0, stream, x_whole.as<std::uint32_t>(), x.as<std::uint32_t>(),
                        static_cast<std::int64_t>(early / sizeof(std::uint32_t)));
    cuda::launch_grid_early(write_late, 1, 1, dim3(256), 0, stream, x_whole.as<char>() + early, x.as<char>() + early,
                            static_cast<std::int64_t>(all - early),
                            y.as<std::uint64_t>() + early_row * entry / sizeof(std::uint64_t), seen.as<int>());
    stream.let_next_begin(true);
    multiply(x.data(), y.data());
    for (const bool mine : {false, true}) {
      results[mine].resize(y.bytes());
      copy_to_host(results[mine].data(), mine ? y.data() : expected.data(), y.bytes(), stream);
    }
    EXPECT_EQ(results[0], results[1]);
    int begun = 0;
    copy_to_host(&begun, seen.data(), sizeof begun, stream);
    if (!overlap) continue;
    EXPECT_EQ(begun, early_product ? 1 : 0) << "whether the product began beside the kernel before it";
  }
}

bool can_begin_early() { return cuda::compiled_for_9_0(write_late, {Backend::cuda, 0}); }

class GpuLate : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
    on_.emplace(Device{Backend::cuda, 0});
  }
  Stream& stream() { return *on_; }
  const HostCsr m = band_with_late_entries(kFewRows);

 private:
  std::optional<Stream> on_;
};

TEST_F(GpuLate, ProductsOfOneRightHandSide) {
  if (!can_begin_early()) GTEST_SKIP() << "a device of capability 9.0 and code for it are needed";
  int gathered = 0, scattered = 0;  // storages whose slices that wait lie one behind the other, and others
  for (const std::int64_t rows : {kFewRows, kManyRows}) {
    const HostCsr band = band_with_late_entries(rows);
    for (const ValueType type : {ValueType::f32, ValueType::f64})
      for (const char* shape : {"block=1,lanes=1", "block=1,lanes=4", "block=3,lanes=1", "block=3,lanes=3"})
        for (const Kernel& kernel : kernels()) {
          if (kernel.format != "packed" || kernel.backend != Backend::cuda) continue;
          ConversionInput input(band.view(), type, stream());
          const Policy layout = packed_layouts(input).front().with(std::string(shape) + ",shift=0,window=64");
          const auto storage = store(find_format("packed"), input, layout);
          if (!kernel.supports(*storage)) continue;
          storage->expect_late(rows + kGap, stream());
          ++(static_cast<const PackedStorage&>(*storage).late.count > 0 ? gathered : scattered);
          for (const Policy& policy : kernel.policies(input.rows())) {
            SCOPED_TRACE(std::to_string(rows) + " rows, " + std::string(kernel.name) + " " + std::string(name(type)) + " " +
                         shape + " " + policy.text());
            const auto plan = make_plan(kernel, storage, policy, stream());
            expect_waits(*storage, 1, true, stream(),
                         [&](const void* x, void* y) { plan->multiply(1, x, 0.5, y, stream()); });
          }
        }
  }
  EXPECT_GT(gathered, 0);
  EXPECT_GT(scattered, 0);
}

TEST_F(GpuLate, ProductsOfSeveral) {
  if (!can_begin_early()) GTEST_SKIP() << "a device of capability 9.0 and code for it are needed";
  for (const ValueType type : {ValueType::f32, ValueType::f64})
    for (const char* shape : {"block=1,lanes=1", "block=3,lanes=1"})
      for (const SpmmKernel& kernel : spmm_kernels()) {
        if (kernel.format != "packed" || kernel.backend != Backend::cuda) continue;
        ConversionInput input(m.view(), type, stream());
        const Policy layout = packed_layouts(input).front().with(std::string(shape) + ",shift=0,window=64");
        const auto storage = store(find_format("packed"), input, layout);
        storage->expect_late(kFewRows + kGap, stream());
        for (const std::int64_t count : {3, 8, 32, 100}) {
          const RightHandSides rhs{count};
          if (!kernel.supports(*storage, rhs)) continue;
          for (const Policy& policy : kernel.policies(*storage, rhs)) {
            SCOPED_TRACE(std::string(kernel.name) + " " + std::string(name(type)) + " " + shape + " " +
                         std::to_string(count) + " " + policy.text());
            const auto plan = make_spmm_plan(kernel, storage, rhs, policy, stream());
            expect_waits(*storage, static_cast<std::size_t>(count), plan->begins_early(), stream(),
                         [&](const void* x, void* y) { plan->multiply(1, x, count, 0.5, y, count, stream()); });
          }
        }
      }
}

TEST_F(GpuLate, PlansThatFillTheDeviceOrCopyXDoNotBeginEarly) {
  ConversionInput input(m.view(), ValueType::f64, stream());
  const auto storage = store(find_format("packed"), input, packed_layouts(input).front().with("block=1,lanes=1"));
  const SpmmKernel& kernel = find_spmm_kernel("packed_stencil", Backend::cuda);
  for (const Policy& policy : kernel.policies(*storage, {32}))
    for (const std::int64_t count : {32, 33})
      EXPECT_EQ(make_spmm_plan(kernel, storage, {count}, policy, stream())->can_begin_early,
                policy.at("stay") == 0 && count == 32);
}

TEST_F(GpuLate, OtherFormatsCannot) {
  ConversionInput input(m.view(), ValueType::f64, stream());
  const Format& csr = find_format("csr");
  const auto storage = store(csr, input, csr.layouts(input).front());
  storage->expect_late(kFewRows + kGap, stream());
  EXPECT_FALSE(storage->expects_late);
}

}  // namespace
}  // namespace shardmat
