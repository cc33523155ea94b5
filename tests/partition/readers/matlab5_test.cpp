// MATLAB's files of versions 5 to 7, as SciPy writes them (tests/data/mat/make.py).
#include "partition/readers/matlab5.h"

#include <gtest/gtest.h>

#include "partition/readers/reader.h"
#include "partition/readers/replaceable.h"
#include "partition/vectors/vector_file.h"
#include "partition/writers/writer_list.h"
#include "tests/partition/readers/test_files.h"
#include "tests/partition/test_matrices.h"

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

TEST_F(Matlab5Test, ReadsWhatOctaveWrote) {
  for (const char* file : {"octave6.mat", "octave7.mat"}) {
    const std::string name = data(file);
    expect_same(read_matrix(name + ":K"), csr(3, 4, {0, 2, 2, 5}, {0, 2, 0, 1, 3}, {1.5, -2, 0.1, 3, 1e300}));
    expect_same(read_matrix(name + ":empty"), csr(4, 2, {0, 0, 0, 0, 0}, {}, {}));
    EXPECT_EQ(VectorFile(name + ":b", "x").read(0, 3), (HostVector<double>{1, 2, 3}));
    EXPECT_EQ(VectorFile(name + ":B", "x", 2).read(1, 3), (HostVector<double>{3, 4, 5, 6}));
    EXPECT_EQ(VectorFile(name + ":s", "x").read(0, 3), (HostVector<double>{1.5, 2.5, 3.5}));
    EXPECT_EQ(VectorFile(name + ":n", "x").read(0, 2), (HostVector<double>{4, 5}));
    EXPECT_EQ(VectorFile(name + ":l", "x").read(0, 3), (HostVector<double>{1, 0, 1}));
    EXPECT_EQ(VectorFile(name + ":range", "x").read(0, 3), (HostVector<double>{1, 2, 3}));
    EXPECT_EQ(VectorFile(name + ":scalar", "x").read(0, 1), (HostVector<double>{7}));
    EXPECT_SAYS(error_of([&] { read_matrix(name + ":L"); }), "variable L", "2 × 2, logical", "sparse(double(A))");
    EXPECT_SAYS(error_of([&] { VectorFile(name + ":L", "x", 2); }), "sparse logical matrix as Octave writes it",
                "double(A)");
    EXPECT_SAYS(error_of([&] { VectorFile(name + ":text", "x"); }), "text");
  }
  EXPECT_SAYS(error_of([] { read_matrix(data("octave7.mat:C")); }), "variable C", "complex", "--complex as-real");
  EXPECT_SAYS(error_of([] { VectorFile(data("octave7.mat:model"), "x"); }), "model");
  EXPECT_EQ(VectorFile(data("octave7.mat"), "b").read(0, 3), (HostVector<double>{1, 2, 3}));         // has the role's name
  EXPECT_EQ(VectorFile(data("octave7.mat"), "s0").read(0, 3), (HostVector<double>{1.5, 2.5, 3.5}));  // s in place of s0
  EXPECT_SAYS(error_of([] { VectorFile(data("octave7.mat"), "x"); }), "several arrays, and none is named x",
              "octave7.mat:", "b is a dense matrix, 3 × 1");
  EXPECT_SAYS(error_of([] { read_matrix(data("octave7.mat:model")); }), "variable model: it is a struct; ",
              "A = model.A; save('a.mat', 'A')");
}

TEST_F(Matlab5Test, NoSparseLogicalVectorIsTakenForAFullOne) {
  // As Octave writes sparse([true; true; true]): three row indices where three values should be, then more.
  const auto words = [](const std::vector<std::uint32_t>& numbers) {
    return std::string(reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size());
  };
  const std::string start = test::bytes_of(data("v6.mat")).substr(0, 128);
  const std::string head = words({6, 8, 0x0209, 3, 5, 8, 3, 1, 0x00010001, 'L'}), rows = words({5, 12, 0, 1, 2, 0});
  const std::string more = words({5, 8, 0, 3}), all = head + rows + more;
  const auto file = [&](const std::string& body) {
    return write("a.mat", start + words({14, static_cast<std::uint32_t>(body.size())}) + body).string() + ":L";
  };
  EXPECT_SAYS(error_of([&] { VectorFile(file(all), "x"); }), "variable L", "sparse logical");
  EXPECT_EQ(VectorFile(file(head + rows), "x").read(0, 3), (HostVector<double>{0, 1, 2}));
}

TEST_F(Matlab5Test, WritesWhatItReads) {
  HostCsr m = test::random_matrix(70, 91, 9, 4);
  m.values[3] = 0;
  write_matrix(path("m.mat"), *test::source_of(m));
  expect_same(read_matrix(path("m.mat")), m);
  expect_same(read_matrix(path("m.mat").string() + ":A"), m);
  EXPECT_TRUE(test::bytes_of(path("m.mat")).starts_with("MATLAB 5.0 MAT-file"));
  require_replaceable(path("m.mat"), Output::matrix);
  EXPECT_SAYS(error_of([&] { require_replaceable(path("m.mat"), Output::vector); }, ErrorKind::usage), "other variables");
  std::filesystem::copy_file(data("v6.mat"), path("many.mat"));
  EXPECT_SAYS(error_of([&] { require_replaceable(path("many.mat"), Output::matrix); }, ErrorKind::usage), "other variables");
  EXPECT_TRUE(fits_matlab5(1 << 30, 1 << 20, 134'000'000));
  EXPECT_FALSE(fits_matlab5(1 << 30, 1 << 20, 135'000'000));
  EXPECT_FALSE(fits_matlab5(std::int64_t{1} << 31, 1, 1));
  EXPECT_FALSE(fits_matlab5(1, 600'000'000, 1));
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
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.mat", "# Created by Octave 7.3.0, Thu\n# name: K\n")); }),
              "in Octave's own format", "save -v7");
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.txt", "# Created by Octave 7.3.0\n# rows: 2\n1 1 3\n")); }),
              "a.txt: it is a file in Octave's own format", "save -v7");
  EXPECT_SAYS(error_with(128 + 3, 99), "variable 0 at byte 128", "type 99");
  EXPECT_SAYS(error_with(128 + 8 + 8 + 2, 8), "complex");
}

}  // namespace
}  // namespace shardmat
