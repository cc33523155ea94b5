// IJ files that hypre wrote on three ranks (tests/data/hypre/make.c), and files written here.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>

#include "partition/readers/entry_reader.h"
#include "partition/readers/reader.h"
#include "partition/vector_file.h"
#include "partition/writers/writer.h"
#include "tests/partition/readers/test_files.h"
#include "tests/partition/test_matrices.h"

namespace shardmat {
namespace {

using test::csr;
using test::error_of;
using test::expect_same;
using test::Path;

Path data(const std::string& name) { return Path(SHARDMAT_TEST_DATA) / "hypre" / name; }

template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

class HypreTest : public test::FilesTest {
 protected:
  std::string error(const std::string& name) const {
    return error_of([&] { read_matrix(path(name)); });
  }
};

TEST_F(HypreTest, ReadsWhatHypreWrote) {
  HostCsr expected;
  expected.rows = expected.cols = 8;
  for (std::int64_t i = 0; i < 8; ++i) {
    const auto x = static_cast<double>(i);
    std::vector<std::pair<std::int64_t, double>> row{
        {i, 4 + 0.25 * x}, {(i + 3) % 8, -1.5}, {(i + 5) % 8, i == 2 ? 0 : 0.125 * x}};
    std::sort(row.begin(), row.end());
    for (const auto& [col, value] : row) expected.col_idx.push_back(col), expected.values.push_back(value);
    expected.row_ptr.push_back(std::ssize(expected.col_idx));
  }
  expect_same(read_matrix(data("IJ.A")), expected);
  expect_same(read_matrix(data("IJ.A.00000")), expected);
  const VectorFile b(data("IJ.b"), "b");
  ASSERT_EQ(b.size(), 8);
  EXPECT_EQ(b.read(2, 5), (HostVector<double>{2, 2.5, 3}));
  EXPECT_SAYS(error_of([] { read_matrix(data("IJ.b")); }), "IJ.b.00000: it is a file of a vector");
  EXPECT_SAYS(error_of([] { VectorFile(data("IJ.A"), "x"); }), "IJ.A.00000: it is a file of a matrix");
}

TEST_F(HypreTest, SharesAreWholeFiles) {
  for (int shares = 1; shares <= 5; ++shares) {
    std::int64_t entries = 0, stored = 0;
    for (int share = 0; share < shares; ++share) {
      const auto reader = open_entries(data("IJ.A"), {}, {});
      EXPECT_EQ(reader->rows(), 8);
      std::mutex mutex;
      stored += reader->count({share, shares}, [](auto) {}, {});
      reader->read({share, shares},
                   [&](std::span<const MatrixEntry> found) {
                     const std::scoped_lock lock(mutex);
                     entries += std::ssize(found);
                   },
                   {});
    }
    EXPECT_EQ(entries, 24);
    EXPECT_EQ(stored, 24);
  }
}

TEST_F(HypreTest, BinaryOfAllWidthsAndRowsThatBeginAtOne) {
  using U = std::vector<std::uint64_t>;
  write("w.00000.bin", bytes_of(U{1, 4, 4, 3, 2, 3, 2, 1, 2, 1, 1}) + bytes_of(std::vector<std::int32_t>{1, 2}) +
                           bytes_of(std::vector<std::int32_t>{1, 2}) + bytes_of(std::vector<float>{1.5F, 2}));
  write("w.00001.bin",
        bytes_of(U{1, 8, 8, 3, 2, 3, 1, 3, 3, 2, 2}) + bytes_of(U{3}) + bytes_of(U{1}) + bytes_of(std::vector<double>{-7}));
  expect_same(read_matrix(path("w")), csr(3, 2, {0, 1, 2, 3}, {0, 1, 0}, {1.5, 2, -7}));
  write("v.00000.bin", bytes_of(U{1, 4, 0, 1, 3, 2, 1, 0}) + bytes_of(std::vector<float>{1, 2.5F}));
  write("v.00001.bin", bytes_of(U{1, 8, 2, 2, 3, 1, 1, 0}) + bytes_of(std::vector<double>{0.1}));
  EXPECT_EQ(VectorFile(path("v"), "x").read(0, 3), (HostVector<double>{1, 2.5, 0.1}));
}

TEST_F(HypreTest, RanksWithoutRowsAndEntriesOfOtherRanks) {
  write("a.00000", "0 1 0 1\n0 0 1\n1 1 2\n2 0 5\n");
  write("a.00001", "2 1 2 1\n");
  write("a.00002", "2 2 2 2\n2 2 3\n2 0 0.5\n");
  expect_same(read_matrix(path("a")), csr(3, 3, {0, 1, 2, 4}, {0, 1, 0, 2}, {1, 2, 5.5, 3}));
}

TEST_F(HypreTest, WritesWhatItReads) {
  HostCsr m = test::random_matrix(60, 80, 9, 3);
  m.values[1] = 0, m.values[2] = 0.1;
  for (const char* name : {"m.00000", "n.00000.bin"}) {
    write_matrix(path(name), *test::source_of(m));
    expect_same(read_matrix(path(std::string(name).substr(0, 1))), m);
  }
  const HostVector<double> x{0.1, -0.0, 1e300, 5e-324};
  for (const char* name : {"x.00000", "y.00000.bin"}) {
    VectorWriter out(path(name), "x", 4, false);
    out.append(x.data(), 4);
    out.finish();
    EXPECT_EQ(VectorFile(path(std::string(name).substr(0, 1)), "x").read(0, 4), x);
  }
}

TEST_F(HypreTest, DamageNamesFileAndLine) {
  write("a.00000", "0 1 0 2\n0 0 1\n1 1 2\n");
  const auto with = [&](const std::string& text) {
    write("a.00001", text);
    return error("a");
  };
  EXPECT_SAYS(with("2 2 0 2\n2 2 3\n3 0 1\n"), "a.00001:3: the row \"3\"", "from 0 to 2");
  EXPECT_SAYS(with("2 2 0 2\n2 x 3\n"), "a.00001:2: the column \"x\"");
  EXPECT_SAYS(with("2 2 0 2\n2 2 1e999\n"), "a.00001:2: the value");
  EXPECT_SAYS(with("2 2 0 2\n2 2\n"), "a.00001:2: the value is missing");
  EXPECT_SAYS(with("2 2 0 2\n2 2 1 1\n"), "a.00001:2: \"1\" follows");
  EXPECT_SAYS(with("3 3 0 2\n"), "a.00001", "a.00000", "a gap");
  EXPECT_SAYS(with("1 3 0 2\n"), "a.00001", "a.00000", "an overlap");
  EXPECT_SAYS(with("2 2\n"), "a.00001: it is a file of a vector");
  EXPECT_SAYS(with("hello\n"), "a.00001: its first line");
  EXPECT_SAYS(with(""), "a.00001: its first line has 0 numbers");
  write("b.00000.bin", bytes_of(std::vector<std::uint64_t>{1, 8, 8, 1, 1, 1, 1, 0, 0, 0, 0}));
  EXPECT_SAYS(error("b"), "b.00000.bin", "promises 1 entries", "0 bytes");
  write("c.00000.bin", "short");
  EXPECT_SAYS(error("c"), "c.00000.bin", "truncated");
  write("d.00000.bin", bytes_of(std::vector<std::uint64_t>{1, 8, 8, 1, 1, 1, 1, 0, 0, 0, 0, 7, 0, 0}));
  EXPECT_SAYS(error("d"), "d.00000.bin: entry 0 lies at (7, 0)");
  write("x.00000", "0 2\n0 1\n1 2\n");
  EXPECT_SAYS(error_of([&] { VectorFile(path("x"), "x"); }), "x.00000: it has 2 of the rows 0 to 2");
  write("x.00000", "0 1\n0 1\n0 2\n");
  EXPECT_SAYS(error_of([&] { VectorFile(path("x"), "x"); }), "x.00000:3: row 0 comes twice");
}

}  // namespace
}  // namespace shardmat
