// Matrices and vectors that FreeFEM printed (tests/data/freefem/make.edp), and files written here.
#include <gtest/gtest.h>

#include "partition/readers/entry_reader.h"
#include "partition/readers/reader.h"
#include "partition/vectors/vector_file.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::csr;
using test::error_of;
using test::expect_same;
using test::Path;

std::string data(const std::string& name) { return (Path(SHARDMAT_TEST_DATA) / "freefem" / name).string(); }

const std::string kCoordinates =
    "#  HashMatrix Matrix (COO) 0x56024c880600\n#    n       m        nnz     half     fortran\n";
const std::string kMorse =
    "# Sparse Matrix (Morse)  \n# first line: n m (is symmetic) nbcoef \n# after for each nonzero coefficient:   i j a_ij\n";

class FreeFemTest : public test::FilesTest {
 protected:
  HostCsr read(const std::string& text) const {
    const HostCsr m = read_matrix(write("a.txt", text));
    expect_same(read_by_entries(*open_entries(path("a.txt"), {}, {7, 40}), {}, {7, 40}), m);  // pieces of a line or two
    return m;
  }
  std::string error(const std::string& text) const {
    return error_of([&] { read_matrix(write("a.txt", text)); });
  }
  std::string vector_error(const std::string& text) const {
    return error_of([&] { VectorFile(write("x.txt", text), "x"); });
  }
};

TEST_F(FreeFemTest, ProductsAreThoseOfFreeFem) {
  const VectorFile x(data("x.txt"), "x");
  ASSERT_EQ(x.size(), 6);
  const HostVector<double> all = x.read(0, 6);
  EXPECT_EQ(all[2], 1. / 3);
  for (const auto& [matrix, product] : {std::pair("A.txt", "y.txt"), std::pair("S.txt", "z.txt")}) {
    const HostCsr m = read_matrix(data(matrix));
    ASSERT_EQ(m.rows, 6);
    const HostVector<double> expected = VectorFile(data(product), "y").read(0, 6);
    for (std::size_t i = 0; i < 6; ++i) {
      double sum = 0;
      for (auto k = static_cast<std::size_t>(m.row_ptr[i]); k < static_cast<std::size_t>(m.row_ptr[i + 1]); ++k)
        sum += m.values[k] * all[static_cast<std::size_t>(m.col_idx[k])];
      EXPECT_NEAR(sum, expected[i], 1e-14);
    }
  }
  expect_same(read_matrix(data("R.txt")), csr(2, 3, {0, 2, 3}, {0, 2, 1}, {1.5, -2, 3}));
  EXPECT_SAYS(error_of([] { read_matrix(data("C.txt")); }), "C.txt:4: its values are complex", "--complex as-real");
}

TEST_F(FreeFemTest, BothForms) {
  expect_same(
      read(kCoordinates + "3 3 3 1 0 0 0 \n         0         0 1.5\n         2         0 -1\n         2         2 4\n"),
      csr(3, 3, {0, 2, 2, 4}, {0, 2, 0, 2}, {1.5, -1, -1, 4}));
  expect_same(read(kCoordinates + "2 3 2 0 1 0 0 \n 1 3 1.5\n 2 1 7\n\n"), csr(2, 3, {0, 1, 2}, {2, 0}, {1.5, 7}));
  expect_same(read(kMorse + "2 3 0  2\n        1         3 1.5\n        2         1 7\n"),
              csr(2, 3, {0, 1, 2}, {2, 0}, {1.5, 7}));
  expect_same(read(kMorse + "2 2 1  2\n 1 1 1.5\n 2 1 7\n"), csr(2, 2, {0, 2, 3}, {0, 1, 0}, {1.5, 7, 7}));
  expect_same(read(kCoordinates + "2 2 0 0 0 0 0 \n"), csr(2, 2, {0, 0, 0}, {}, {}));
}

TEST_F(FreeFemTest, DamageNamesTheLine) {
  EXPECT_SAYS(error(kCoordinates), "a.txt", "ends in its header");
  EXPECT_SAYS(error(kCoordinates + "2 x\n"), "a.txt:3: the number of columns \"x\"");
  EXPECT_SAYS(error(kCoordinates + "2 3 1 1 0 0 0\n1 0 1\n"), "a.txt:3", "must be square, not 2 × 3");
  EXPECT_SAYS(error(kCoordinates + "2 2 1 0 0 0 0\n 0 2 1\n"), "a.txt:4: the column \"2\"", "from 0 to 1");
  EXPECT_SAYS(error(kMorse + "2 2 0 1\n 0 1 1\n"), "a.txt:5: the row \"0\"", "from 1 to 2");
  EXPECT_SAYS(error(kCoordinates + "2 2 1 1 0 0 0\n 0 1 1\n"), "a.txt:4: the entry (0, 1) is above the diagonal");
  EXPECT_SAYS(error(kCoordinates + "2 2 3 0 0 0 0\n 0 1 1\n 1 1 2\n"), "a.txt: its header promises 3 entries, and it has 2");
  EXPECT_SAYS(error(kCoordinates + "2 2 1 0 0 0 0\n 0 1\n"), "a.txt:4: the value is missing");
  EXPECT_SAYS(error(kCoordinates + "200000000000000 2 1 0 0 0 0\n 0 1 1\n"), "a.txt", "ask for");
  EXPECT_SAYS(error_of([&] { read_matrix(data("R.txt:A")); }), "holds one matrix");
}

TEST_F(FreeFemTest, VectorsThatAreWrong) {
  EXPECT_EQ(VectorFile(write("e.txt", "0\t\n\t\n"), "x").size(), 0);
  EXPECT_SAYS(vector_error("3\t\n\t1\t2\t\n"), "x.txt: its first line promises 3 numbers, and it has 2");
  EXPECT_SAYS(vector_error("1\t\n\t1\t2\t\n"), "x.txt:2: there are more than the promised 1 numbers");
  EXPECT_SAYS(vector_error("1\t\n\t(0,1)\t\n"), "x.txt:2", "complex");
  EXPECT_SAYS(vector_error("1\t\n\tx\t\n"), "x.txt:2: the value \"x\"");
  EXPECT_SAYS(vector_error("90000000000\t\n\t1\t\n"), "x.txt:1", "more than the file has room for");
  EXPECT_SAYS(error_of([] { VectorFile(data("x.txt"), "x", 2); }), "one vector", "2 columns");
  EXPECT_EQ(VectorFile(write("t.txt", "1\n2\n3\n"), "x").size(), 3);  // plain text is no vector of FreeFEM
}

}  // namespace
}  // namespace shardmat
