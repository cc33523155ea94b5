// PETSc's binary files: those that PETSc wrote (tests/data/petsc/make.c), and files written here byte by byte.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "partition/files/big_endian.h"
#include "partition/readers/petsc.h"
#include "partition/readers/reader.h"
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

Path data(const std::string& name) { return Path(SHARDMAT_TEST_DATA) / "petsc" / name; }

/// The bytes of an object: its numbers in `width` bytes, then its values.
std::string object(int width, const std::vector<std::int64_t>& numbers, std::vector<double> values) {
  std::string bytes(numbers.size() * static_cast<std::size_t>(width), '\0');
  to_big_endian(numbers.data(), width, std::ssize(numbers), bytes.data());
  reverse_bytes(reinterpret_cast<std::uint64_t*>(values.data()), std::ssize(values));
  return bytes + std::string(reinterpret_cast<const char*>(values.data()), 8 * values.size());
}

/// 2 × 3 with the rows {0: 1.5, 2: -2} and {1: 0}.
std::string small(int width) { return object(width, {1211216, 2, 3, 3, 2, 1, 0, 2, 1}, {1.5, -2, 0}); }
HostCsr small_matrix() { return csr(2, 3, {0, 2, 3}, {0, 2, 1}, {1.5, -2, 0}); }

class PetscTest : public test::FilesTest {
 protected:
  std::string error(const std::string& bytes, const ReadOptions& options = {}) const {
    return error_of([&] { read_matrix(write("a.petsc", bytes), options); });
  }
};

TEST_F(PetscTest, ReadsWhatPetscWrote) {
  HostCsr expected;
  expected.rows = 7, expected.cols = 5;
  for (std::int64_t i = 0; i < 7; ++i) {
    for (std::int64_t j = 0; j < 5; ++j)
      if (i != 3 && (i + j) % 2 == 0) {
        expected.col_idx.push_back(j);
        expected.values.push_back(i == 2 && j == 2 ? 0 : 1.0 / static_cast<double>(1 + i) - static_cast<double>(j));
      }
    expected.row_ptr.push_back(std::ssize(expected.col_idx));
  }
  expect_same(read_matrix(data("objects.petsc:0")), expected);
  expect_same(read_matrix(data("objects.petsc:2")), csr(3, 3, {0, 1, 2, 3}, {2, 1, 0}, {0.1, 1.1, 2.1}));
  EXPECT_EQ(read_matrix(data("block.petsc")).nnz(), 20);
  const HostCsr dense = read_matrix(data("dense.petsc"));
  EXPECT_EQ(dense.row_ptr, (HostVector<std::int64_t>{0, 3, 6, 9, 12}));
  EXPECT_EQ(dense.values[5], 12.5);
}

TEST_F(PetscTest, SeveralMatricesAreRefusedWithAList) {
  EXPECT_SAYS(error_of([] { read_matrix(data("objects.petsc")); }), "several objects of the kind matrix",
              "objects.petsc:0: :0 is a sparse matrix, 7 × 5", ":2 is a sparse matrix, 3 × 3");
  for (const int width : {4, 8}) {
    const std::string dense = object(width, {1211216, 2, 2, -1}, {1, 2, 3, 4});
    const std::string indices = object(width, {1211218, 2, 1, 0}, {});
    expect_same(read_matrix(write("one.petsc", dense + indices + small(width))), small_matrix());
    expect_same(read_matrix(write("first.petsc", small(width) + dense + dense)), small_matrix());
    EXPECT_SAYS(error_of([&] { read_matrix(write("dense.petsc", indices + dense + dense)); }), "several objects of the kind",
                "dense.petsc:1:", ":0 is an index set", ":2 is a dense matrix, 2 × 2");
    EXPECT_SAYS(error_of([&] { read_matrix(write("two.petsc", indices + dense + small(width) + small(width))); }),
                "several objects", "two.petsc:2:");
    expect_same(read_matrix(write("two.petsc", dense + small(width) + small(width)).string() + ":2"), small_matrix());
  }
}

