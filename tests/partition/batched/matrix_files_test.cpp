#include <gtest/gtest.h>

#include "partition/batched/batch_source.h"
#include "tests/partition/batched/test_batches.h"

namespace shardmat {
namespace {

using test::error_of;

class MatrixFilesTest : public test::FilesTest {
 protected:
  /// A 1 × 2 matrix that holds one number.
  static std::string one(int value) {
    return "%%MatrixMarket matrix coordinate real general\n1 2 1\n1 2 " + std::to_string(value) + "\n";
  }
  HostVector<double> values(const std::string& argument) const { return open_batch(argument)->read(0, 3).values; }
};

TEST_F(MatrixFilesTest, SortsByNumber) {
  write("m10.mtx", one(10));
  write("m9.mtx", one(9));
  write("m010b.mtx.gz", test::gzip(one(11)));
  write("m9.mtx.bak", "no matrix");
  write("readme.txt", "no matrix");
  EXPECT_EQ(values(directory_.string()), (HostVector<double>{9, 10, 11}));
  test::expect_consistent(*open_batch(directory_.string()));
}

TEST_F(MatrixFilesTest, ReadsALongListOfNumbersInOrder) {
  for (const int i : {100, 20, 3, 19, 1}) write("step" + std::to_string(i) + "_a.mtx", one(i));
  EXPECT_EQ(open_batch(directory_.string())->read(0, 5).values, (HostVector<double>{1, 3, 19, 20, 100}));
}

TEST_F(MatrixFilesTest, ReadsAList) {
  std::filesystem::create_directory(path("sub"));
  write("sub/a.mtx", one(1));
  write("b.mtx", one(2));
  const auto list = write("list.txt", "# all\nb.mtx  # second\n\n sub/a.mtx\r\n" + path("b.mtx").string());
  EXPECT_EQ(values(list.string()), (HostVector<double>{2, 1, 2}));
  EXPECT_EQ(open_batch(write("none.txt", "# none\n").string())->count(), 0);
}

TEST_F(MatrixFilesTest, KeepsSizesOfEachMatrix) {
  write("1.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n");
  write("2.mtx", "%%MatrixMarket matrix coordinate real general\n0 0 0\n");
  write("3.mtx", one(5));
  const HostBatch expected{{0, 3, 3, 4}, {0, 3, 3, 5}, {0, 1, 2, 3, 4}, {1, 0, 2, 1}, {1, 1, 1, 5}};
  test::expect_same(open_batch(directory_.string())->read(0, 3), expected);
}

TEST_F(MatrixFilesTest, ErrorsNameTheFile) {
  write("1.mtx", one(1));
  write("2.mtx", "%%MatrixMarket matrix coordinate real general\n1 2 1\n1 3 1\n");
  EXPECT_SAYS(error_of([&] { open_batch(directory_.string()); }), "2.mtx:3: ");
  EXPECT_SAYS(error_of([&] { open_batch(write("list.txt", "1.mtx\n2.mtx\n").string()); }), "list.txt:2: ", "2.mtx:3: ");
  EXPECT_SAYS(error_of([&] { open_batch(write("list.txt", "\n3.mtx\n").string()); }), "list.txt:2: ", "no such file");
  write("2.mtx", "%%MatrixMarket matrix coordinate real general\n1 3000000000 1\n1 1 1\n");
  EXPECT_SAYS(error_of([&] { open_batch(directory_.string()); }), "2.mtx", "3000000000 columns", "2^31");
}

}  // namespace
}  // namespace shardmat
