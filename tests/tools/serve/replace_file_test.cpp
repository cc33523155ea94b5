// Files of the state directory after a loss of power: what is on disk, and in which order.
#include "tools/serve/state/replace_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "tools/serve/state/numbers.h"
#include "tools/serve/state/shard_records.h"
#include "tools/serve/state/state_directory.h"

namespace shardmat::serve {
namespace {

namespace fs = std::filesystem;

struct Flushed {
  fs::path path;
  bool has_target = false;  ///< the file that is replaced was there at that time
};
std::mutex lock;  // other tests flush on other threads
std::vector<Flushed> flushed;
fs::path target;

std::string content_of_file(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

/// Called below in place of the C library's.
void note_flush(int descriptor) {
  const fs::path link = "/proc/self/fd/" + std::to_string(descriptor);
  const std::lock_guard guard(lock);
  flushed.push_back({fs::read_symlink(link), fs::exists(target)});
}

}  // namespace shardmat::serve

extern "C" int fsync(int descriptor) {
  shardmat::serve::note_flush(descriptor);
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

namespace shardmat::serve {
namespace {

class Replaced : public testing::Test {
 protected:
  Replaced() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    chmod(folder_.c_str(), 0700);
  }
  ~Replaced() override { fs::remove_all(folder_); }

  /// What `write` flushes to make the file of this name: all of it before it has its name, then the name.
  void expect_flushed(const std::string& name, const std::function<void()>& write) {
    target = folder_ / name;
    ASSERT_FALSE(fs::exists(target));
    flushed.clear();
    write();
    ASSERT_TRUE(fs::exists(target));
    ASSERT_EQ(flushed.size(), 2u) << name;
    EXPECT_EQ(flushed[0].path.parent_path(), folder_);
    EXPECT_NE(flushed[0].path, target);
    EXPECT_FALSE(flushed[0].has_target);
    EXPECT_EQ(flushed[1].path, folder_);
    EXPECT_TRUE(flushed[1].has_target);
    EXPECT_FALSE(fs::exists(flushed[0].path));
  }

  const fs::path folder_ = fs::canonical(fs::temp_directory_path()) / ("shardmat_replaced_" + std::to_string(getpid()));
};

TEST_F(Replaced, IsOnDiskBeforeItHasItsName) {
  expect_flushed("a", [&] { EXPECT_FALSE(replace_file(folder_ / "a", "new")); });
  const StateDirectory state(folder_);
  expect_flushed("matrices.json", [&] { state.write_matrices({}); });
  expect_flushed("id", [&] { state.id(); });
  expect_flushed("shards.json", [&] { ShardRecords(folder_ / "shards.json").add("bar.mtx", {"00", {1, 2, 3}, {4, 5, 6}}); });
  expect_flushed("numbers", [&] { Numbers(folder_ / "numbers").next(); });
}

TEST_F(Replaced, KeepsItsModeAndTheOldFileIfThereIsNoNewOne) {
  const fs::path file = folder_ / "a";
  ASSERT_FALSE(replace_file(file, "old"));
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0600));
  fs::permissions(file, fs::perms(0640));
  ASSERT_FALSE(replace_file(file, "newer"));
  EXPECT_EQ(content_of_file(file), "newer");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0640));
  fs::create_directory(folder_ / ".a.tmp");  // nothing can be written there
  EXPECT_TRUE(replace_file(file, "newest"));
  EXPECT_EQ(content_of_file(file), "newer");
  EXPECT_TRUE(replace_file(folder_ / "none" / "a", "text"));
}

}  // namespace
}  // namespace shardmat::serve
