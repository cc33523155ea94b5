#include "comm/communicator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>

#include "comm/call_watch.h"
#include "comm/slices.h"
#include "tests/support/growing_deadline.h"
#include "tests/support/pretended_hosts.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

class SliceLimit {
 public:
  explicit SliceLimit(std::size_t bytes) { world().set_slice_bytes(bytes); }
  ~SliceLimit() { world().set_slice_bytes(std::size_t{256} << 20); }
};

TEST(Slices, CoverEverythingOnce) {
  for (const std::size_t total : {0u, 1u, 7u, 8u, 9u, 16u, 17u}) {
    std::size_t next = 0;
    for_each_message_slice(total, 8, [&](std::size_t offset, std::size_t bytes) {
      EXPECT_EQ(offset, next);
      EXPECT_GE(bytes, 1u);
      EXPECT_LE(bytes, 8u);
      next = offset + bytes;
    });
    EXPECT_EQ(next, total);
  }
}

TEST(Slices, BeyondInt) {
  const std::size_t total = (std::size_t{5} << 30) + 3, limit = std::size_t{1} << 30;
  std::size_t slices = 0, sum = 0;
  for_each_message_slice(total, limit, [&](std::size_t offset, std::size_t bytes) {
    EXPECT_EQ(offset, sum);
    EXPECT_LE(bytes, limit);
    sum += bytes, ++slices;
  });
  EXPECT_EQ(sum, total);
  EXPECT_EQ(slices, 6u);
}

TEST(Communicator, KnowsItsPlace) {
  EXPECT_GE(world().rank(), 0);
  EXPECT_LT(world().rank(), world().size());
  EXPECT_GE(world().local_rank(), 0);
  EXPECT_LT(world().local_rank(), world().local_size());
  EXPECT_FALSE(world().host().empty());
  EXPECT_FALSE(world().broken());
  const std::vector<std::string> hosts = world().all_gather(world().host());
  const std::vector<int> local = world().all_gather(world().local_rank());
  std::set<std::pair<std::string, int>> places;
  for (std::size_t r = 0; r < hosts.size(); ++r) places.emplace(hosts[r], local[r]);
  EXPECT_EQ(places.size(), hosts.size());
  if (hosts_are_pretended()) {
    EXPECT_GT(std::set<std::string>(hosts.begin(), hosts.end()).size(), 1u);
    EXPECT_LT(world().local_size(), world().size());
  }
}

TEST(Communicator, LocalRankOfASubset) {
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(world().native(), world().rank() % 2, -world().rank(), &half);
  {
    const Communicator part(half);
    EXPECT_LT(part.local_rank(), part.local_size());
    EXPECT_LE(part.local_size(), part.size());
    if (world().local_size() == world().size()) {
      EXPECT_EQ(part.local_rank(), part.rank());
    }
  }
  MPI_Comm_free(&half);
}

TEST(Communicator, MoveLeavesNothingToFree) {
  Communicator first(world().native());
  Communicator second(std::move(first));
  second.barrier();
  EXPECT_EQ(second.size(), world().size());
}

TEST(Communicator, AloneSendsToItself) {
  Communicator alone = Communicator::alone(5);
  EXPECT_EQ(alone.native(), MPI_COMM_NULL);
  EXPECT_EQ(alone.size() - alone.rank(), 1);
  EXPECT_EQ(alone.local_size() - alone.local_rank(), 1);
  EXPECT_FALSE(alone.host().empty());
  alone.barrier();
  EXPECT_EQ(alone.all_reduce(2.5, Reduction::sum), 2.5);
  EXPECT_EQ(alone.all_gather(std::string("text")), std::vector<std::string>{"text"});
  Communicator another = alone.duplicate(7);
  EXPECT_EQ(another.timeout_seconds(), 7);
  EXPECT_EQ(alone.first_ranks(1, 7)->native(), MPI_COMM_NULL);

  const int first[] = {1, 2, 3}, second[] = {4, 5};
  int to_first[3] = {}, to_second[2] = {};
  using Transfer = Communicator::Transfer;
  const std::vector<Transfer::Outgoing> sends{{0, first, sizeof first}, {0, nullptr, 0}, {0, second, sizeof second}};
  const std::vector<Transfer::Incoming> receives{{0, to_first, sizeof to_first}, {0, to_second, sizeof to_second}};
  Transfer transfer = alone.start(sends, receives, 1);
  alone.finish(transfer);
  EXPECT_EQ(to_first[2], 3);
  EXPECT_EQ(to_second[1], 5);
  EXPECT_THROW(alone.start(sends, {}, 1), Error);
  EXPECT_THROW(alone.start({}, receives, 1), Error);
  try {
    alone.run_agreed([] { throw Error(ErrorKind::input, "of this rank"); });
    FAIL();
  } catch (const AgreedError& error) {
    EXPECT_STREQ(error.what(), "of this rank");
  }
}

