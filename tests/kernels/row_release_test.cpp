// Rows that are released while they are converted: the storage has the same bytes, the memory goes back to the system, and
// nobody reads the rows again.
#include "kernels/matrix/row_release.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/choose/registry.h"
#include "kernels/choose/tuner.h"
#include "kernels/formats/bcsr.h"
#include "kernels/formats/packed.h"
#include "kernels/matrix/compact_csr.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

/// Square blocks of 3 · 3 near the diagonal, rows of uneven length; with `shuffled`, some rows do not ascend.
HostCsr blocked_matrix(std::int64_t blocks, bool shuffled) {
  HostCsr m;
  m.rows = m.cols = 3 * blocks;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    const std::int64_t first = std::max<std::int64_t>(0, i / 3 - i % 5), last = std::min(blocks, i / 3 + 8 + i % 4);
    for (std::int64_t column = 3 * first; column < 3 * last; ++column) {
      m.col_idx.push_back(column);
      m.values.push_back(static_cast<double>(i % 97 + column % 89 + 1));
    }
    if (shuffled && i % 7 == 0) std::swap(m.col_idx.back(), m.col_idx[static_cast<std::size_t>(m.row_ptr.back())]);
    m.row_ptr.push_back(std::ssize(m.col_idx));
  }
  return m;
}

/// Bytes of an array whose pages are in memory.
std::size_t resident_bytes(const void* begin, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  const std::size_t pages = (reinterpret_cast<std::uintptr_t>(begin) + bytes - first + page - 1) / page;
  std::vector<unsigned char> in_memory(pages);
  if (::mincore(reinterpret_cast<void*>(first), pages * page, in_memory.data()) != 0) return 0;
  std::size_t count = 0;
  for (const unsigned char is : in_memory) count += is & 1;
  return count * page;
}

std::size_t resident_bytes(const CompactCsr& csr) {
  const auto of = [](const auto& numbers) {
    return numbers.visit([](const auto& all) { return resident_bytes(all.data(), all.size_bytes()); });
  };
  return of(csr.columns()) + of(csr.values());
}

std::vector<const Buffer*> arrays(const Storage& storage) {
  if (storage.format == "bcsr") {
    const auto& bcsr = static_cast<const BcsrStorage&>(storage);
    return {&bcsr.block_ptr, &bcsr.block_col, &bcsr.values};
  }
  const auto& packed = static_cast<const PackedStorage&>(storage);
  return {&packed.slice, &packed.order, &packed.deltas, &packed.values};  // gaps between indices are not written
}

void expect_same(const Storage& storage, const Storage& expected) {
  ASSERT_EQ(storage.bytes, expected.bytes);
  const auto ours = arrays(storage), theirs = arrays(expected);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(ours[i]->bytes(), theirs[i]->bytes());
    if (ours[i]->bytes() == 0) continue;
    EXPECT_EQ(std::memcmp(ours[i]->data(), theirs[i]->data(), ours[i]->bytes()), 0) << "array " << i;
  }
}

struct Stored {
  std::string format;
  Policy layout;
};

std::vector<Stored> stored_formats() {
  return {{"bcsr", {{"block", 3}}},
          {"bcsr", {{"block", 4}}},
          {"packed", {{"block", 1}, {"lanes", 1}, {"shift", 0}, {"window", 1}}},
          {"packed", {{"block", 1}, {"lanes", 1}, {"shift", 0}, {"window", 1024}}},
          {"packed", {{"block", 3}, {"lanes", 3}, {"shift", 1}, {"window", 1 << 20}}}};
}

class RowReleaseTest : public ::testing::Test {
 protected:
  Stream stream_{Device{}};
};

