#include "partition/files/object_name.h"

#include "partition/files/rank_files.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::error_of;

class ObjectNameTest : public test::FilesTest {
 protected:
  /// "FILE|OBJECT" without the folder.
  std::string split(const std::string& name) const {
    const ObjectName parts = split_object_name(path(name).string());
    return std::filesystem::path(parts.file).filename().string() + "|" + parts.object;
  }
  std::vector<std::string> names(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& file : rank_files(path(name).string())) names.push_back(file.filename().string());
    return names;
  }
};

TEST_F(ObjectNameTest, TheLongestExistingFileBeforeAColon) {
  write("A.petsc", "");
  write("A.petsc:1", "");
  write("x.h5", "");
  EXPECT_EQ(split("A.petsc"), "A.petsc|");
  EXPECT_EQ(split("A.petsc:1"), "A.petsc:1|");  // a file of this name
  EXPECT_EQ(split("A.petsc:2"), "A.petsc|2");
  EXPECT_EQ(split("A.petsc:1:K"), "A.petsc:1|K");
  EXPECT_EQ(split("x.h5:name"), "x.h5|name");
  const ObjectName path_in_file = split_object_name(path("x.h5").string() + ":/a:b/c=d");
  EXPECT_EQ(path_in_file.file, path("x.h5").string());
  EXPECT_EQ(path_in_file.object, "/a:b/c=d");
}

TEST_F(ObjectNameTest, GeneratorsStayWhole) {
  write("poisson", "");
  EXPECT_EQ(split("poisson:n=3"), "poisson:n=3|");
  EXPECT_EQ(split("poisson:n=3,seed=2"), "poisson:n=3,seed=2|");
  EXPECT_EQ(split_object_name("elasticity:n=4").file, "elasticity:n=4");
  EXPECT_EQ(split_object_name("").file, "");
  EXPECT_EQ(split_object_name(":1").file, ":1");
}

TEST_F(ObjectNameTest, MissingFilesAreToldApartByTheirSuffix) {
  EXPECT_EQ(split("none.petsc:1"), "none.petsc|1");
  EXPECT_EQ(split("none:1"), "none:1|");
}

TEST_F(ObjectNameTest, FilesOfRanks) {
  for (const char* name : {"IJ.A.00000", "IJ.A.00001", "IJ.B.00000.bin", "C.00.h5", "C.01.h5", "C.02.h5", "C.x.h5"})
    write(name, "");
  EXPECT_TRUE(names_input_file(path("IJ.A").string()));
  EXPECT_EQ(names("IJ.A"), (std::vector<std::string>{"IJ.A.00000", "IJ.A.00001"}));
  EXPECT_EQ(names("IJ.A.00000"), (std::vector<std::string>{"IJ.A.00000", "IJ.A.00001"}));
  EXPECT_EQ(names("IJ.B"), (std::vector<std::string>{"IJ.B.00000.bin"}));
  EXPECT_EQ(names("C.%02d.h5"), (std::vector<std::string>{"C.00.h5", "C.01.h5", "C.02.h5"}));
  EXPECT_TRUE(names("C.%s.h5").empty());
  EXPECT_TRUE(names("C.%02d.%02d").empty());
  EXPECT_TRUE(names("none").empty());
  write("IJ.A.00003", "");
  EXPECT_SAYS(error_of([&] { names("IJ.A"); }), "IJ.A.00002", "rank 2 is missing");
}

}  // namespace
}  // namespace shardmat
