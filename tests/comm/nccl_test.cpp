// Needs a GPU for every rank: run with mpirun -n 1, 2, 4; with SHARDMAT_TEST_HOSTS_OF=2 on half as many (pretended_hosts.h).
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "comm/exchange/grid_sums.h"
#include "comm/exchange/sum_over_ranks.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/placement.h"
#include "tests/comm/exchange_cases.h"
#include "tests/comm/hosts.h"
#include "tests/support/pretended_hosts.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

/// Places the ranks on GPUs, or says why the test cannot run.
class GpuRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why_not = why_no_gpus(); !why_not.empty()) GTEST_SKIP() << why_not;
    device_ = place_ranks(world(), BackendChoice::cuda).device;
    guard_.emplace(device_);
  }
  Device device_;
  std::optional<DeviceGuard> guard_;
};

using GpuNccl = GpuRanks;

class MultiGpuNccl : public GpuRanks {
 protected:
  void SetUp() override {
    if (world().size() == 1) GTEST_SKIP() << "needs two ranks";
    GpuRanks::SetUp();
  }
};

TEST_F(GpuNccl, PlacementNamesTheDevices) {
  const Placement placement = place_ranks(world(), BackendChoice::automatic);
  EXPECT_EQ(placement.device.backend, Backend::cuda);
  for (const RankPlace& place : placement.ranks) {
    EXPECT_FALSE(place.device.empty());
    EXPECT_FALSE(place.id.empty());
    EXPECT_FALSE(place.uuid.empty());
  }
}

TEST_F(GpuNccl, OneRankNeedsNoNccl) {
  if (world().size() > 1) GTEST_SKIP() << "for one rank";
  check_exchanges({world(), nullptr, device_});
  check_replay({world(), nullptr, device_});
}

TEST_F(MultiGpuNccl, EveryNameTypeAndLayout) {
  NcclCommunicator nccl(world(), device_);
  check_exchanges({world(), &nccl, device_});
  check_several_on_one_map({world(), &nccl, device_});
}

TEST_F(MultiGpuNccl, AutoMeasuresTwoLevelsWhereRanksShareHosts) {
  NcclCommunicator nccl(world(), device_);
  const std::vector<std::int64_t> starts = uneven_starts(world().size(), 40);
  const std::vector<std::int64_t> columns = {0, starts.back() - 1};
  const std::string why = make_mapped_exchange("auto", {world(), &nccl, device_}, {starts}, columns).exchange->why();
  EXPECT_EQ(why.find("no two_level") == std::string::npos, hosts_are_shared()) << why;
  EXPECT_EQ(why.find(", two_level ") != std::string::npos, hosts_are_shared()) << why;
}

TEST_F(MultiGpuNccl, MemoryDestroyedInAnotherOrderOnEachRank) {
  NcclCommunicator nccl(world(), device_);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<NcclCommunicator::Memory>> all;
    for (int i = 0; i < 4; ++i) all.push_back(std::make_unique<NcclCommunicator::Memory>(nccl, std::size_t{64} << 20));
    world().barrier();  // ranks may share a GPU
    const std::int64_t before = available_memory(device_);
    world().barrier();
    const auto first = static_cast<std::size_t>(world().rank());
    for (std::size_t i = 0; i < 3; ++i) all[(first + i) % 4].reset();  // each rank keeps another one
    world().barrier();
    nccl.free_retired();
    world().barrier();
    const std::int64_t freed = available_memory(device_) - before;
    EXPECT_EQ(freed >= (std::int64_t{60} << 20), world().size() < 4) << freed;  // those that all ranks have destroyed
    world().barrier();
    all.clear();
    nccl.free_retired();
    world().barrier();
    EXPECT_GE(available_memory(device_) - before, std::int64_t{240} << 20);
  }
}

TEST_F(MultiGpuNccl, ReplayedFromAGraph) {
  NcclCommunicator nccl(world(), device_);
  check_replay({world(), &nccl, device_});
}

