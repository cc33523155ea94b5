#include "partition/readers/reader.h"

#include <gtest/gtest.h>

#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::error_of;

class ReaderTest : public test::FilesTest {};

TEST_F(ReaderTest, ListNamesSuffixes) {
  ASSERT_GE(readers().size(), 3U);
  for (const Reader& reader : readers()) {
    EXPECT_TRUE(reader.suffixes.empty() || reader.suffixes.front() == '.') << reader.name;
    EXPECT_NE(reader.open_rows == nullptr, reader.open_entries == nullptr) << reader.name;
  }
}

TEST_F(ReaderTest, MissingFileSuggestsTheNearest) {
  write("elasticity.mtx", "");
  EXPECT_SAYS(error_of([&] { read_matrix(path("elastcity.mtx")); }), "elastcity.mtx", "no such file", "did you mean",
              path("elasticity.mtx").string());
  EXPECT_SAYS(error_of([&] { read_matrix(path("zzz.mtx")); }), "zzz.mtx", "no such file", "check the path");
  EXPECT_SAYS(error_of([&] { read_matrix(path("none/zzz.mtx")); }), "none/zzz.mtx", "no such file");
}

TEST_F(ReaderTest, RefusesDirectoriesAndOddFiles) {
  EXPECT_SAYS(error_of([&] { read_matrix(directory_); }), directory_.string(), "directory");
  std::filesystem::create_directory(path("d.mtx"));
  EXPECT_SAYS(error_of([&] { read_matrix(path("d.mtx")); }), "d.mtx", "directory");
  std::filesystem::create_symlink("/dev/null", path("n.mtx"));
  EXPECT_SAYS(error_of([&] { read_matrix(path("n.mtx")); }), "n.mtx", "regular file");
}

TEST_F(ReaderTest, UnknownSuffixNamesTheKnownOnes) {
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.mtz", "")); }), "a.mtz", ".mtx, .mtx.gz", ".npz", "did you mean .mtx?");
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.petscbinary", "")); }), ".petscbinary", ".petsc", ".mtx, .mtx.gz");
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.npy", "")); }), "a.npy", "dense array", "scipy.sparse.save_npz");
  EXPECT_SAYS(error_of([&] { read_matrix(write("matrix", "")); }), "without suffix", ".mtx, .mtx.gz");
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.gz", "")); }), "a.gz", ".mtx.gz");
}

TEST_F(ReaderTest, TheBannerOfMatrixMarketIsEnough) {
  EXPECT_EQ(read_matrix(write("a.txt", "%%MatrixMarket matrix coordinate real general\n2 3 1\n2 3 4\n")).nnz(), 1);
  EXPECT_EQ(reader_of(write("noname", "%%matrixmarket x")).name, "matrix-market");
}

}  // namespace
}  // namespace shardmat
