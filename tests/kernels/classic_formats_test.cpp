// The arrays and sizes of the textbook formats by hand on one small matrix, their choices, and what they refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "kernels/choose/registry.h"
#include "kernels/formats/csc.h"
#include "kernels/formats/dia.h"
#include "kernels/formats/hyb.h"
#include "kernels/formats/jds.h"
#include "kernels/formats/limits.h"
#include "kernels/formats/upload.h"
#include "kernels/host/parts_host.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;
using Doubles = std::vector<double>;

/// 1 2 · 3 ·
/// · · · · ·
/// · · 4 · ·
/// 5 · 6 · 7
HostCsr small_matrix() {
  HostCsr m;
  m.rows = 4;
  m.cols = 5;
  m.row_ptr = {0, 3, 3, 4, 7};
  m.col_idx = {0, 1, 3, 2, 0, 2, 4};
  m.values = {1, 2, 3, 4, 5, 6, 7};
  return m;
}

template <class T>
std::vector<T> entries(const Buffer& buffer) {
  return {buffer.as<T>(), buffer.as<T>() + buffer.bytes() / sizeof(T)};
}

/// The small matrix as f64 in each format, on the host.
class ClassicFormats : public testing::Test {
 protected:
  template <class S>
  std::shared_ptr<S> stored(const char* format, const Policy& layout = {}) {
    return std::static_pointer_cast<S>(store(find_format(format), input, layout));
  }

  Stream stream{Device{}};
  const HostCsr matrix = small_matrix();
  ConversionInput input{matrix.view(), ValueType::f64, stream};
  ConversionInput input_f32{matrix.view(), ValueType::f32, stream};
};

TEST_F(ClassicFormats, Coo) {
  const auto coo = stored<CooStorage>("coo");
  EXPECT_EQ(entries<std::int32_t>(coo->entries.row), (Ints{0, 0, 0, 2, 3, 3, 3}));
  EXPECT_EQ(entries<std::int32_t>(coo->entries.col_idx), (Ints{0, 1, 3, 2, 0, 2, 4}));
  EXPECT_EQ(coo->bytes, 16 * 7);
  EXPECT_EQ(coo_bytes(input_f32, {}), 12 * 7);
}

TEST_F(ClassicFormats, Csc) {
  const auto csc = stored<CscStorage>("csc");
  EXPECT_EQ(entries<std::int64_t>(csc->col_ptr), (Longs{0, 2, 3, 5, 6, 7}));
  EXPECT_EQ(entries<std::int32_t>(csc->row_idx), (Ints{0, 3, 0, 2, 3, 0, 3}));
  EXPECT_EQ(entries<double>(csc->values), (Doubles{1, 5, 2, 4, 6, 3, 7}));
  EXPECT_EQ(csc->bytes, 8 * 6 + 12 * 7);
  EXPECT_EQ(csc_bytes(input_f32, {}), 8 * 6 + 8 * 7);
}

TEST_F(ClassicFormats, Ell) {
  const auto ell = stored<EllStorage>("ell_r");
  EXPECT_EQ(ell->ell.width, 3);
  EXPECT_EQ(entries<std::int32_t>(ell->ell.col_idx), (Ints{0, -1, 2, 0, 1, -1, -1, 2, 3, -1, -1, 4}));
  EXPECT_EQ(entries<double>(ell->ell.values), (Doubles{1, 0, 4, 5, 2, 0, 0, 6, 3, 0, 0, 7}));
  EXPECT_EQ(entries<std::int32_t>(ell->row_lengths), (Ints{3, 0, 1, 3}));
  EXPECT_EQ(ell->bytes, 8 * 4 * 3 + 4 * 4 * 3 + 4 * 4);
  EXPECT_EQ(stored<EllStorage>("ell")->bytes, 8 * 4 * 3 + 4 * 4 * 3);
  EXPECT_EQ(ell_r_bytes(input_f32, {}), 8 * 4 * 3 + 4 * 4);
}

