// MATLAB's files of versions 5 to 7, as SciPy writes them (tests/data/mat/make.py).
#include "partition/readers/matlab5.h"

#include <gtest/gtest.h>

#include "partition/readers/reader.h"
#include "partition/vector_file.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::csr;
using test::error_of;
using test::expect_same;
using test::Path;

std::string data(const std::string& name) { return (Path(SHARDMAT_TEST_DATA) / "mat" / name).string(); }

class Matlab5Test : public test::FilesTest {
 protected:
  /// big.mat has one variable: this changes the byte at `at`.
  std::string error_with(std::size_t at, char byte) const {
    std::string bytes = test::bytes_of(data("big.mat"));
    bytes.at(at) = byte;
    return error_of([&] { read_matrix(write("a.mat", bytes)); });
  }
};

TEST_F(Matlab5Test, ReadsSparseMatrices) {
  const HostCsr expected = csr(3, 4, {0, 2, 2, 5}, {0, 2, 0, 1, 3}, {1.5, -2, 0.1, 3, 1e300});
  for (const char* name : {"v6.mat:K", "v7.mat:K", "big.mat", "big.mat:K"}) expect_same(read_matrix(data(name)), expected);
  expect_same(read_matrix(data("v7.mat:empty")), csr(4, 2, {0, 0, 0, 0, 0}, {}, {}));
  EXPECT_SAYS(error_of([] { read_matrix(data("v6.mat")); }), "several sparse matrices; name one", "v6.mat:K");
  EXPECT_SAYS(error_of([] { read_matrix(data("v7.mat:B")); }), "variable B: it is a dense matrix, 3 × 2", "sparse(A)");
  EXPECT_SAYS(error_of([] { read_matrix(data("v7.mat:L")); }), "no variable L", ":K is a sparse matrix, 3 × 4");
}

TEST_F(Matlab5Test, ReadsArraysAsVectors) {
  for (const char* file : {"v6.mat", "v7.mat"}) {
    const std::string name = data(file);
    EXPECT_EQ(VectorFile(name + ":b", "x").read(0, 3), (HostVector<double>{1, 2, 3}));
    EXPECT_EQ(VectorFile(name + ":n", "x").read(0, 2), (HostVector<double>{4, 5}));
    EXPECT_EQ(VectorFile(name + ":B", "x", 2).read(1, 3), (HostVector<double>{3, 4, 5, 6}));
    EXPECT_SAYS(error_of([&] { VectorFile(name + ":B", "x", 3); }), "3 × 2", "3 columns");
    EXPECT_SAYS(error_of([&] { VectorFile(name + ":text", "x"); }), "text");
    EXPECT_SAYS(error_of([&] { VectorFile(name + ":none", "x"); }), "no variable none", "shardmat info");
  }
}

TEST_F(Matlab5Test, ListsVariables) {
  const auto list = list_objects(data("v7.mat"));
  ASSERT_EQ(list.size(), 6U);
  EXPECT_EQ(list[0].name, "K");
  EXPECT_TRUE(list[0].matrix);
  EXPECT_EQ(list[1].text, "dense matrix, 3 × 1");
  EXPECT_EQ(list[5].text, "variable of another kind");
}

TEST_F(Matlab5Test, DamageIsRefused) {
  const std::string good = test::bytes_of(data("big.mat"));
  for (std::size_t size = 0; size + 1 < good.size(); size += 3) {
    if (size == 128) continue;  // a file without variables
    EXPECT_SAYS(error_of([&] { read_matrix(write("a.mat", good.substr(0, size))); }), "a.mat");
  }
  const std::string packed = test::bytes_of(data("v7.mat"));
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.mat", packed.substr(0, 200)).string() + ":K"); }), "variable", "bytes");
  std::string wrong = packed;
  wrong[150] = static_cast<char>(wrong[150] ^ 0x55);
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.mat", wrong).string() + ":K"); }), "a.mat", "damaged");
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.mat", "text")); }), "a.mat: it is no .mat file of MATLAB 5 to 7.3");
  EXPECT_SAYS(error_with(128 + 3, 99), "variable 0 at byte 128", "type 99");
  EXPECT_SAYS(error_with(128 + 8 + 8 + 2, 8), "complex");
}

}  // namespace
}  // namespace shardmat
