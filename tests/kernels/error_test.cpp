#include "kernels/base/error.h"

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace shardmat {
namespace {

TEST(Error, TellsKindMessageAndSetting) {
  const Error error(ErrorKind::input, "a.mtx:3: the value \"nan\" is not finite", "allow_nonfinite");
  EXPECT_EQ(error.kind(), ErrorKind::input);
  EXPECT_STREQ(error.what(), "a.mtx:3: the value \"nan\" is not finite");
  EXPECT_EQ(error.setting(), "allow_nonfinite");
  EXPECT_EQ(Error(ErrorKind::usage, "no matrix").setting(), "");
}

/// As an error of a helper thread reaches the caller.
TEST(Error, KeepsAllWhenItIsRethrown) {
  std::exception_ptr kept;
  try {
    throw Error(ErrorKind::resources, "the disk is full", "output");
  } catch (const std::exception&) {
    kept = std::current_exception();
  }
  try {
    std::rethrow_exception(kept);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::resources);
    EXPECT_EQ(error.setting(), "output");
    EXPECT_STREQ(error.what(), "the disk is full");
  }
}

/// Scripts rely on these numbers.
TEST(Error, ExitCodesStay) {
  const auto code = [](ErrorKind kind) { return Error(kind, "").exit_code(); };
  EXPECT_EQ(code(ErrorKind::internal), 1);
  EXPECT_EQ(code(ErrorKind::usage), 2);
  EXPECT_EQ(code(ErrorKind::input), 3);
  EXPECT_EQ(code(ErrorKind::resources), 4);
  EXPECT_EQ(code(ErrorKind::rank_lost), 5);
  EXPECT_EQ(code(ErrorKind::verification), 6);
}

}  // namespace
}  // namespace shardmat
