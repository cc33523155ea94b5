#include "partition/files/input_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::error_of;
using test::Path;

class InputFileTest : public test::FilesTest {
 protected:
  std::string refusal(const Path& file) const {
    return error_of([&] { InputFile{file}; });
  }
};

TEST_F(InputFileTest, ReadsRangesOfARegularFileOrOfALinkToOne) {
  std::filesystem::create_symlink(write("a", "0123456789"), path("link"));
  const InputFile file(path("link"));
  EXPECT_EQ(file.size(), 10);
  char some[4] = {};
  file.read(some, 3, 3);
  EXPECT_STREQ(some, "345");
  EXPECT_EQ(file.read_all(10, "a test"), "0123456789");
  EXPECT_EQ(::fcntl(file.descriptor(), F_GETFD), FD_CLOEXEC);
  EXPECT_SAYS(error_of([&] { file.read_all(9, "a test"); }), "10 B", "a test has at most 9 B");
}

TEST_F(InputFileTest, RefusesWhatIsNoRegularFileWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_SAYS(refusal(path("pipe")), path("pipe").string(), "FIFO", "not a regular file");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path("s").c_str(), sizeof address.sun_path - 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_SAYS(refusal(path("s")), "socket", "not a regular file");
  ::close(listener);
  EXPECT_SAYS(refusal("/dev/zero"), "/dev/zero", "device");
  EXPECT_SAYS(refusal(directory_), directory_.string(), "directory");
  EXPECT_SAYS(refusal(path("none")), "none", "no such file");
  std::filesystem::create_symlink("circle", path("circle"));
  EXPECT_SAYS(refusal(path("circle")), "circle", "cannot be opened");
}

TEST_F(InputFileTest, NamesAFileThatBecameShorterOrChanged) {
  const InputFile file(write("a", std::string(10000, 'x')));
  std::filesystem::resize_file(path("a"), 5000);
  std::string bytes(10000, '\0');
  file.read(bytes.data(), 0, 5000);
  EXPECT_SAYS(error_of([&] { file.read(bytes.data(), 4000, 6000); }), path("a").string(), "changed while it was read");
  EXPECT_SAYS(error_of([&] { file.require_unchanged(); }), "changed while it was read");
}

}  // namespace
}  // namespace shardmat