TEST_F(MultiGpuNccl, ManyCallsWithoutAWait) {
  NcclCommunicator nccl(world(), device_);
  check_many_without_wait({world(), &nccl, device_});
}

/// Between pretended hosts without NVLink, and where NCCL is told not to have them, memory is no window, and peer is refused
/// with the reason.
TEST_F(MultiGpuNccl, WindowsWhereAllGpusReachEachOther) {
  const std::vector<std::string> hosts = world().all_gather(world().host());
  const auto off = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && std::string(value) == "0";
  };
  const bool none = (hosts.front() != hosts.back() && off("NCCL_MNNVL_ENABLE")) || off("NCCL_WIN_ENABLE");
  NcclCommunicator nccl(world(), device_);
  const NcclCommunicator::Memory memory(nccl, 1);
  EXPECT_EQ(memory.symmetric(), memory.why_no_window().empty());
  EXPECT_EQ(memory.symmetric(), nccl.why_no_peer_access().empty());
  if (!none) {
    if (hosts_are_pretended() && !memory.symmetric()) GTEST_SKIP() << "no NVLink switch: " << memory.why_no_window();
    return;
  }
  EXPECT_FALSE(memory.symmetric());
  const std::vector<std::int64_t> starts = uneven_starts(world().size(), 10), columns = {0};
  const auto make_peer = [&] { make_mapped_exchange("peer", {world(), &nccl, device_}, {starts}, columns); };
  EXPECT_NE(error_of(ErrorKind::resources, make_peer).find(memory.why_no_window()), std::string::npos);
}

TEST_F(MultiGpuNccl, LargeAllGather) {
  NcclCommunicator nccl(world(), device_);
  const std::size_t count = (std::size_t{96} << 20) / sizeof(double) + 32;
  const std::size_t ranks = static_cast<std::size_t>(world().size()), mine = static_cast<std::size_t>(world().rank());
  NcclCommunicator::Memory memory(nccl, count * ranks * sizeof(double));
  Stream stream(device_);
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i * ranks + mine);
  double* data = static_cast<double*>(memory.data());
  copy_to_device(data + mine * count, values.data(), count * sizeof(double), stream);
  nccl.all_gather_in_place(data, count, ValueType::f64, stream);
  nccl.wait(stream, "all-gather");
  for (std::size_t r = 0; r < ranks; ++r) {
    copy_to_host(values.data(), data + r * count, count * sizeof(double), stream);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], static_cast<double>(i * ranks + r));
  }
}

TEST_F(MultiGpuNccl, AllReduceSum) {
  NcclCommunicator nccl(world(), device_);
  Stream stream(device_);
  for (const std::size_t count : {1u, 3u, 1000u}) {
    Buffer buffer(device_, count * sizeof(double));
    std::vector<double> values(count, world().rank() + 0.5);
    copy_to_device(buffer.data(), values.data(), buffer.bytes(), stream);
    nccl.all_reduce_sum(buffer.as<double>(), count, stream);
    nccl.wait(stream, "all-reduce");
    copy_to_host(values.data(), buffer.data(), buffer.bytes(), stream);
    const int size = world().size();
    EXPECT_EQ(values, std::vector<double>(count, size * 0.5 + size * (size - 1) / 2));
  }
}

TEST_F(MultiGpuNccl, SumsOverRanks) {
  NcclCommunicator nccl(world(), device_);
  const ExchangeContext context{world(), &nccl, device_};
  EXPECT_EQ(SumOverRanks(context, 2).name(), nccl.why_no_peer_access().empty() ? "kernel" : "NCCL");
  check_sums(context);
}

