#include "partition/atomic_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "kernels/base/error.h"
#include "tests/partition/test_matrices.h"

namespace shardmat {
namespace {

using Names = std::vector<std::string>;

void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(AtomicFile, AppearsOnCommitOnly) {
  const test::TemporaryDirectory directory;
  {
    AtomicFile file(directory / "a.h5");
    write(file.temporary(), "new");
    EXPECT_FALSE(std::filesystem::exists(directory / "a.h5"));
    file.commit();
  }
  EXPECT_EQ(directory.files(), Names{"a.h5"});
  EXPECT_EQ(read(directory / "a.h5"), "new");
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  const test::TemporaryDirectory directory;
  write(directory / "a.h5", "old");
  {
    AtomicFile file(directory / "a.h5");
    write(file.temporary(), "half");
  }
  EXPECT_EQ(directory.files(), Names{"a.h5"});
  EXPECT_EQ(read(directory / "a.h5"), "old");
}

TEST(AtomicFile, NamesMissingDirectory) {
  const test::TemporaryDirectory directory;
  try {
    AtomicFile file(directory / "no/such/a.h5");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_NE(std::string(e.what()).find("no/such"), std::string::npos);
  }
  EXPECT_THROW(AtomicFile(directory / "."), Error);
}

}  // namespace
}  // namespace shardmat
