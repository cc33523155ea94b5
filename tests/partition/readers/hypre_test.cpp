// IJ files that hypre wrote on three ranks (tests/data/hypre/make.c), and files written here.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>

#include "partition/files/atomic_files.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/hypre.h"
#include "partition/readers/reader.h"
#include "partition/readers/replaceable.h"
#include "partition/vectors/vector_file.h"
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

TEST_F(HypreTest, WritesAFileForEachRank) {
  const HostCsr m = test::random_matrix(7, 10, 5, 4);
  HostVector<double> x(7);
  std::iota(x.begin(), x.end(), 0.5);
  for (const std::string tail : {"", ".bin"})
    for (const std::int64_t files : {1, 2, 3, 7}) {
      const std::string a = fmt::format("a{}{}", files, tail), b = "b" + a;
      write_matrix(path(a + ".00000" + tail), *test::source_of(m), {}, files);
      expect_same(read_matrix(path(a)), m);
      VectorWriter out(path(b + ".00000" + tail), "x", 7, false, 1, files);
      for (std::int64_t begin = 0; begin < 7; begin += 2) out.append(x.data() + begin, std::min<std::int64_t>(2, 7 - begin));
      out.finish();
      EXPECT_EQ(VectorFile(path(b), "x").read(0, 7), x);
      EXPECT_EQ(hypre::open_parts(path(b), true).parts.size(), static_cast<std::size_t>(files));
    }
  // hypre's own division (hypre_GenerateLocalPartitioning): the first files have one row more.
  std::vector<std::array<std::int64_t, 4>> ranges;
  for (const hypre::Part& part : hypre::open_parts(path("a3.bin"), false).parts)
    ranges.push_back({part.first_row, part.end_row, part.first_col, part.end_col});
  EXPECT_EQ(ranges, (std::vector<std::array<std::int64_t, 4>>{{0, 3, 0, 4}, {3, 5, 4, 7}, {5, 7, 7, 10}}));
  EXPECT_EQ(test::bytes_of(path("a3.00001")).substr(0, 8), "3 4 4 6\n");
  EXPECT_EQ(test::bytes_of(path("ba3.00002")), "5 6\n5 5.5000000000000000e+00\n6 6.5000000000000000e+00\n");
}

TEST_F(HypreTest, AnOutputInSeveralFilesAppearsWholeOrNotAtAll) {
  const auto m = test::source_of(test::random_matrix(100, 100, 5, 4));
  const auto usage = [&](const std::string& name, std::int64_t files) {
    return error_of([&] { write_matrix(path(name), *m, {}, files); }, ErrorKind::usage);
  };
  EXPECT_SAYS(usage("a.mtx", 2), "a.mtx as 2 files", "only hypre's format", ".00000");
  EXPECT_SAYS(usage("a.00000", 101), "a.00000 as 101 files", "100 rows", "100 or fewer");
  EXPECT_SAYS(usage("a.00000", 0), "a.00000 as 0 files", "at least one");
  EXPECT_SAYS(error_of([&] { VectorWriter(path("x.00000.bin"), "x", 3, false, 1, 4); }, ErrorKind::usage), "3 rows");
  EXPECT_SAYS(error_of([&] { VectorWriter(path("x.npy"), "x", 3, false, 1, 2); }, ErrorKind::usage), "x.npy as 2 files");
  const auto big = test::source_of(test::random_matrix(20000, 20000, 40, 1));
  {
    const test::SmallDisk disk(1 << 20);
    EXPECT_SAYS(error_of([&] { write_matrix(path("a.00000"), *big, {}, 2); }, ErrorKind::resources), "a.00000");
  }
  EXPECT_EQ(files(), 0u);
  {
    const AtomicFiles out(path("a.00000"), 70, 100);  // more than a block of the list of temporaries
    EXPECT_EQ(files(), 70u);
    remove_unfinished_files();
    EXPECT_EQ(files(), 0u);
  }
  // Files of an earlier output may be replaced, but none of them may be left.
  write_matrix(path("a.00000"), *m, {}, 3);
  write_matrix(path("a.00000"), *m, {}, 4);
  require_replaceable(path("a.00000"), Output::matrix, "", 4);
  EXPECT_SAYS(usage("a.00000", 2), "a.00002", "up to", "a.00003", "remove them first");
  EXPECT_SAYS(usage("a.00000", 1), "a.00000 as 1 file:", "a.00001", "a.00003");
  EXPECT_SAYS(usage("a.00000", 3), "a.00003 is there");
  EXPECT_SAYS(error_of([&] { require_replaceable(path("a.00000"), Output::vector, "", 4); }, ErrorKind::usage), "a.00000",
              "IJ vector");
  write("a.00003", "a log\n");
  EXPECT_SAYS(error_of([&] { require_replaceable(path("a.00000"), Output::matrix, "", 4); }, ErrorKind::usage), "a.00003",
              "something else than an IJ matrix");
}

TEST_F(HypreTest, EntriesThatComeTwice) {
  ReadOptions sum;
  sum.choices.sum_duplicates = true;
  const std::string text = "1 2 1 2\n1 1 5\n2 2 2\n1 1 7\n";
  write("a.00000", text);
  EXPECT_SAYS(error("a"), "a: the entry in row 1, column 1 comes twice", "hypre would keep the last",
              "have duplicates summed");
  for (const char* name : {"a", "a.00000"}) expect_same(read_matrix(path(name), sum), csr(2, 2, {0, 1, 2}, {0, 1}, {12, 2}));
  sum.choices.format = "hypre-ij";
  expect_same(read_matrix(path("a"), sum), csr(2, 2, {0, 1, 2}, {0, 1}, {12, 2}));
  sum.choices.format = "petsc";
  EXPECT_SAYS(error_of([&] { read_matrix(path("a"), sum); }, ErrorKind::usage), "rank-hdf5 and hypre-ij, not for petsc");
  // hypre adds what a file has of rows of other ranks.
  write("b.00000", "0 0 0 1\n0 1 3\n1 0 4\n1 0 5\n");
  write("b.00001", "1 1 0 1\n1 0 6\n");
  expect_same(read_matrix(path("b")), csr(2, 2, {0, 1, 2}, {1, 0}, {3, 15}));
  write("b.00001", "1 1 0 1\n1 0 6\n1 0 6\n");
  EXPECT_SAYS(error("b"), "row 1, column 0 comes twice");
  const auto word = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  write("c.00000.bin",
        bytes_of(std::vector<std::uint64_t>{1, 8, 8, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, word(1.5), word(2)}));
  EXPECT_SAYS(error("c"), "row 0, column 0 comes twice");
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
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  write("e.00000.bin", bytes_of(std::vector<std::uint64_t>{1, 8, 8, 1, 1, 0, 0, 0, kMost, 0, kMost}));
  EXPECT_SAYS(error("e"), "e.00000.bin", "the file is damaged");
  write("x.00000", "0 2\n0 1\n1 2\n");
  EXPECT_SAYS(error_of([&] { VectorFile(path("x"), "x"); }), "x.00000: it has 2 of the rows 0 to 2");
  write("x.00000", "0 1\n0 1\n0 2\n");
  EXPECT_SAYS(error_of([&] { VectorFile(path("x"), "x"); }), "x.00000:3: row 0 comes twice");
}

}  // namespace
}  // namespace shardmat
