#include "partition/input_kind.h"

#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

class InputKindTest : public test::FilesTest {};

TEST_F(InputKindTest, NamesThenFirstBytesDecide) {
  const std::string hdf5 = "\x89HDF\r\n\x1a\n";
  EXPECT_EQ(kind_of_input("poisson:n=3"), InputKind::generated);
  EXPECT_EQ(kind_of_input(path("none.h5")), InputKind::hdf5);
  EXPECT_EQ(kind_of_input(write("a.hdf5", "text")), InputKind::hdf5);
  EXPECT_EQ(kind_of_input(write("a.data", hdf5)), InputKind::hdf5);
  EXPECT_EQ(kind_of_input(write("a.mtx", hdf5)), InputKind::foreign);
  EXPECT_EQ(kind_of_input(write("a.npz", "")), InputKind::foreign);
  EXPECT_EQ(kind_of_input(write("a.txt", "1 2 3")), InputKind::foreign);
  EXPECT_EQ(kind_of_input(path("none.data")), InputKind::foreign);
  EXPECT_EQ(kind_of_input(directory_), InputKind::foreign);
}

TEST_F(InputKindTest, AFileWithTheNameOfAGeneratorIsAFile) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory_);
  write("poisson", "\x89HDF\r\n\x1a\n");
  EXPECT_EQ(kind_of_input("poisson"), InputKind::hdf5);
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace shardmat
