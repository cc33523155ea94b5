#include "comm/long_wait.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/support/growing_deadline.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

void work_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(LongWait, LastsAsLongAsTheWork) {
  with_growing_deadline([](double deadline) {
    Communicator ranks = world().duplicate(deadline);
    {
      const LongWait wait(ranks);
      if (ranks.rank() == 0) work_for(1.3 * deadline);
      EXPECT_EQ(ranks.all_reduce(1, Reduction::sum), ranks.size());
      if (ranks.rank() + 1 == ranks.size()) work_for(1.3 * deadline);  // the others wait at its end
    }
    EXPECT_EQ(ranks.timeout_seconds(), deadline);
    ranks.barrier();
  });
}

TEST(LongWait, InsideAnother) {
  with_growing_deadline([](double deadline) {
    Communicator ranks = world().duplicate(deadline);
    {
      const LongWait outer(ranks);
      {
        const LongWait inner(ranks);
        if (ranks.rank() == 0) work_for(1.3 * deadline);
      }
      if (ranks.rank() == 0) work_for(1.3 * deadline);
      ranks.barrier();
    }
    EXPECT_EQ(ranks.timeout_seconds(), deadline);
  });
}

TEST(LongWait, LeavesTheRanksTogetherAfterAnErrorOfAll) {
  with_growing_deadline([](double deadline) {
    Communicator ranks = world().duplicate(deadline);
    struct SlowToEnd {
      bool slow;
      double seconds;
      ~SlowToEnd() {
        if (slow) work_for(seconds);
      }
    };
    const std::string message = error_of(ErrorKind::input, [&] {
      const LongWait wait(ranks);
      const SlowToEnd slow{ranks.rank() == 1, 0.7 * deadline};
      ranks.run_agreed([&] {
        if (ranks.rank() == 0) throw Error(ErrorKind::input, "a bad file");
      });
    });
    EXPECT_NE(message.find("a bad file"), std::string::npos) << message;
    ranks.barrier();
    EXPECT_EQ(ranks.all_reduce(1, Reduction::sum), ranks.size());
  });
}

/// Ranks that wait for it hear of it; those that are through do not wait, and miss it at their next meeting.
TEST(LongWait, ARankThatFailsIsMissed) {
  if (world().size() == 1) GTEST_SKIP() << "needs two ranks";
  for (const bool waited_for : {true, false})
    with_growing_deadline([&](double deadline) {
      Communicator ranks = world().duplicate(deadline);
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
                                                : "barrier did not finish within " + fmt::format("{:g} s", deadline);
      EXPECT_NE(message.find(expected), std::string::npos) << message;
    });
}

}  // namespace
}  // namespace shardmat