TEST_F(RowReleaseTest, StoresTheSameBytesAndGivesTheRowsBack) {
  for (const bool shuffled : {false, true}) {
    const HostCsr m = blocked_matrix(6000, shuffled);  // several blocks of release
    for (const ValueType type : {ValueType::f64, ValueType::f32})
      for (const int threads : {1, 3})
        for (const Stored& wanted : stored_formats()) {
          SCOPED_TRACE(wanted.format + " " + wanted.layout.text() + " " + std::string(name(type)));
          const ThreadCount count(threads);
          const Format& format = find_format(wanted.format);
          ConversionInput kept(m.view(), type, stream_);
          const auto expected = store(format, kept, wanted.layout);
          const CompactCsr rows(m.view(), type);
          RowRelease release(rows.view());
          CsrView view = rows.view();
          view.release = &release;
          const std::size_t before = resident_bytes(rows);
          ConversionInput input(view, type, stream_);
          expect_same(*store(format, input, wanted.layout), *expected);
          const auto all = static_cast<std::size_t>(CompactCsr::entry_bytes(m.cols, type) * m.nnz());
          EXPECT_GE(before, all);
          EXPECT_TRUE(release.began());
          EXPECT_GT(static_cast<std::size_t>(release.bytes()), all - (32 << 10));  // parts of pages stay
          EXPECT_LE(resident_bytes(rows), before - static_cast<std::size_t>(release.bytes()));
          EXPECT_THROW(store(find_format("csr"), input, {}), Error);
          EXPECT_THROW(ConversionInput(view, type, stream_), Error);
        }
  }
}

/// Half of the rows are released: memory of the other half stays, and its values, too.
TEST_F(RowReleaseTest, TakesNothingThatWasNotRead) {
  const HostCsr m = blocked_matrix(6000, false);
  const CompactCsr rows(m.view(), ValueType::f64);
  RowRelease release(rows.view());
  EXPECT_FALSE(release.began());
  const std::int64_t half = m.nnz() / 2;
  for (std::int64_t first = half - 1; first >= 0; --first) release.release(rows.view(), first, first + 1);  // in any order
  EXPECT_TRUE(release.began());
  EXPECT_GT(release.bytes(), 0);
  EXPECT_LE(release.bytes(), 12 * half);
  const ColumnView columns = rows.columns();
  const ValueView values = rows.values();
  for (auto k = static_cast<std::size_t>(half); k < static_cast<std::size_t>(m.nnz()); ++k) {
    ASSERT_EQ(columns[k], m.col_idx[k]);
    ASSERT_EQ(values[k], m.values[k]);
  }
}

TEST_F(RowReleaseTest, ChoosingReleasesOnlyForOneConversion) {
  const HostCsr m = blocked_matrix(2000, false);
  const auto released = [&](const PlanRequest& request) {
    const CompactCsr rows(m.view(), ValueType::f64);
    RowRelease release(rows.view());
    CsrView view = rows.view();
    view.release = &release;
    choose_plan(view, ValueType::f64, request, stream_);
    return release.began();
  };
  PlanRequest named, measured, predicted;
  named.kernel = "packed_host";
  measured.products = 1e6;
  predicted.measure = false;
  EXPECT_TRUE(released(named));
  EXPECT_FALSE(released(measured));
  EXPECT_TRUE(released(predicted));  // blocks of 3 · 3
  named.tune = true;
  EXPECT_FALSE(released(named));
}

TEST_F(RowReleaseTest, TakesEveryMatrix) {
  for (const test::NamedMatrix& zoo : test::matrix_zoo())
    for (const Stored& wanted : stored_formats()) {
      SCOPED_TRACE(wanted.format + " " + wanted.layout.text() + " of " + zoo.name);
      if (wanted.layout.at("block") > zoo.matrix.cols) continue;
      ConversionInput kept(zoo.matrix.view(), ValueType::f64, stream_);
      const CompactCsr rows(zoo.matrix.view(), ValueType::f64);
      RowRelease release(rows.view());
      CsrView view = rows.view();
      view.release = &release;
      ConversionInput input(view, ValueType::f64, stream_);
      try {
        const auto expected = store(find_format(wanted.format), kept, wanted.layout);
        expect_same(*store(find_format(wanted.format), input, wanted.layout), *expected);
      } catch (const Error& e) {  // too large in this format
        EXPECT_EQ(e.kind(), ErrorKind::resources);
        EXPECT_FALSE(release.began());
      }
    }
}

}  // namespace
}  // namespace shardmat