TEST(Communicator, Barrier) {
  for (int i = 0; i < 100; ++i) world().barrier();
}

TEST(Communicator, BroadcastFromEveryRank) {
  const SliceLimit limit(100);
  for (int root = 0; root < world().size(); ++root) {
    std::vector<double> data(97, world().rank() == root ? root + 0.5 : -1);
    world().broadcast(std::span<double>(data), root);
    EXPECT_EQ(data, std::vector<double>(97, root + 0.5));
    const std::string text(static_cast<std::size_t>(root) * 150, static_cast<char>('a' + root));
    EXPECT_EQ(world().broadcast(world().rank() == root ? text : "not this", root), text);
  }
}

TEST(Communicator, AllReduce) {
  const int rank = world().rank(), size = world().size();
  EXPECT_EQ(world().all_reduce(rank, Reduction::sum), size * (size - 1) / 2);
  EXPECT_EQ(world().all_reduce(rank, Reduction::min), 0);
  EXPECT_EQ(world().all_reduce(rank, Reduction::max), size - 1);
  const std::int64_t big = (std::int64_t{1} << 40) + rank;
  EXPECT_EQ(world().all_reduce(big, Reduction::max), (std::int64_t{1} << 40) + size - 1);
  EXPECT_EQ(world().all_reduce(0.5 + rank, Reduction::min), 0.5);
  EXPECT_EQ(world().all_reduce(0.5 + rank, Reduction::max), size - 0.5);
  std::vector<double> nothing;
  world().all_reduce(std::span<double>(nothing), Reduction::sum);
}

