// Packed rows: every shape on every matrix, host and device conversions equal to the byte, and that packing keeps its
// promises.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/choose/registry.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/packed.h"
#include "kernels/formats/packed_pieces.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/plan_check.h"

namespace shardmat {
namespace {

std::vector<Policy> all_layouts() {
  std::vector<Policy> layouts;
  constexpr int kShapes[][2] = {{1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}, {3, 1}, {3, 3}, {3, 6}, {4, 4}, {6, 6}};
  for (const auto& [block, lanes] : kShapes)
    for (const int shift : {0, block - 1})
      for (const int window : {1, 64, 1 << 20})
        if (shift == 0 || block > 1)
          layouts.push_back({{"block", block}, {"lanes", lanes}, {"shift", shift}, {"window", window}});
  return layouts;
}

/// Calls body(matrix, layout) for every matrix of the zoo and every layout it can have.
template <class Body>
void for_each_case(const Body& body) {
  for (const test::NamedMatrix& zoo : test::matrix_zoo())
    for (const Policy& layout : all_layouts()) {
      if (layout.at("block") > 1 && layout.at("block") > zoo.matrix.cols) continue;
      SCOPED_TRACE(fmt::format("{} on {}", layout.text(), zoo.name));
      body(zoo.matrix, layout);
    }
}

/// Each matrix in each shape, in f32 and f64 by turns.
void check_shapes(Backend backend) {
  Stream stream({backend, 0});
  for (const Kernel& kernel : kernels()) {
    if (kernel.format != "packed" || kernel.backend != backend) continue;
    int cases = 0;
    const HostCsr* last = nullptr;
    for_each_case([&](const HostCsr& m, const Policy& layout) {
      if (last != &m) last = &m, ++cases;  // a shape has the other type for the next matrix
      const ValueType type = ++cases % 2 == 0 ? ValueType::f32 : ValueType::f64;
      ConversionInput input(m.view(), type, stream);
      const auto storage = store(find_format("packed"), input, layout);
      if (!kernel.supports(*storage)) return;
      const auto plan = make_plan(kernel, storage, kernel.policies(input.rows()).back(), stream);
      dispatch(type, [&](auto tag) { test::check_plan<typename decltype(tag)::type>(*plan, m, type, stream); });
    });
  }
}

TEST(Packed, EveryShapeOnHost) { check_shapes(Backend::host); }
TEST(GpuPacked, EveryShapeOnCuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_shapes(Backend::cuda);
}

void expect_equal(const Buffer& host, const Buffer& device, std::int64_t bytes, Stream& stream, const char* what) {
  std::vector<char> copy(static_cast<std::size_t>(bytes));
  copy_to_host(copy.data(), device.data(), copy.size(), stream);
  EXPECT_EQ(std::memcmp(copy.data(), host.data(), copy.size()), 0) << what << " differ";
}

TEST(GpuPacked, DeviceConvertsAsTheHost) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream host_stream({Backend::host, 0}), stream({Backend::cuda, 0});
  for_each_case([&](const HostCsr& m, const Policy& layout) {
    ConversionInput host_input(m.view(), ValueType::f64, host_stream), input(m.view(), ValueType::f64, stream);
    const auto host = std::static_pointer_cast<PackedStorage>(convert_packed(host_input, layout));
    const auto device = std::static_pointer_cast<PackedStorage>(convert_packed(input, layout));
    ASSERT_EQ(host->bytes, device->bytes);
    expect_equal(host->slice, device->slice, host->slices * static_cast<std::int64_t>(sizeof(PackedSlice)), stream,
                 "slices");
    expect_equal(host->order, device->order, host->order_bytes, stream, "orders");
    expect_equal(host->deltas, device->deltas, host->delta_bytes, stream, "deltas");
  });
}

HostCsr stencil(std::int64_t n) {
  HostCsr m;
  m.rows = m.cols = n * n;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (const std::int64_t d : {-n, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, n})
      if (i + d >= 0 && i + d < m.rows) m.col_idx.push_back(i + d), m.values.push_back(test::value_of(m.values.size()));
    m.row_ptr.push_back(static_cast<std::int64_t>(m.values.size()));
  }
  return m;
}

TEST(Packed, StencilsStoreNoColumns) {
  Stream stream({Backend::host, 0});
  const HostCsr m = stencil(256);
  ConversionInput input(m.view(), ValueType::f64, stream);
  const Policy layout = packed_layouts(input).front();
  const auto packed = std::static_pointer_cast<PackedStorage>(convert_packed(input, layout));
  EXPECT_LT(packed->index_bytes, packed->bytes / 100);
  EXPECT_LT(packed->delta_bytes, packed->bytes / 100);
  EXPECT_LT(static_cast<double>(packed->bytes) / static_cast<double>(m.nnz()), 8.4);
}

TEST(Packed, StencilKernelIsForRowsThatShareColumns) {
  Stream stream({Backend::host, 0});
  const auto cost = [&](const HostCsr& m) {
    ConversionInput input(m.view(), ValueType::f64, stream);
    return packed_stencil_cost(input, packed_layouts(input).front());
  };
  EXPECT_LT(cost(stencil(256)), 1e9);
  for (const test::NamedMatrix& zoo : test::matrix_zoo())
    if (zoo.name == "node blocks" || zoo.name == "power law") {
      EXPECT_EQ(cost(zoo.matrix), std::numeric_limits<double>::infinity()) << zoo.name;
    }
}

