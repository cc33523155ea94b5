// Files for the tests of readers: a directory of their own, text and gzip written into it, and the message of
// an Error.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "kernels/base/error.h"
#include "kernels/matrix/csr.h"
#include "tests/support/setting_of.h"

namespace shardmat::test {

using Path = std::filesystem::path;

/// An empty directory for each test, removed after it.
class FilesTest : public testing::Test {
 protected:
  explicit FilesTest(const Path& parent = std::filesystem::temp_directory_path()) {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = parent / (std::string("shardmat-") + info->test_suite_name() + "-" + info->name() + "-" +
                           std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  ~FilesTest() override { std::filesystem::remove_all(directory_); }

  Path path(const std::string& name) const { return directory_ / name; }
  Path write(const std::string& name, const std::string& bytes) const {
    std::filesystem::remove(path(name));  // some file systems wait for the disk when a file is written anew in place
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }

  Path directory_;
};

inline std::string bytes_of(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// One gzip member.
inline std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

template <class F>
std::string error_of(F&& f, ErrorKind kind = ErrorKind::input) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

inline void expect_same(const HostCsr& a, const HostCsr& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.cols, b.cols);
  EXPECT_EQ(a.row_ptr, b.row_ptr);
  EXPECT_EQ(a.col_idx, b.col_idx);
  EXPECT_EQ(a.values, b.values);
}

inline HostCsr csr(std::int64_t rows, std::int64_t cols, HostVector<std::int64_t> row_ptr, HostVector<std::int64_t> col_idx,
                   HostVector<double> values) {
  return {rows, cols, std::move(row_ptr), std::move(col_idx), std::move(values)};
}

/// While one lives, files of this process cannot grow beyond `bytes`: writes fail as on a full disk.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  void (*old_handler_)(int);
  rlimit old_{};
};

}  // namespace shardmat::test

#define EXPECT_SAYS(text, ...) EXPECT_TRUE(shardmat::test::says(text, {__VA_ARGS__})) << (text)

namespace shardmat::test {
inline bool says(const std::string& text, std::initializer_list<std::string> words) {
  for (const std::string& word : words)
    if (text.find(word) == std::string::npos) return false;
  return true;
}
}  // namespace shardmat::test