TEST(Communicator, AllReduceOfLongArrays) {
  const SliceLimit limit(1000);
  std::vector<double> data(300'001);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<double>(i % 1000) + world().rank();
  world().all_reduce(std::span<double>(data), Reduction::sum);
  const int size = world().size();
  for (std::size_t i = 0; i < data.size(); ++i)
    ASSERT_EQ(data[i], static_cast<double>(i % 1000) * size + size * (size - 1) / 2) << i;
  std::vector<std::int64_t> counts(1003, world().rank() + 1);
  world().all_reduce(std::span<std::int64_t>(counts), Reduction::sum);
  EXPECT_EQ(counts, std::vector<std::int64_t>(1003, size * (size + 1) / 2));
}

TEST(Communicator, SumOfDoublesIsInRankOrder) {
  const double mine = world().rank() % 2 == 0 ? 1e16 : 1.0 + world().rank();
  double expected = 0;
  for (const double value : world().all_gather(mine)) expected += value;
  EXPECT_EQ(world().all_reduce(mine, Reduction::sum), expected);
}

TEST(Communicator, NanOnOneRankIsNotLost) {
  const double mine = world().rank() == world().size() - 1 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
  for (const Reduction reduction : {Reduction::sum, Reduction::min, Reduction::max})
    EXPECT_TRUE(std::isnan(world().all_reduce(mine, reduction)));
}

TEST(Communicator, AllGatherOfValuesAndTexts) {
  struct Pair {
    std::int64_t a;
    char b;
  };
  const std::vector<Pair> pairs = world().all_gather(Pair{world().rank() * 10, 'x'});
  const std::vector<std::string> texts = world().all_gather(std::string(static_cast<std::size_t>(world().rank()) * 3, 'y'));
  ASSERT_EQ(static_cast<int>(pairs.size()), world().size());
  for (std::size_t r = 0; r < pairs.size(); ++r) {
    EXPECT_EQ(pairs[r].a, static_cast<std::int64_t>(r) * 10);
    EXPECT_EQ(pairs[r].b, 'x');
    EXPECT_EQ(texts[r], std::string(r * 3, 'y'));
  }
  for (const std::string& text : world().all_gather(std::string())) EXPECT_EQ(text, "");
}

TEST(Communicator, AllGatherSlotsInSlices) {
  for (const std::size_t limit : {1u, 7u, 64u, 1000u}) {
    const SliceLimit slices(limit);
    for (const std::size_t slot : {0u, 1u, 63u, 64u, 65u}) {
      const std::size_t ranks = static_cast<std::size_t>(world().size()), mine = static_cast<std::size_t>(world().rank());
      std::vector<unsigned char> data(slot * ranks + 8, 0xEE);
      for (std::size_t i = 0; i < slot; ++i) data[mine * slot + i] = static_cast<unsigned char>(mine * 50 + i);
      world().all_gather_slots(data.data(), slot);
      for (std::size_t r = 0; r < ranks; ++r)
        for (std::size_t i = 0; i < slot; ++i) ASSERT_EQ(data[r * slot + i], static_cast<unsigned char>(r * 50 + i));
      for (std::size_t i = slot * ranks; i < data.size(); ++i) ASSERT_EQ(data[i], 0xEE);
    }
  }
}

TEST(Communicator, SendAndReceiveInSlices) {
  const SliceLimit limit(100);
  std::vector<int> data(1001);
  if (world().rank() == 0) {
    std::iota(data.begin(), data.end(), 5);
    for (int to = 1; to < world().size(); ++to) world().send(data.data(), data.size() * sizeof(int), to, 3);
  } else {
    world().receive(data.data(), data.size() * sizeof(int), 0, 3);
  }
  if (world().size() == 1) return;
  EXPECT_EQ(data.front(), 5);
  EXPECT_EQ(data.back(), 1005);
  world().send(nullptr, 0, 0, 4);
}

TEST(Communicator, AllToAll) {
  std::vector<std::int64_t> values;
  for (int p = 0; p < world().size(); ++p) values.push_back(100 * world().rank() + p);
  const std::vector<std::int64_t> result = world().all_to_all(values);
  for (int p = 0; p < world().size(); ++p) EXPECT_EQ(result[static_cast<std::size_t>(p)], 100 * p + world().rank());
}

TEST(Communicator, TransfersBetweenAllRanksAtOnce) {
  const SliceLimit limit(100);
  const auto size = static_cast<std::size_t>(world().size()), mine = static_cast<std::size_t>(world().rank());
  const auto length = [](std::size_t from, std::size_t to) { return 40 * from + 7 * to; };  // 0 from rank 0 to itself
  for (int round = 0; round < 3; ++round) {
    std::vector<std::vector<int>> out(size), in(size);
    std::vector<Communicator::Transfer::Outgoing> sends;
    std::vector<Communicator::Transfer::Incoming> receives;
    for (std::size_t p = 0; p < size; ++p) {
      out[p].assign(length(mine, p), static_cast<int>(1000 * mine + p) + round);
      in[p].assign(length(p, mine) + 1, -1);
      sends.push_back({static_cast<int>(p), out[p].data(), out[p].size() * sizeof(int)});
      receives.push_back({static_cast<int>(p), in[p].data(), length(p, mine) * sizeof(int)});
    }
    Communicator::Transfer transfer = world().start(sends, receives, 5);
    world().finish(transfer);
    for (std::size_t p = 0; p < size; ++p) {
      std::vector<int> expected(length(p, mine), static_cast<int>(1000 * p + mine) + round);
      expected.push_back(-1);
      EXPECT_EQ(in[p], expected) << "from rank " << p;
    }
  }
}

TEST(Agree, NobodyFailed) {
  world().agree(nullptr);
  EXPECT_EQ(world().run_agreed([] { return 7; }), 7);
}

TEST(Agree, LastRankFailed) {
  const int last = world().size() - 1;
  const std::string host = world().all_gather(world().host()).back();
  const std::string message = error_of(ErrorKind::input, [&] {
    world().run_agreed([&] {
      if (world().rank() == last) throw Error(ErrorKind::input, "bar.mtx: line 3: bad");
    });
  });
  const std::string where = last == 0 ? "" : "rank " + std::to_string(last) + " (" + host + "): ";
  EXPECT_EQ(message, where + "bar.mtx: line 3: bad");
}

TEST(Agree, AllRanksLearnTheSetting) {
  const int last = world().size() - 1;
  EXPECT_EQ(setting_of([&] {
              world().run_agreed([&] {
                if (world().rank() == last) throw Error(ErrorKind::usage, "there is no such kernel", "kernel");
              });
            }),
            "kernel");
}

TEST(Agree, AllRanksFailedDifferently) {
  const std::string message = error_of(ErrorKind::resources, [&] {
    world().run_agreed([&]() -> int {
      if (world().rank() == 0) throw std::bad_alloc();
      throw Error(ErrorKind::input, "rank specific");
    });
  });
  EXPECT_NE(message.find("out of host memory"), std::string::npos) << message;
  const std::string more =
      world().size() == 2 ? "... and 1 more rank" : "... and " + std::to_string(world().size() - 1) + " more ranks";
  EXPECT_EQ(message.find(more) != std::string::npos, world().size() > 1) << message;
}

TEST(Agree, ForeignExceptionsAreInternal) {
  EXPECT_NE(error_of(ErrorKind::internal, [] { world().run_agreed([] { throw std::runtime_error("odd"); }); }).find("odd"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorKind::internal, [] { world().run_agreed([] { throw 3; }); }).find("unknown error"),
            std::string::npos);
}

TEST(Agree, LostRanksAreNotWaitedFor) {
  // All but rank 0 would have to wait here for ever if agree() communicated.
  const auto lost = std::make_exception_ptr(Error(ErrorKind::rank_lost, "gone"));
  if (world().rank() == 0) {
    EXPECT_EQ(error_of(ErrorKind::rank_lost, [&] { world().agree(lost); }), "gone");
  }
}

TEST(RunGuarded, AllRanksLeaveWithTheErrorOfOneWhateverTheyCall) {
  Communicator ranks = world().duplicate(5);
  const int last = ranks.size() - 1;
  const std::vector<std::function<void()>> calls = {
      [&] { ranks.barrier(); },
      [&] { ranks.all_reduce(1, Reduction::sum); },
      [&] { ranks.all_reduce(1.5, Reduction::sum); },
      [&] { ranks.all_gather(std::string("text")); },
      [&] { ranks.all_to_all(std::vector<std::int64_t>(static_cast<std::size_t>(ranks.size()))); },
      [&] { ranks.broadcast(std::string("text")); },
      [&] { ranks.run_agreed([] {}); },
      [&] { ranks.check_in(); },
  };
  for (std::size_t failing = 0; failing <= calls.size(); ++failing) {
    const std::string message = error_of(ErrorKind::resources, [&] {
      ranks.run_guarded([&] {
        for (std::size_t i = 0; i <= calls.size(); ++i) {
          if (i == failing && ranks.rank() == last) throw std::bad_alloc();
          if (i < calls.size()) calls[i]();
        }
      });
    });
    EXPECT_NE(message.find("out of host memory"), std::string::npos) << failing << ": " << message;
  }
  EXPECT_EQ(ranks.all_reduce(1, Reduction::sum), ranks.size());
}

TEST(RunGuarded, SeveralFailuresAgreedOnesAndNone) {
  Communicator ranks = world().duplicate(5);
  const auto message = [&](const std::function<void()>& work) {
    return error_of(ErrorKind::input, [&] { ranks.run_guarded(work); });
  };
  EXPECT_NE(message([&] {
              if (ranks.rank() != 1) throw Error(ErrorKind::input, "bad row");
              ranks.barrier();
            }).find("bad row"),
            std::string::npos);
  EXPECT_NE(message([&] {
              ranks.run_guarded([&] {  // as if there were one
                ranks.run_agreed([&] {
                  if (ranks.rank() == 0) throw Error(ErrorKind::input, "bad column");
                });
              });
              ranks.barrier();
            }).find("bad column"),
            std::string::npos);
  int sum = 0;
  ranks.run_guarded([&] { sum = ranks.all_reduce(1, Reduction::sum); });
  EXPECT_EQ(sum, ranks.size());
}

TEST(Deadline, NamesOperationRankHostAndRemedy) {
  Communicator ranks = world().duplicate(0.2);
  std::string why, setting;
  ranks.on_broken([&](const Error& error) { why = error.what(), setting = error.setting(); });
  const std::string message =
      error_of(ErrorKind::rank_lost, [&] { ranks.wait_until([] { return false; }, "exchange of x"); });
  EXPECT_EQ(message.find("rank " + std::to_string(world().rank()) + " (" + world().host() +
                         "): exchange of x did not finish within 0.2 s"),
            0u)
      << message;
  EXPECT_NE(message.find("raise the deadline"), std::string::npos) << message;
  EXPECT_EQ(why, message);
  EXPECT_EQ(setting, "timeout_seconds");
  EXPECT_TRUE(ranks.broken());
  Communicator others = world().duplicate(0.2);
  EXPECT_EQ(setting_of([&] { others.wait_until([] { return false; }, "exchange of x"); }), "timeout_seconds");
  EXPECT_NE(error_of(ErrorKind::rank_lost, [&] { ranks.barrier(); }).find("no barrier after the ranks were lost"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorKind::rank_lost, [&] { ranks.all_reduce(1.0, Reduction::sum); }).find("no all-reduce"),
            std::string::npos);
}

TEST(Deadline, BarrierWithoutOneRank) {
  if (world().size() == 1) GTEST_SKIP() << "needs two ranks";
  Communicator ranks = world().duplicate(0.3);
  if (world().rank() != 0) {
    EXPECT_NE(error_of(ErrorKind::rank_lost, [&] { ranks.barrier(); }).find("barrier did not finish"), std::string::npos);
  }
  world().barrier();
}

TEST(Deadline, OwnErrorSurvivesWhenTheRanksCannotMeet) {
  if (world().size() == 1) GTEST_SKIP() << "needs two ranks";
  Communicator ranks = world().duplicate(0.3);
  if (world().rank() == 1) {
    const auto mine = std::make_exception_ptr(Error(ErrorKind::input, "my own trouble"));
    EXPECT_NE(error_of(ErrorKind::input, [&] { ranks.agree(mine); }).find("my own trouble (and then: "), std::string::npos);
    EXPECT_TRUE(ranks.broken());
  }
  world().barrier();
}

TEST(Communicator, DuplicateHasTheSameRanks) {
  Communicator other = world().duplicate(30);
  EXPECT_EQ(other.rank(), world().rank());
  EXPECT_EQ(other.size(), world().size());
  EXPECT_EQ(other.local_rank(), world().local_rank());
  EXPECT_EQ(other.local_size(), world().local_size());
  EXPECT_EQ(other.timeout_seconds(), 30);
  EXPECT_EQ(other.all_reduce(1, Reduction::sum), world().size());
}

TEST(Communicator, EndsWithoutWaitingForOtherRanks) {
  std::optional<Communicator> other = world().duplicate(30);
  if (world().rank() == 0) other.reset();  // MPI_Comm_free is local in Open MPI and MPICH
  world().barrier();
}

TEST(Communicator, GivingUpCountsAtTheNextCall) {
  Communicator alone = Communicator::alone(5), other = world().duplicate(30);
  for (Communicator* ranks : {&alone, &other}) {
    ranks->give_up(Error(ErrorKind::rank_lost, "somebody ended"));
    EXPECT_THROW(ranks->barrier(), Error);
    EXPECT_TRUE(ranks->broken());
  }
}

TEST(CallWatch, NamesTheCallThatDoesNotReturn) {
  with_growing_deadline([](double seconds) {
    std::promise<std::string> stuck;
    CallWatch watch(seconds, [&](const std::string& function) { stuck.set_value(function); });
    const auto hanging = watch.add(), working = watch.add();
    watch.add()->enter("gone");
    hanging->enter("returns");
    hanging->leave();
    hanging->enter("hangs");
    auto name = stuck.get_future();
    while (name.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
      working->enter("works");
      working->leave();
    }
    EXPECT_EQ(name.get(), "hangs");
  });
}

TEST(Communicator, FirstRanksWorkByThemselves) {
  for (int count = 1; count <= world().size(); ++count) {
    std::optional<Communicator> some = world().first_ranks(count, 30);
    ASSERT_EQ(some.has_value(), world().rank() < count);
    if (some) {
      EXPECT_EQ(some->size(), count);
      EXPECT_EQ(some->rank(), world().rank());
      EXPECT_EQ(some->all_reduce(1, Reduction::sum), count);
    }
    world().barrier();
  }
}

}  // namespace
}  // namespace shardmat
