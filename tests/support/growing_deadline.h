// Tests of deadlines on machines of any load. A deadline has to be short where a test waits until it has passed, but a busy
// machine can pass a short one that should not. So a test that fails on any rank is tried again with longer ones on all
// ranks. A fault of the program fails with all of them.
#pragma once

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <exception>

#include "tests/support/world.h"

namespace shardmat {

/// attempt(seconds) on all ranks of world(), which meet before and after each attempt. An attempt makes no collective call
/// of world() that a rank could miss because of an error.
template <class F>
void with_growing_deadline(F&& attempt) {
  for (const double seconds : {0.5, 5.0, 60.0}) {
    testing::TestPartResultArray results;
    {
      testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
      try {
        attempt(seconds);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
    if (world().all_reduce(results.size() > 0 ? 1 : 0, Reduction::max) == 0) return;
    if (seconds < 60) continue;
    for (int i = 0; i < results.size(); ++i) {
      const testing::TestPartResult& result = results.GetTestPartResult(i);
      ADD_FAILURE_AT(result.file_name() == nullptr ? __FILE__ : result.file_name(), result.line_number())
          << result.message();
    }
  }
}

}  // namespace shardmat