TEST_F(ClassicFormats, Hyb) {
  const auto hyb = stored<HybStorage>("hyb", {{"width", 1}});
  EXPECT_EQ(entries<std::int32_t>(hyb->ell.col_idx), (Ints{0, -1, 2, 0}));
  EXPECT_EQ(entries<double>(hyb->ell.values), (Doubles{1, 0, 4, 5}));
  EXPECT_EQ(hyb->rest.count, 4);
  EXPECT_EQ(entries<std::int32_t>(hyb->rest.row), (Ints{0, 0, 3, 3}));
  EXPECT_EQ(entries<std::int32_t>(hyb->rest.col_idx), (Ints{1, 3, 2, 4}));
  EXPECT_EQ(entries<double>(hyb->rest.values), (Doubles{2, 3, 6, 7}));
  EXPECT_EQ(hyb->bytes, 12 * 4 + 16 * 4);
  EXPECT_EQ(hyb_bytes(input_f32, {{"width", 1}}), 8 * 4 + 12 * 4);
  EXPECT_EQ(hyb_bytes(input, {{"width", 0}}), coo_bytes(input, {}));
  EXPECT_EQ(hyb_bytes(input, {{"width", std::numeric_limits<int>::max()}}), ell_bytes(input, {}));
  EXPECT_THROW(hyb_bytes(input, {{"width", -1}}), Error);
}

TEST_F(ClassicFormats, Jds) {
  const auto jds = stored<JdsStorage>("jds");
  EXPECT_EQ(entries<std::int32_t>(jds->row_index), (Ints{0, 3, 2, 1}));  // equal lengths in their old order
  EXPECT_EQ(entries<std::int64_t>(jds->starts), (Longs{0, 3, 6, 7, 7}));
  EXPECT_EQ(entries<std::int32_t>(jds->col_idx), (Ints{0, 1, 3, 0, 2, 4, 2}));
  EXPECT_EQ(entries<double>(jds->values), (Doubles{1, 2, 3, 5, 6, 7, 4}));
  EXPECT_EQ(jds->bytes, 4 * 4 + 8 * 5 + 12 * 7);
  EXPECT_EQ(jds_bytes(input_f32, {}), 4 * 4 + 8 * 5 + 8 * 7);
}

TEST_F(ClassicFormats, JdsTransposed) {
  const auto jds = stored<JdsStorage>("jds_t");
  EXPECT_EQ(entries<std::int32_t>(jds->row_index), (Ints{0, 3, 2, 1}));
  EXPECT_EQ(entries<std::int64_t>(jds->starts), (Longs{0, 3, 5, 7}));
  EXPECT_EQ(entries<std::int32_t>(jds->col_idx), (Ints{0, 0, 2, 1, 2, 3, 4}));
  EXPECT_EQ(entries<double>(jds->values), (Doubles{1, 5, 4, 2, 6, 3, 7}));
  EXPECT_EQ(jds->bytes, 4 * 4 + 8 * 4 + 12 * 7);
}

TEST_F(ClassicFormats, Dia) {
  const auto dia = stored<DiaStorage>("dia");
  EXPECT_EQ(entries<std::int64_t>(dia->offsets), (Longs{-3, -1, 0, 1, 3}));
  EXPECT_EQ(entries<double>(dia->values), (Doubles{0, 0, 0, 5,    // column row - 3
                                                   0, 0, 0, 6,    // row - 1
                                                   1, 0, 4, 0,    // row
                                                   2, 0, 0, 7,    // row + 1
                                                   3, 0, 0, 0}))  // row + 3
      << "diagonals one after another";
  EXPECT_EQ(dia->bytes, 8 * 5 + 8 * 4 * 5);
  EXPECT_EQ(dia_bytes(input_f32, {}), 8 * 5 + 4 * 4 * 5);
}

/// The first layout is the widest whose last column a third of the rows use, the last one the smallest of all.
TEST(Hyb, WidthsByTheirRules) {
  Stream stream{Device{}};
  for (const test::NamedMatrix& zoo : test::matrix_zoo())
    for (const ValueType type : {ValueType::f32, ValueType::f64}) {
      SCOPED_TRACE(zoo.name);
      ConversionInput input(zoo.matrix.view(), type, stream);
      const std::vector<Policy> layouts = hyb_layouts(input);
      const auto users = [&](std::int64_t width) {
        std::int64_t count = 0;
        for (std::size_t i = 0; i + 1 < zoo.matrix.row_ptr.size(); ++i)
          count += zoo.matrix.row_ptr[i + 1] - zoo.matrix.row_ptr[i] >= width;
        return count;
      };
      const int width = layouts.front().at("width");
      EXPECT_GE(3 * users(width), zoo.matrix.rows);
      EXPECT_TRUE(zoo.matrix.rows == 0 || 3 * users(width + 1) < zoo.matrix.rows) << width;
      for (int other = 0; other <= input.rows().max_row; ++other)
        EXPECT_LE(hyb_bytes(input, layouts.back()), hyb_bytes(input, {{"width", other}})) << other;
    }
}

