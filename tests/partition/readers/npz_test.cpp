// The files are SciPy's; tests/data/npz/make.py wrote them.
#include <gtest/gtest.h>

#include <cmath>

#include "partition/readers/reader.h"
#include "partition/readers/reader_list.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::csr;
using test::error_of;
using test::expect_same;
using test::Path;

Path data(const std::string& name) { return Path(SHARDMAT_TEST_DATA) / "npz" / (name + ".npz"); }

class NpzTest : public test::FilesTest {
 protected:
#ifdef SHARDMAT_HAVE_LIBZIP
  void SetUp() override {}
#else
  void SetUp() override {
    EXPECT_SAYS(error_of([&] { read_matrix(data("csr")); }), "csr.npz", "libzip");
    GTEST_SKIP() << "this build has no libzip";
  }
#endif
};

HostCsr example() { return csr(5, 4, {0, 2, 2, 3, 7, 8}, {0, 3, 1, 0, 1, 2, 3, 2}, {1.5, -2, 3, 4, 5, 6, 7, 1e-3}); }

TEST_F(NpzTest, ReadsWhatSciPyWrites) {
  for (const char* name : {"csr", "csc", "coo", "csr_stored", "csr_int64"}) {
    SCOPED_TRACE(name);
    expect_same(read_matrix(data(name)), example());
  }
}

TEST_F(NpzTest, ConvertsOtherTypes) {
  HostCsr m = example();
  m.values.back() = static_cast<double>(1e-3F);
  expect_same(read_matrix(data("csr_f32")), m);
  EXPECT_EQ(read_matrix(data("csr_int")).values, (HostVector<double>{1, -2, 3, 4, 5, 6, 7, 0}));
  EXPECT_EQ(read_matrix(data("csr_bool")).values, HostVector<double>(8, 1));
}

TEST_F(NpzTest, ReadsDiagonalsAndBlocks) {
  expect_same(read_matrix(data("dia")),
              csr(5, 4, {0, 2, 4, 7, 9, 10}, {0, 1, 1, 2, 0, 2, 3, 1, 3, 2}, {0.5, 10, 6, 11, 1.5, 7, -12, -2, 8, 3}));
  const HostCsr blocks = read_matrix(data("bsr"));  // of 1 × 2, with the zeros in them
  EXPECT_EQ(blocks.row_ptr, (HostVector<std::int64_t>{0, 4, 4, 6, 10, 12}));
  EXPECT_EQ(blocks.col_idx, (HostVector<std::int64_t>{0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(blocks.values, (HostVector<double>{1.5, 0, 0, -2, 0, 3, 4, 5, 6, 7, 1e-3, 0}));
}

TEST_F(NpzTest, SumsDuplicates) {
  expect_same(read_matrix(data("coo_duplicates")), csr(3, 4, {0, 1, 1, 2}, {3, 1}, {2, 5}));
}

TEST_F(NpzTest, ReadsAMatrixWithoutRows) { expect_same(read_matrix(data("no_rows")), csr(0, 3, {0}, {}, {})); }

TEST_F(NpzTest, RefusesWhatIsNoValidMatrix) {
  EXPECT_SAYS(error_of([&] { read_matrix(data("csr_complex")); }), "csr_complex.npz", "--complex as-real");
  EXPECT_SAYS(error_of([&] { read_matrix(data("csr_outside")); }), "csr_outside.npz", "row 3", "column 9");
  EXPECT_SAYS(error_of([&] { read_matrix(data("csr_nan")); }), "csr_nan.npz", "row 2", "nan", "not finite");
  EXPECT_EQ(setting_of([&] { read_matrix(data("csr_nan")); }), "allow_nonfinite");
  ReadOptions allow;
  allow.allow_nonfinite = true;
  EXPECT_TRUE(std::isnan(read_matrix(data("csr_nan"), allow).values[2]));
}

TEST_F(NpzTest, RefusesDamagedArchives) {
  const std::string good = test::bytes_of(data("csr"));
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.npz", good.substr(0, good.size() / 2))); }), "a.npz", "zip archive");
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.npz", "garbage")); }), "a.npz", "zip archive");
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.npz", "")); }), "a.npz", "zip archive");
  std::string wrong = test::bytes_of(data("csr_stored"));
  const std::size_t at = wrong.find(std::string("\0\0\0\0\0\0\xf8\x3f", 8));  // 1.5, the first value
  ASSERT_NE(at, std::string::npos);
  wrong[at + 5] = 1;
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.npz", wrong)); }), "a.npz(data.npy)", "damaged", "CRC");
}

TEST_F(NpzTest, RefusesTwoMembersOfOneName) {
  std::string twice = test::bytes_of(data("csr"));
  for (std::size_t at = 0; (at = twice.find("indptr.npy", at)) != std::string::npos; ++at)
    twice.replace(at, 10, "format.npy");
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.npz", twice)); }), "a.npz", "two members", "format.npy");
}

TEST_F(NpzTest, RefusesSizesThatASmallFileCannotMean) {
  EXPECT_SAYS(error_of([&] { read_matrix(data("tall")); }), "tall.npz", "ask for 1.6 GB of memory", "without compression");
}

TEST_F(NpzTest, RefusesElementsWithoutBytes) {
  std::string empty = test::bytes_of(data("csr_stored"));
  for (const char* type : {"'<i4'", "'<i8'"})
    for (std::size_t at = 0; (at = empty.find(type, at)) != std::string::npos; ++at) empty[at + 3] = '0';
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.npz", empty)); }), "a.npz", "no plain numbers");
}

TEST_F(NpzTest, AsksForMemoryFirst) {
  ReadLimits small;
  small.memory_bytes = 100;
  EXPECT_SAYS(error_of([&] { read_npz(data("csr"), {}, small); }, ErrorKind::resources), "csr.npz", "memory");
}

}  // namespace
}  // namespace shardmat