TEST_F(PetscTest, ReadsItsVectors) {
  HostVector<double> x(5);
  for (int i = 0; i < 5; ++i) x[static_cast<std::size_t>(i)] = 0.1 * i - 0.2;
  const VectorFile file(data("objects.petsc:1"), "x");
  EXPECT_EQ(file.read(0, file.size()), x);
  const VectorFile product(data("objects.petsc:3"), "y");
  EXPECT_EQ(product.size(), 7);
  EXPECT_EQ(product.read(3, 4), HostVector<double>{0});
  EXPECT_SAYS(error_of([] { VectorFile(data("objects.petsc"), "x"); }), "several objects of the kind vector",
              "objects.petsc:1", ":3 is a vector of 7 entries");
  EXPECT_SAYS(error_of([&] { VectorFile(data("objects.petsc:2"), "x"); }), "object 2 is no vector", ":1 is a vector of 5");
  const VectorFile columns(data("dense.petsc"), "x", 3);
  EXPECT_EQ(columns.read(1, 2), (HostVector<double>{10.5, 11.5, 12.5}));
  EXPECT_SAYS(error_of([&] { VectorFile(data("dense.petsc"), "x", 2); }), "dense matrix, 4 × 3", "2 columns");
}

TEST_F(PetscTest, ListsObjects) {
  const auto list = list_objects(data("objects.petsc"));
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[0].name, "0");
  EXPECT_EQ(list[0].text, "sparse matrix, 7 × 5, 16 nonzeros");
  EXPECT_EQ(list[1].text, "vector of 5 entries");
  EXPECT_SAYS(list_objects(data("block.petsc"))[0].text, "blocks of 2");
  EXPECT_SAYS(list_objects(write("b", small(4) + "xxxx"))[1].text, "object 1 at byte 60", "neither");
}

TEST_F(PetscTest, BothWidthsOfIndices) {
  for (const int width : {4, 8}) {
    expect_same(read_matrix(write("a.data", small(width))), small_matrix());  // known by its first bytes
    const Path both = write("b.petsc", object(width, {1211214, 2}, {3, 4}) + object(width, {1211218, 3, 7, 8, 9}, {}) +
                                           small(width) + object(width, {1211216, 1, 2, -1}, {5, 6}));
    expect_same(read_matrix(both), small_matrix());
    expect_same(read_matrix(both.string() + ":3"), csr(1, 2, {0, 2}, {0, 1}, {5, 6}));
    EXPECT_EQ(VectorFile(both, "x").read(0, 2), (HostVector<double>{3, 4}));
  }
  std::string uncounted = small(4);
  uncounted.replace(12, 4, "\x7f\xff\xff\xff");  // as where a build cannot count its nonzeros
  expect_same(read_matrix(write("c.petsc", uncounted)), small_matrix());
}

TEST_F(PetscTest, AnyRowsIntoAnyTarget) {
  const HostCsr m = test::random_matrix(9000, 300, 20, 5);
  write_matrix(path("m.petsc"), *test::source_of(m));
  const auto source = open_matrix_rows(path("m.petsc").string());
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 9000}, {4095, 4097}, {8999, 9000}, {7, 7}}) {
    const HostCsr part = source->read_rows(begin, end);
    const CsrView mine = m.view().rows_between(begin, end);
    EXPECT_TRUE(std::equal(part.col_idx.begin(), part.col_idx.end(), mine.col_idx.begin(), mine.col_idx.end()));
    EXPECT_TRUE(std::equal(part.values.begin(), part.values.end(), mine.values.begin(), mine.values.end()));
  }
  const HostCsr few = test::random_matrix(40, 30, 12, 6);
  write_matrix(path("few.petsc"), *test::source_of(few));
  test::expect_reads_into(*open_matrix_rows(path("few.petsc").string()), few);
}

TEST_F(PetscTest, RowsAreSortedAndColumnsChecked) {
  const auto with_columns = [](std::vector<std::int64_t> columns) {
    std::vector<std::int64_t> numbers{1211216, 2, 3, 3, 2, 1};
    numbers.insert(numbers.end(), columns.begin(), columns.end());
    return object(4, numbers, {1, 2, 3});
  };
  expect_same(read_matrix(write("a.petsc", with_columns({2, 0, 1}))), csr(2, 3, {0, 2, 3}, {0, 2, 1}, {2, 1, 3}));
  EXPECT_SAYS(error(with_columns({2, 2, 1})), "a.petsc: row 0 has column 2 twice", "assemble");
  EXPECT_SAYS(error(with_columns({0, 3, 1})), "row 0 has the column 3", "[0, 3)", "damaged");
  EXPECT_SAYS(error(with_columns({0, 1, -1})), "row 1 has the column -1");
}

