// What the formats promise beyond the right product: exact arrays on small matrices, exact bytes, refused layouts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/choose/registry.h"
#include "kernels/formats/bcsr.h"
#include "kernels/formats/fold.h"
#include "kernels/formats/pkt.h"
#include "kernels/formats/rbp.h"
#include "kernels/formats/sell.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

/// Rows given by their columns; value k is k + 1.
HostCsr pattern(std::int64_t cols, std::initializer_list<std::vector<std::int64_t>> rows) {
  HostCsr m;
  m.rows = static_cast<std::int64_t>(rows.size());
  m.cols = cols;
  for (const auto& row : rows) {
    for (const std::int64_t column : row) {
      m.col_idx.push_back(column);
      m.values.push_back(static_cast<double>(m.values.size() + 1));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.values.size()));
  }
  return m;
}

template <class T>
std::vector<T> entries(const Buffer& buffer) {
  return {buffer.as<T>(), buffer.as<T>() + buffer.bytes() / sizeof(T)};
}

using Ints = std::vector<std::int32_t>;
using Doubles = std::vector<double>;

class Formats : public ::testing::Test {
 protected:
  template <class S>
  std::shared_ptr<S> converted(std::string_view format, const HostCsr& m, const Policy& layout) {
    ConversionInput input(m.view(), ValueType::f64, stream_);
    return std::static_pointer_cast<S>(store(find_format(format), input, layout));
  }
  void expect_refused(std::string_view format, const Policy& layout) {
    const HostCsr m = pattern(3, {{0}, {1, 2}});
    ConversionInput input(m.view(), ValueType::f64, stream_);
    EXPECT_THROW(store(find_format(format), input, layout), Error) << format << ' ' << layout.text();
  }

  Stream stream_{Device{Backend::host, 0}};
};

TEST_F(Formats, SellIsPaddedBySlicesAndStoredByColumns) {
  const HostCsr m = pattern(5, {{0}, {1, 2, 4}, {}, {3}, {0, 4}});
  const auto plain = converted<SellStorage>("sell", m, {{"slice", 2}, {"sigma", 1}});
  EXPECT_EQ(entries<std::int32_t>(plain->slice_ptr), (Ints{0, 6, 8, 12}));
  EXPECT_EQ(entries<std::int32_t>(plain->col_idx), (Ints{0, 1, -1, 2, -1, 4, -1, 3, 0, -1, 4, -1}));
  EXPECT_EQ(entries<double>(plain->values), (Doubles{1, 2, 0, 3, 0, 4, 0, 5, 6, 0, 7, 0}));
  EXPECT_EQ(plain->bytes, 4 * 4 + 12 * 12);

  const auto sorted = converted<SellStorage>("sell", m, {{"slice", 2}, {"sigma", 4}});
  EXPECT_EQ(entries<std::int32_t>(sorted->permutation), (Ints{1, 0, 3, 2, 0}));
  EXPECT_EQ(entries<std::int32_t>(sorted->col_idx), (Ints{1, 0, 2, -1, 4, -1, 3, -1, 0, -1, 4, -1}));
  EXPECT_EQ(sorted->bytes, 4 * 4 + 4 * 5 + 12 * 12);
}

TEST_F(Formats, SellRefusesWrongLayouts) {
  expect_refused("sell", {{"slice", 3}, {"sigma", 1}});
  expect_refused("sell", {{"slice", 2048}, {"sigma", 1}});
  expect_refused("sell", {{"slice", 32}, {"sigma", 48}});
  expect_refused("sell", {{"slice", 32}, {"sigma", 0}});
}

TEST_F(Formats, BcsrFillsBlocksWithZeros) {
  const HostCsr m = pattern(5, {{0, 3}, {1}, {4}});
  const auto bcsr = converted<BcsrStorage>("bcsr", m, {{"block", 2}});
  EXPECT_EQ(entries<std::int32_t>(bcsr->block_ptr), (Ints{0, 2, 3}));
  EXPECT_EQ(entries<std::int32_t>(bcsr->block_col), (Ints{0, 1, 2}));
  EXPECT_EQ(entries<double>(bcsr->values), (Doubles{1, 0, 0, 3, 0, 2, 0, 0, 4, 0, 0, 0}));
  EXPECT_EQ(bcsr->bytes, 4 * 3 + 4 * 3 + 8 * 12);
  EXPECT_FALSE(bcsr_cusparse_supports(*bcsr)) << "columns hang over";
  EXPECT_TRUE(bcsr_cusparse_supports(*converted<BcsrStorage>("bcsr", pattern(4, {{0}, {3}}), {{"block", 2}})));
}