TEST(Packed, LongestSlicesRunFirstWhileXIsCached) {
  EXPECT_TRUE(packed::longest_first(1'000'000, 1'000'000, 8));
  EXPECT_FALSE(packed::longest_first(4'000'000, 4'000'000, 8));
  EXPECT_TRUE(packed::longest_first(1'000'000, 4'000'000, 8)) << "a part of a larger matrix";
}

TEST(Packed, FindsNodeBlocksAndTheirShift) {
  Stream stream({Backend::host, 0});
  HostCsr whole;
  for (const test::NamedMatrix& zoo : test::matrix_zoo())
    if (zoo.name == "node blocks") whole = zoo.matrix;
  ASSERT_GT(whole.rows, 100);
  for (const std::int64_t first : {0, 1, 2}) {
    CsrView part = whole.view();
    part.rows -= first;
    part.row_ptr = part.row_ptr.subspan(static_cast<std::size_t>(first));
    const auto skipped = static_cast<std::size_t>(part.row_ptr[0]);
    part.col_idx = part.col_idx.subspan(skipped), part.values = part.values.subspan(skipped);
    ConversionInput input(part, ValueType::f64, stream);
    const Policy layout = packed_layouts(input).at(1);  // the first is the host's
    EXPECT_EQ(layout.at("block"), 3);
    EXPECT_EQ(layout.at("shift"), static_cast<int>(first));
  }
}

TEST(Packed, ValuesBeginAtCacheLines) {
  for_each_case([](const HostCsr& m, const Policy& layout) {
    Stream stream({Backend::host, 0});
    ConversionInput input(m.view(), ValueType::f64, stream);
    const auto packed = std::static_pointer_cast<PackedStorage>(convert_packed(input, layout));
    if (packed->shape.lanes % 3 == 0) return;  // lanes are idle
    const auto* slices = packed->slice.as<PackedSlice>();
    for (std::int64_t s = 0; s < packed->slices; ++s) EXPECT_EQ(slices[s].values * std::uint64_t{kPackedUnit} % 128, 0) << s;
  });
}

TEST(Packed, DoesNotGrowMatricesWithoutRuns) {
  Stream stream({Backend::host, 0});
  for (const test::NamedMatrix& zoo : test::matrix_zoo()) {
    ConversionInput input(zoo.matrix.view(), ValueType::f64, stream);
    const Policy layout = packed_layouts(input).front();
    constexpr std::int64_t kRounding = 128 + kPackedUnit + 4 * (kPackedLanes + 1);  // of values, indices, and offsets
    // Beyond CSR's bytes: some padding, the slice headers, and rounding.
    const auto packed = std::static_pointer_cast<PackedStorage>(convert_packed(input, layout));
    const std::int64_t csr = csr_bytes(input, {}), padding = csr / static_cast<std::int64_t>(packed::kMostPadding);
    EXPECT_LE(packed->bytes, csr + padding + packed->slices * (32 + kRounding) + packed->order_bytes) << zoo.name;
  }
}

TEST(Packed, SlotsMayBeALittleLargerThanRows) {
  constexpr int kLongest = 27;
  Stream stream({Backend::host, 0});
  for (const int pieces : {15, 18}) {  // of all groups but the first: padding makes slots a fourth, or 2 %, larger than rows
    HostCsr m;
    m.rows = 3 * kPackedLanes, m.cols = 3 * kLongest;
    for (std::int64_t row = 0; row < m.rows; ++row) {
      for (int column = 0; column < 3 * (row < 3 ? kLongest : pieces); ++column)
        m.col_idx.push_back(column), m.values.push_back(test::value_of(m.values.size()));
      m.row_ptr.push_back(static_cast<std::int64_t>(m.values.size()));
    }
    ConversionInput input(m.view(), ValueType::f64, stream);
    const Policy layout{{"block", 3}, {"lanes", 1}, {"shift", 0}, {"window", 1}};
    const auto packed = std::static_pointer_cast<PackedStorage>(convert_packed(input, layout));
    ASSERT_EQ(packed->slices, 1);
    EXPECT_EQ(packed->slice.as<PackedSlice>()[0].csr, pieces == 15 ? 1 : 0);
    if (pieces == 18) {
      EXPECT_GT(packed->value_bytes + packed->index_bytes, 12 * m.nnz());
    }
  }
}

TEST(Packed, RefusesWrongLayouts) {
  Stream stream({Backend::host, 0});
  const HostCsr m = stencil(4);
  ConversionInput input(m.view(), ValueType::f64, stream);
  const auto with = [&](const char* text) { return packed_layouts(input).front().with(text); };
  EXPECT_THROW(packed_bytes(input, with("block=5,lanes=5")), Error);
  EXPECT_THROW(packed_bytes(input, with("block=2,lanes=2,shift=2")), Error);
  EXPECT_THROW(packed_bytes(input, with("window=0")), Error);
}

}  // namespace
}  // namespace shardmat
