#include "comm/long_wait.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/support/world.h"

namespace shardmat {
namespace {

constexpr double kDeadline = 1;

void work_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(LongWait, LastsAsLongAsTheWork) {
  Communicator ranks(world().native(), kDeadline);
  {
    const LongWait wait(ranks);
    if (ranks.rank() == 0) work_for(1.3 * kDeadline);
    EXPECT_EQ(ranks.all_reduce(1, Reduction::sum), ranks.size());
    if (ranks.rank() + 1 == ranks.size()) work_for(1.3 * kDeadline);  // the others wait at its end
  }
  EXPECT_EQ(ranks.timeout_seconds(), kDeadline);
  ranks.barrier();
}

TEST(LongWait, InsideAnother) {
  Communicator ranks(world().native(), kDeadline);
  {
    const LongWait outer(ranks);
    {
      const LongWait inner(ranks);
      if (ranks.rank() == 0) work_for(1.3 * kDeadline);
    }
    if (ranks.rank() == 0) work_for(1.3 * kDeadline);
    ranks.barrier();
  }
  EXPECT_EQ(ranks.timeout_seconds(), kDeadline);
}

TEST(LongWait, LeavesTheRanksTogetherAfterAnErrorOfAll) {
  Communicator ranks(world().native(), kDeadline);
  struct SlowToEnd {
    bool slow;
    ~SlowToEnd() {
      if (slow) work_for(0.7 * kDeadline);
    }
  };
  const std::string message = error_of(ErrorKind::input, [&] {
    const LongWait wait(ranks);
    const SlowToEnd slow{ranks.rank() == 1};
    ranks.together([&] {
      if (ranks.rank() == 0) throw Error(ErrorKind::input, "a bad file");
    });
  });
  EXPECT_NE(message.find("a bad file"), std::string::npos) << message;
  world().barrier();
  EXPECT_EQ(ranks.all_reduce(1, Reduction::sum), ranks.size());
}

/// Ranks that wait for it hear of it; those that are through do not wait, and miss it at their next meeting.
TEST(LongWait, ARankThatFailsIsMissed) {
  if (world().size() == 1) GTEST_SKIP() << "needs two ranks";
  for (const bool waited_for : {true, false}) {
    Communicator ranks(world().native(), kDeadline);
    const bool fails = ranks.rank() == 0;
    const std::string message = error_of(fails ? ErrorKind::internal : ErrorKind::rank_lost, [&] {
      {
        const LongWait wait(ranks);
        if (fails) throw Error(ErrorKind::internal, "of which the others do not know");
        if (waited_for) ranks.barrier();
      }
      ranks.barrier();
    });
    const std::string expected = fails        ? "of which the others do not know"
                                 : waited_for ? "another rank failed"
                                              : "barrier did not finish within 1 s";
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    world().barrier();
  }
}

}  // namespace
}  // namespace shardmat