TEST_F(Formats, BcsrTriesTheSmallestFirst) {
  const HostCsr m = pattern(6, {{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {3, 4, 5}, {3, 4, 5}, {3, 4, 5}});
  ConversionInput input(m.view(), ValueType::f64, stream_);
  EXPECT_EQ(bcsr_layouts(input).front(), (Policy{{"block", 3}}));
  expect_refused("bcsr", {{"block", 7}});
}

TEST_F(Formats, FoldCutsRowsIntoPiecesOfOneWidth) {
  const HostCsr m = pattern(7, {{0, 2, 4, 5, 6}, {}, {3}, {1, 6}});
  const auto fold = converted<FoldStorage>("fold", m, {{"width", 2}});
  EXPECT_EQ(entries<std::int32_t>(fold->fold_ptr), (Ints{0, 3, 3, 4, 5}));
  EXPECT_EQ(entries<std::int32_t>(fold->col_idx), (Ints{0, 4, 6, 3, 1, 2, 5, -1, -1, 6}));
  EXPECT_EQ(entries<double>(fold->values), (Doubles{1, 3, 5, 6, 7, 2, 4, 0, 0, 8}));
  EXPECT_EQ(fold->bytes, 4 * 5 + 12 * 10);
  EXPECT_EQ(converted<FoldStorage>("fold", m, {{"width", 0}})->width, 3);  // 8 nonzeros in 3 rows
  expect_refused("fold", {{"width", -1}});
}

TEST_F(Formats, PktTakesTheDensestWindow) {
  std::vector<std::int64_t> dense;
  for (std::int64_t j = 130; j < 190; ++j) dense.push_back(j);
  dense.insert(dense.begin(), 3);
  dense.push_back(400);
  const HostCsr m = pattern(500, {dense, {128, 129, 130, 191, 192}});
  const auto pkt = converted<PktStorage>("pkt", m, {{"packet_rows", 32}, {"packet_columns", 64}});
  EXPECT_EQ(pkt->pattern->window_first[0], 128);
  EXPECT_EQ(pkt->pattern->window_columns[0], 64);
  EXPECT_EQ(entries<std::int32_t>(pkt->rest_ptr), (Ints{0, 2, 3}));
  EXPECT_EQ(entries<std::int32_t>(pkt->rest_columns), (Ints{3, 400, 192}));
  EXPECT_EQ(entries<std::int32_t>(pkt->slice_ptr), (Ints{0, 60 * 32}));
  const auto local = entries<std::uint16_t>(pkt->local_columns);
  EXPECT_EQ(local[0], 2);
  EXPECT_EQ(local[1], 0);
  EXPECT_EQ(local[3 * 32 + 1], 63);
  EXPECT_EQ(local[4 * 32 + 1], kPktPadding);
  EXPECT_EQ(pkt->bytes, 8 + 4 * 2 + 4 * 3 + 10 * 60 * 32 + 12 * 3);
}

TEST_F(Formats, PktWithoutADenseWindowIsAllRest) {
  const auto pkt =
      converted<PktStorage>("pkt", pattern(500, {{0, 100, 200}, {50}}), {{"packet_rows", 32}, {"packet_columns", 64}});
  EXPECT_EQ(pkt->widest_window, 0);
  EXPECT_EQ(entries<std::int32_t>(pkt->rest_columns), (Ints{0, 100, 200, 50}));
  expect_refused("pkt", {{"packet_rows", 48}, {"packet_columns", 64}});
  expect_refused("pkt", {{"packet_rows", 32}, {"packet_columns", 8192}});
}

Buffer widened(const Buffer& narrow, Stream& stream) {
  Ints offsets(narrow.bytes() / sizeof(std::int32_t));
  copy_to_host(offsets.data(), narrow.data(), narrow.bytes(), stream);
  const std::vector<std::int64_t> wide(offsets.begin(), offsets.end());
  Buffer buffer(stream.device(), wide.size() * sizeof(std::int64_t));
  copy_to_device(buffer.data(), wide.data(), buffer.bytes(), stream);
  return buffer;
}

template <class S>
bool widen(Storage& storage, Stream& stream, std::initializer_list<Buffer S::*> offsets) {
  auto* s = dynamic_cast<S*>(&storage);
  if (s == nullptr) return false;
  for (Buffer S::*member : offsets) s->*member = widened(s->*member, stream);
  return s->wide_offsets = true;
}

/// As if the matrix were too big for 32-bit offsets. False for a format that it does not know.
bool widen(Storage& storage, Stream& stream) {
  return widen<SellStorage>(storage, stream, {&SellStorage::slice_ptr}) ||
         widen<BcsrStorage>(storage, stream, {&BcsrStorage::block_ptr}) ||
         widen<RbpCsrStorage>(storage, stream,
                              {&RbpCsrStorage::value_ptr, &RbpCsrStorage::bound_ptr, &RbpCsrStorage::single_ptr}) ||
         widen<RbpEllStorage>(storage, stream, {&RbpEllStorage::single_ptr}) ||
         widen<FoldStorage>(storage, stream, {&FoldStorage::fold_ptr}) ||
         widen<PktStorage>(storage, stream, {&PktStorage::slice_ptr, &PktStorage::rest_ptr});
}

std::vector<double> product(const Kernel& kernel, const std::shared_ptr<Storage>& storage, const HostCsr& m,
                            Stream& stream) {
  std::vector<double> x(static_cast<std::size_t>(m.cols)), y(static_cast<std::size_t>(m.rows));
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = test::value_of(j);
  const Buffer device_x(stream.device(), x.size() * sizeof(double)), device_y(stream.device(), y.size() * sizeof(double));
  copy_to_device(device_x.data(), x.data(), device_x.bytes(), stream);
  make_plan(kernel, storage, kernel.policies(row_statistics(m.row_ptr)).front(), stream)
      ->multiply(1, device_x.data(), 0, device_y.data(), stream);
  copy_to_host(y.data(), device_y.data(), device_y.bytes(), stream);
  return y;
}

/// 64-bit offsets give the same product, bit for bit, or the kernel says that it does not take them.
void check_wide_offsets(Backend backend) {
  Stream stream({backend, 0});
  int compared = 0;
  for (const test::NamedMatrix& zoo : test::matrix_zoo()) {
    if (zoo.name != "node blocks" && zoo.name != "tall") continue;
    ConversionInput input(zoo.matrix.view(), ValueType::f64, stream);
    for (const Kernel& kernel : kernels()) {
      if (kernel.backend != backend) continue;
      SCOPED_TRACE(std::string(kernel.name) + " on " + zoo.name);
      if (kernel.format == "csr") continue;  // its storage is the input's
      const Format& format = find_format(kernel.format);
      const Policy layout = format.layouts(input).front();
      if (format.bytes(input, layout) > largest_reasonable_bytes(input)) continue;
      const auto storage = store(format, input, layout);
      if (!kernel.supports(*storage)) continue;
      const std::vector<double> narrow = product(kernel, storage, zoo.matrix, stream);
      if (!widen(*storage, stream) || !kernel.supports(*storage)) continue;
      const std::vector<double> wide = product(kernel, storage, zoo.matrix, stream);
      EXPECT_EQ(std::memcmp(narrow.data(), wide.data(), narrow.size() * sizeof(double)), 0);
      ++compared;
    }
  }
  EXPECT_GE(compared, 2 * 7);
}

/// Each thread of a conversion starts somewhere in the middle; the arrays must not depend on where.
TEST_F(Formats, ConversionDoesNotDependOnThreads) {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) GTEST_SKIP() << "OMP_NUM_THREADS fixes the number of threads";
  HostCsr m;
  m.rows = 4099;
  m.cols = 5000;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t j = i % 7; j < 500 + i % 13 && i % 11 != 0; ++j)
      if ((i * 31 + j * 17) % 10 < 3 || j % 16 < 5) m.col_idx.push_back((i + j) % 2 == 0 ? j : j + i / 2);
    auto row = m.col_idx.begin() + m.row_ptr.back();
    std::sort(row, m.col_idx.end());
    m.col_idx.erase(std::unique(row, m.col_idx.end()), m.col_idx.end());
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  for (std::size_t k = 0; k < m.col_idx.size(); ++k) m.values.push_back(test::value_of(k));
  ASSERT_GT(m.nnz(), 10 << 16) << "too small for several threads";
  const auto converted_by = [&](int count, const Format& format, const Policy& layout) {
    const ThreadCount threads(count);
    ConversionInput input(m.view(), ValueType::f64, stream_);
    return store(format, input, layout);
  };
  ConversionInput input(m.view(), ValueType::f64, stream_);
  for (const Kernel& kernel : kernels()) {
    if (kernel.backend != Backend::host) continue;
    const Format& format = find_format(kernel.format);
    const Policy layout = format.layouts(input).front();
    if (format.bytes(input, layout) > largest_reasonable_bytes(input)) continue;
    SCOPED_TRACE(std::string(kernel.name));
    EXPECT_EQ(product(kernel, converted_by(1, format, layout), m, stream_),
              product(kernel, converted_by(7, format, layout), m, stream_));
  }
}

TEST_F(Formats, HostWideOffsets) { check_wide_offsets(Backend::host); }
TEST(GpuFormats, CudaWideOffsets) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_wide_offsets(Backend::cuda);
}

}  // namespace
}  // namespace shardmat