TEST(Csc, SameWhateverTheThreads) {
  Stream stream{Device{}};
  const HostCsr m = test::matrix_zoo().back().matrix;
  ConversionInput input(m.view(), ValueType::f64, stream);
  const auto converted_by = [&](int count) {
    const ThreadCount threads(count);
    return std::static_pointer_cast<CscStorage>(convert_csc(input, {}));
  };
  const auto one = converted_by(1), five = converted_by(5);
  EXPECT_EQ(entries<std::int64_t>(one->col_ptr), entries<std::int64_t>(five->col_ptr));
  EXPECT_EQ(entries<std::int32_t>(one->row_idx), entries<std::int32_t>(five->row_idx));
  EXPECT_EQ(entries<double>(one->values), entries<double>(five->values));
}

TEST(Coo, PartsShareNoRow) {
  const Stream stream{Device{}};
  CooEntries a;
  a.count = 100'000;
  a.row = Buffer(stream.device(), 4 * static_cast<std::size_t>(a.count));
  std::int32_t* row = a.row.as<std::int32_t>();
  for (std::int32_t k = 0; k < a.count; ++k) row[k] = k < 60'000 ? k / 9 : 60'000 + k / 90'000;  // two rows are long
  const std::vector<std::int64_t> cuts = cut_between_rows(a);
  ASSERT_GT(cuts.size(), 3u);
  EXPECT_EQ(cuts.front(), 0);
  EXPECT_EQ(cuts.back(), a.count);
  for (std::size_t part = 1; part + 1 < cuts.size(); ++part) {
    EXPECT_GE(cuts[part], cuts[part - 1]);
    EXPECT_TRUE(cuts[part] == a.count || row[cuts[part]] != row[cuts[part] - 1]) << part;
  }
}

/// Runs longer than a thread's range, empty ones at both ends, starts that do not begin at 0; on the device several chunks.
void check_runs(Device device, std::int64_t count) {
  Stream stream{device};
  std::vector<std::int64_t> starts{7, 7, 7};
  for (std::int64_t length = 0; starts.back() + length < count; length = 3 * length + 1) {
    starts.push_back(starts.back() + length);
    starts.push_back(starts.back());
  }
  starts.insert(starts.end(), {7 + count, 7 + count});
  const Buffer buffer =
      upload_runs<std::int64_t>(starts, stream, [](std::int64_t run, std::int64_t k) { return run << 40 | k; });
  ASSERT_EQ(buffer.bytes(), 8 * static_cast<std::size_t>(count));
  std::vector<std::int64_t> uploaded(static_cast<std::size_t>(count));
  copy_to_host(uploaded.data(), buffer.data(), buffer.bytes(), stream);
  std::size_t next = 0;
  for (std::size_t run = 0; run + 1 < starts.size(); ++run)
    for (std::int64_t k = 0; k < starts[run + 1] - starts[run]; ++k)
      ASSERT_EQ(uploaded[next++], static_cast<std::int64_t>(run) << 40 | k);
}

TEST(Upload, RunsOnHost) { check_runs({}, 500'000); }
TEST(GpuUpload, RunsInChunks) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_runs({Backend::cuda, 0}, (std::int64_t{1} << 24) + 12'345);
}

/// A·x = expected, exactly, in every layout of the kernel's format.
void expect_product(const Kernel& kernel, const CsrView& m, const Doubles& x, const Doubles& expected, Stream& stream) {
  ConversionInput input(m, ValueType::f64, stream);
  const Format& format = find_format(kernel.format);
  const Buffer device_x(stream.device(), 8 * x.size()), device_y(stream.device(), 8 * expected.size());
  copy_to_device(device_x.data(), x.data(), device_x.bytes(), stream);
  for (const Policy& layout : format.layouts(input)) {
    const auto storage = store(format, input, layout);
    if (!kernel.supports(*storage)) continue;
    const auto plan = make_plan(kernel, storage, kernel.policies(input.rows()).front(), stream);
    plan->multiply(1, device_x.data(), 0, device_y.data(), stream);
    Doubles y(expected.size());
    copy_to_host(y.data(), device_y.data(), device_y.bytes(), stream);
    EXPECT_EQ(y, expected) << kernel.name << " " << layout.text();
  }
}

/// Every kernel takes a range of rows of a larger matrix, whose offsets do not begin at 0.
void check_row_range(Backend backend) {
  Stream stream({backend, 0});
  const HostCsr m = small_matrix();
  const CsrView all = m.view();
  const CsrView rows_from_2{2, m.cols, all.row_ptr.subspan(2), all.col_idx.subspan(3), all.values.subspan(3)};
  for (const Kernel& kernel : kernels())
    if (kernel.backend == backend) expect_product(kernel, rows_from_2, {1, 10, 100, 1000, 10000}, {400, 70605}, stream);
}

TEST(RowRange, HostKernels) { check_row_range(Backend::host); }
TEST(GpuRowRange, CudaKernels) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_row_range(Backend::cuda);
}

/// Padding is not multiplied: an infinite entry of x is seen by the rows that have its column, and by no others.
void check_infinite_x(Backend backend) {
  Stream stream({backend, 0});
  const HostCsr m = small_matrix();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const char* format : {"coo", "csc", "ell", "ell_r", "hyb", "jds", "jds_t"})
    for (const Kernel& kernel : kernels())
      if (kernel.backend == backend && kernel.format == format)
        expect_product(kernel, m.view(), {kInfinity, 1, 10, 100, 1000}, {kInfinity, 0, 40, kInfinity}, stream);
}