TEST_F(MultiGpuNccl, SumsOfGridsWhereAllGpusReachEachOther) {
  NcclCommunicator nccl(world(), device_);
  const ExchangeContext context{world(), &nccl, device_};
  const int blocks = 7 + world().rank();
  const GridSums sums(context, blocks, 3);
  EXPECT_EQ(GridSums::possible(context, blocks), nccl.why_no_peer_access().empty());
  EXPECT_EQ(sums.blocks(), nccl.why_no_peer_access().empty() ? 7 : 0);
  if (sums.blocks() > 0) {
    EXPECT_EQ(sums.board().values, 3 * sums.blocks());
    EXPECT_EQ(sums.board().rank, world().rank());
    EXPECT_EQ(sums.board().ranks, world().size());
  }
  EXPECT_FALSE(GridSums::possible(context, world().rank() == 0 ? 0 : 7));  // one rank's device cannot
}

/// Free memory is taken after the first few, when libraries have what they keep.
TEST_F(MultiGpuNccl, NothingLeaksInHundredsOfCycles) {
  constexpr int kCycles = 300, kCyclesACommunicator = 50, kFirst = 2 * kCyclesACommunicator;
  std::int64_t free_before = 0;
  std::unique_ptr<NcclCommunicator> nccl;
  for (int i = 0; i < kCycles; ++i) {
    if (i % kCyclesACommunicator == 0) {
      nccl.reset();
      world().barrier();  // memory that another rank still has mapped is not free
      if (i == kFirst) free_before = available_memory(device_);
      nccl = std::make_unique<NcclCommunicator>(world(), device_);
    }
    const std::vector<std::int64_t> starts = uneven_starts(world().size(), 1000 * (1 + i % 3));
    std::vector<std::int64_t> columns(static_cast<std::size_t>(starts.back()));
    std::iota(columns.begin(), columns.end(), 0);
    const bool peers = nccl->why_no_peer_access().empty();
    const char* name = i % 3 == 0 ? "allgather" : i % 3 == 1 || !peers ? "halo" : "peer";
    const auto exchange = make_mapped_exchange(name, {world(), nccl.get(), device_}, {starts}, columns).exchange;
    const SumOverRanks sum({world(), nccl.get(), device_}, 2);
    Stream stream(device_);
    exchange->start(stream);
    exchange->finish(stream);
    exchange->wait(stream);
  }
  nccl.reset();
  world().barrier();
  const std::int64_t free_after = available_memory(device_);
  EXPECT_GE(free_after, free_before) << (free_before - free_after) / (kCycles - kFirst) << " bytes a cycle";
}

TEST_F(MultiGpuNccl, LostRankEndsTheWaitAndTheKernel) {
  Communicator ranks(world().native(), 3);
  auto nccl = std::make_unique<NcclCommunicator>(ranks, device_);
  Buffer buffer(device_, 64 * static_cast<std::size_t>(world().size()) * sizeof(double));
  auto stream = std::make_unique<Stream>(device_);
  nccl->all_gather_in_place(buffer.data(), 64, ValueType::f64, *stream);
  nccl->wait(*stream, "first all-gather");
  if (world().rank() != 0) {
    // A rank that gives up first may let the all-gather of others end; then the next one does not.
    const std::string message = error_of(ErrorKind::rank_lost, [&] {
      for (;;) nccl->all_gather_in_place(buffer.data(), 64, ValueType::f64, *stream), nccl->wait(*stream, "all-gather");
    });
    EXPECT_EQ(message.find("rank " + std::to_string(world().rank()) + " ("), 0u) << message;
    EXPECT_TRUE(ranks.broken());
    EXPECT_NE(error_of(ErrorKind::rank_lost, [&] { nccl->all_gather_in_place(buffer.data(), 64, ValueType::f64, *stream); })
                  .find("after the ranks were lost"),
              std::string::npos);
    buffer = Buffer();  // waits for the kernel: it must have ended
    nccl.reset();
  }
  world().barrier();
  ranks.mark_broken("rank 0 stayed away");
  nccl.reset();
  stream.reset();
  world().barrier();
}

}  // namespace
}  // namespace shardmat
