#include "runtime/service/wire/library.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/base/error.h"

namespace shardmat::service {
namespace {

namespace fs = std::filesystem;

class LibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "shardmat_library_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    fs::create_directories(root_ / "library" / "inner");
    std::ofstream(root_ / "secret.mtx") << "secret";
    std::ofstream(root_ / "library" / "a.mtx") << "inside";
    std::ofstream(root_ / "library" / "inner" / "b.mtx") << "deeper";
  }
  void TearDown() override { fs::remove_all(root_); }

  void expect_refused(const std::string& name, const std::string& says) {
    const Library library(root_ / "library");
    try {
      close(library.open(name));
      ADD_FAILURE() << name << " was opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
      if (name.find(root_.string()) != std::string::npos) return;  // the client knows it
      EXPECT_EQ(std::string(error.what()).find(root_.string()), std::string::npos) << error.what();
    }
  }

  fs::path root_;
};

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(LibraryTest, FilesInsideAreReadUnderTheirSuffix) {
  const Library library(root_ / "library");
  fs::create_symlink("inner/b.mtx", root_ / "library" / "link.mtx");
  for (const auto& [name, text] :
       {std::pair{"a.mtx", "inside"}, std::pair{"inner/b.mtx", "deeper"}, std::pair{"link.mtx", "deeper"}}) {
    fs::path path;
    {
      const LibraryFile file(library, name, root_ / "links");
      path = file.path();
      EXPECT_EQ(path.filename(), fs::path(name).filename());
      EXPECT_EQ(content(path), text);
    }
    EXPECT_FALSE(fs::is_symlink(path));
  }
}

TEST_F(LibraryTest, NoPathLeavesIt) {
  fs::create_symlink(root_ / "secret.mtx", root_ / "library" / "out.mtx");
  fs::create_symlink("../secret.mtx", root_ / "library" / "up.mtx");
  fs::create_symlink("..", root_ / "library" / "dir");
  for (const char* name : {"../secret.mtx", "inner/../../secret.mtx", "out.mtx", "up.mtx", "dir/secret.mtx", "/etc/passwd"})
    expect_refused(name, "leaves the library");
  expect_refused((root_ / "secret.mtx").string(), "leaves the library");
  expect_refused("/proc/self/fd/0", "leaves the library");
}

TEST_F(LibraryTest, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(mkfifo((root_ / "library" / "fifo.mtx").c_str(), 0600), 0);
  expect_refused("fifo.mtx", "regular file");
  expect_refused("inner", "regular file");
  expect_refused("none.mtx", "no such file");
  expect_refused("", "no name");
  expect_refused(std::string("a.mtx\0", 6), "no name");
}

TEST_F(LibraryTest, ADirectoryIsNeeded) {
  EXPECT_THROW(Library(root_ / "nowhere"), Error);
  EXPECT_THROW(Library(root_ / "secret.mtx"), Error);
}

}  // namespace
}  // namespace shardmat::service