/// Into arrays as wide as the file's, a piece is read at once and checked as a whole.
TEST_F(PetscTest, PiecesReadInPlaceAreCheckedToo) {
  const auto read = [&](const std::vector<std::int64_t>& columns, const std::vector<double>& values) {
    std::vector<std::int64_t> numbers{1211216, 4, 9, 5, 2, 0, 2, 1};
    numbers.insert(numbers.end(), columns.begin(), columns.end());
    write("a.petsc", object(4, numbers, values));
    return test::read_into(*open_matrix_rows(path("a.petsc").string()), 0, {0, 1, 2, 3}, {false, true});
  };
  const HostVector<std::int64_t> rows{0, 2, 2, 4, 5};
  expect_same(read({3, 8, 1, 2, 0}, {1, 2, 3, 4, 5}), csr(4, 9, rows, {3, 8, 1, 2, 0}, {1, 2, 3, 4, 5}));
  expect_same(read({8, 3, 1, 2, 7}, {1, 2, 3, 4, 5}), csr(4, 9, rows, {3, 8, 1, 2, 7}, {2, 1, 3, 4, 5}));
  EXPECT_SAYS(error_of([&] { read({3, 8, 1, 9, 0}, {1, 2, 3, 4, 5}); }), "row 2 has the column 9");
  EXPECT_SAYS(error_of([&] { read({-3, 8, 1, 2, 0}, {1, 2, 3, 4, 5}); }), "row 0 has the column -3");
  EXPECT_SAYS(error_of([&] { read({3, 8, 2, 2, 0}, {1, 2, 3, 4, 5}); }), "row 2 has column 2 twice");
  EXPECT_SAYS(error_of([&] { read({3, 8, 1, 2, 0}, {1, 2, 3, 4, std::nan("")}); }), "row 3 has the value nan");
}

TEST_F(PetscTest, DamagedFilesAreRefused) {
  const std::string good = small(4);
  for (std::size_t size = 8; size < good.size(); ++size)
    EXPECT_SAYS(error(good.substr(0, size)), "a.petsc: ", "object 0 at byte 0", "truncated");
  EXPECT_SAYS(error("garbage!"), "no PETSc binary file", "MatView");
  EXPECT_SAYS(error(""), "no PETSc binary file");
  EXPECT_SAYS(error(object(4, {1211216, 2, 3, 4, 2, 1, 0, 2, 1, 1}, {1, 2, 3, 4})), "promises 4 nonzeros", "rows have 3");
  EXPECT_SAYS(error(object(4, {1211216, 2, 3, 3, 4, -1, 0, 2, 1}, {1, 2, 3})), "row 0 has 4 nonzeros", "3 columns");
  EXPECT_SAYS(error(object(4, {1211216, -2, 3, 3, 2, 1}, {1, 2, 3})), "-2 × 3", "damaged");
  EXPECT_SAYS(error(object(8, {1211216, std::int64_t{1} << 62, 3, std::int64_t{1} << 62}, {1})), "promises", "rows");
  EXPECT_SAYS(error(object(4, {1211214, 2}, {1, 2})), "there is no matrix in it", "vector of 2");
  EXPECT_SAYS(error_of([&] { read_matrix(path("a.petsc").string() + ":7"); }), "no object 7");
  EXPECT_SAYS(error_of([&] { read_matrix(path("a.petsc").string() + ":K"); }), "numbers, not names");
}

TEST_F(PetscTest, OtherScalarsAreRefusedByName) {
  const std::vector<std::int64_t> header{1211216, 2, 3, 3, 2, 1, 0, 2, 1};
  EXPECT_SAYS(error(object(4, header, {1, 0, 2, 0, 3, 0})), "complex values");
  EXPECT_SAYS(error(object(4, header, {1}) + std::string(4, '\0')), "single precision");
}

TEST_F(PetscTest, ValuesThatAreNotFiniteNeedPermission) {
  const std::string bytes = object(4, {1211216, 1, 1, 1, 1, 0}, {std::numeric_limits<double>::infinity()});
  EXPECT_SAYS(error(bytes), "row 0 has the value inf", "not finite");
  ReadOptions allow;
  allow.allow_nonfinite = true;
  EXPECT_TRUE(std::isinf(read_matrix(path("a.petsc"), allow).values[0]));
}

TEST_F(PetscTest, FormatsByName) {
  ReadOptions options;
  options.choices.format = "petsc";
  expect_same(read_matrix(write("a.mtx", small(4)), options), small_matrix());
  EXPECT_SAYS(error_of([&] { read_matrix(write("b.mtx", "%%MatrixMarket"), options); }), "no PETSc binary file");
  options.choices.format = "petcs";
  EXPECT_SAYS(error_of([&] { read_matrix(path("a.mtx"), options); }, ErrorKind::usage), "'petcs'", "did you mean 'petsc'?");
  EXPECT_SAYS(error_of([&] { read_matrix(write("c.mtx", "").string() + ":1"); }), "matrix-market file holds one matrix");
}

}  // namespace
}  // namespace shardmat
