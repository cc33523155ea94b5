#include "tools/serve/state/numbers.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kernels/base/error.h"

namespace shardmat::serve {
namespace {

TEST(Numbers, NeverComeAgain) {
  const std::filesystem::path directory = std::filesystem::path(testing::TempDir()) / "shardmat_numbers";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  const auto file = directory / "numbers";
  std::uint64_t last = 0;
  for (int start = 0; start < 3; ++start) {
    Numbers numbers(file);
    EXPECT_GT(numbers.first(), last);
    for (int i = 0; i < 1500; ++i) {
      const std::uint64_t number = numbers.next();
      EXPECT_GE(number, numbers.first());
      ASSERT_GT(number, last);
      last = number;
    }
  }
  std::ofstream(file) << "none";
  EXPECT_THROW(Numbers{file}, Error);
  std::filesystem::remove_all(directory);
  Numbers nowhere(file);
  EXPECT_THROW(nowhere.next(), Error);
}

}  // namespace
}  // namespace shardmat::serve