TEST(InfiniteX, HostKernels) { check_infinite_x(Backend::host); }
TEST(GpuInfiniteX, CudaKernels) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_infinite_x(Backend::cuda);
}

TEST(GpuHyb, ReproducibleWithoutRest) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream({Backend::cuda, 0});
  const HostCsr m = small_matrix();
  ConversionInput input(m.view(), ValueType::f64, stream);
  const Kernel& kernel = find_kernel("hyb", Backend::cuda);
  const Policy policy{{"block_size", 64}};
  for (const int width : {1, 3}) {
    const auto storage = store(find_format("hyb"), input, {{"width", width}});
    EXPECT_EQ(make_plan(kernel, storage, policy, stream)->reproducible(), width == 3);
    EXPECT_THROW(make_plan(kernel, storage, policy.with("block_size=48"), stream), Error);
  }
}

void expect_refused(const char* format, ConversionInput& input, std::int64_t bytes) {
  EXPECT_EQ(find_format(format).bytes(input, find_format(format).layouts(input).front()), bytes);
  try {
    store(find_format(format), input, find_format(format).layouts(input).front());
    FAIL() << format << " took " << bytes << " bytes";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::resources);
    EXPECT_NE(std::string(e.what()).find(human_bytes(static_cast<double>(bytes))), std::string::npos) << e.what();
  }
}

TEST(Refusal, EllWithOneDenseRow) {
  Stream stream{Device{}};
  HostCsr m;
  m.rows = m.cols = 50'000;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t j = i == 777 ? 0 : i; j < (i == 777 ? m.cols : i + 1); ++j) m.col_idx.push_back(j);
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  m.values.resize(m.col_idx.size(), 1);
  ConversionInput input(m.view(), ValueType::f64, stream);
  const std::int64_t padded = std::int64_t{12} * 50'000 * 50'000;
  expect_refused("ell", input, padded);
  expect_refused("ell_r", input, padded + 4 * 50'000);
  EXPECT_EQ(store(find_format("hyb"), input, hyb_layouts(input).front())->bytes, 12 * 50'000 + 16 * 49'999);
}

TEST(Refusal, DiaOfARandomMatrix) {
  Stream stream{Device{}};
  HostCsr m;
  m.rows = m.cols = 4'096;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    m.col_idx.push_back(i * i * 5 % m.cols);
    m.row_ptr.push_back(i + 1);
  }
  m.values.resize(m.col_idx.size(), 1);
  std::vector<bool> occupied(static_cast<std::size_t>(m.rows + m.cols));
  for (std::int64_t i = 0; i < m.rows; ++i)
    occupied[static_cast<std::size_t>(m.col_idx[static_cast<std::size_t>(i)] - i + m.rows)] = true;
  ConversionInput input(m.view(), ValueType::f32, stream);
  expect_refused("dia", input, std::count(occupied.begin(), occupied.end(), true) * (8 + 4 * m.rows));
}

TEST(Refusal, SizesBeyond64Bits) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 40, kMost = std::int64_t{1} << 60;
  EXPECT_EQ(capped_product(0, kLarge), 0);
  EXPECT_EQ(capped_product(12, kLarge), 12 * kLarge);
  EXPECT_EQ(capped_product(kLarge, kLarge / 2), kMost);
  EXPECT_EQ(capped_product(kMost, 12), kMost);
  EXPECT_NO_THROW(require_int32_rows((std::int64_t{1} << 31) - 1, "coo"));
  try {
    require_int32_rows(std::int64_t{1} << 31, "coo");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::resources);
    EXPECT_NE(std::string(e.what()).find("coo"), std::string::npos);
  }
}

}  // namespace
}  // namespace shardmat
