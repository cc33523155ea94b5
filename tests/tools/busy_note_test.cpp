// What commands say about cores that others use.
#include "tools/cli/busy_note.h"

#include <gtest/gtest.h>

#include "kernels/base/core_wait.h"

namespace shardmat::tools {
namespace {

TEST(BusyNote, TellsOfThreadsThatWaited) {
  const std::string note = busy_note(0.43, 5, 4, "rank 0 on a");
  EXPECT_NE(note.find("note: the 4 threads of rank 0 on a had no core for 43 % of the time"), std::string::npos) << note;
  EXPECT_EQ(note.back(), '\n');
  EXPECT_EQ(busy_note(0.24, 5, 4, "rank 0"), "");
  EXPECT_EQ(busy_note(0.9, 5, 1, "rank 0"), "") << "one thread waits for no other";
  EXPECT_EQ(busy_note(0.9, 0.5, 4, "rank 0"), "") << "short";
}

TEST(CoreWait, IsAShareOfTheTimeOfOneThread) {
  double waited = 7;
  pretend_core_wait([&] { return waited; });
  const CoreWait wait;
  EXPECT_EQ(wait.share(2), 0);
  waited = 1e9;  // more than there was time for
  EXPECT_EQ(wait.share(2), 1);
  waited = 7 + 0.5 * wait.seconds();
  EXPECT_LE(wait.share(2), 0.25);
  EXPECT_GE(wait.share(1), wait.share(2));
  waited = 3;
  EXPECT_EQ(wait.share(2), 0) << "threads that ended take their time along";
  pretend_core_wait({});
  EXPECT_GE(core_wait_seconds(), 0);
}

}  // namespace
}  // namespace shardmat::tools
