// Each fault that the doctor names, as facts of ranks that were changed in one place.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/doctor/check_list.h"
#include "runtime/doctor/pairs.h"
#include "tests/support/world.h"

namespace shardmat::doctor {
namespace {

Json gpu(int number, Json reaches) {
  return {{"id", fmt::format("0000:0{}:00.0", number)},
          {"name", "NVIDIA H200"},
          {"uuid", fmt::format("GPU-{}", number)},
          {"reaches", reaches}};
}

/// Facts of a rank on a host without faults: 16 cores, two GPUs, two nodes, as the first or second rank there.
Json sound(int local_rank) {
  Json on_host = Json::array({gpu(1, Json::array()), gpu(2, Json::array())});
  for (std::size_t i = 0; i < 2; ++i) {
    on_host[i].erase("reaches");
    on_host[i].update({{"numa_node", i}, {"pcie_lanes", 16}, {"pcie_lanes_possible", 16}});
  }
  const char* const cores = local_rank == 0 ? "0-7" : "8-15";
  return {{"launch",
           {{"launcher", "Open MPI's mpirun"},
            {"launcher_variable", "OMPI_COMM_WORLD_SIZE"},
            {"launcher_ranks", 4},
            {"mpi", "Open MPI v4.1.4"},
            {"mpi_started", true},
            {"mpi_threads", true}}},
          {"cores", {{"online", 16}, {"usable", cores}, {"asked_threads", 0}}},
          {"load", {{"busy_cores", 0.4}, {"stolen_cores", 0.0}}},
          {"memory", {{"total_bytes", 500e9}, {"available_bytes", 400e9}, {"cgroups", Json::array()}}},
          {"shared_memory", {{"bytes", 250e9}, {"free_bytes", 249e9}}},
          {"limits", {{"locked_bytes", 8 << 20}, {"open_files", 1024}}},
          {"huge_pages", {{"transparent", "madvise"}}},
          {"numa",
           {{"nodes", Json::array({{{"node", 0}, {"cores", "0-7"}}, {{"node", 1}, {"cores", "8-15"}}})},
            {"nodes_of_cores", std::to_string(local_rank)},
            {"nodes_of_memory", "0-1"}}},
          {"network",
           {{"interfaces", Json::array({{{"name", "eth0"}, {"state", "up"}, {"megabits_per_s", 100000}}})},
            {"rdma", Json::array()}}},
          {"gpus",
           {{"built_with_cuda", true},
            {"built_with_nccl", true},
            {"driver", "580.65.06"},
            {"driver_cuda", 13000},
            {"runtime_cuda", 13000},
            {"on_host", on_host},
            {"visible", Json::array({gpu(1, {"0000:02:00.0"}), gpu(2, {"0000:01:00.0"})})}}},
          {"gpu_health", local_rank != 0 ? Json::object()
                                         : Json{{"gpus", Json::array({{{"id", "0000:01:00.0"},
                                                                       {"sm_mhz", 1980},
                                                                       {"sm_mhz_possible", 1980},
                                                                       {"slowed_by", Json::array({"power cap"})},
                                                                       {"ecc_on", true},
                                                                       {"uncorrected_errors", 0},
                                                                       {"busy_share", 0.0},
                                                                       {"processes", 0}}})}}},
          {"libraries",
           {{"shardmat", "0.2.0"},
            {"mpi", "Open MPI v4.1.4"},
            {"instruction_set", "avx512"},
            {"loaded", {{"libmpi", "libmpi.so.40.30.4"}}}}},
          {"settings", {{"variables", {{"OMP_NUM_THREADS", "8"}}}}},
          {"clocks", {{"source", "tsc"}, {"ahead_s", 0.01}}}};
}

/// Four ranks, `ranks_of_host` on each host, of which those of `where` are changed by `patch`.
struct Fault {
  const char* name;
  std::set<int> where;
  Json patch;
  int ranks = 4, ranks_of_host = 2;
};

Gathered with(const Fault& fault) {
  std::vector<Gathered::Rank> ranks;
  for (int rank = 0; rank < fault.ranks; ++rank) {
    ranks.push_back({fmt::format("host{}", rank / fault.ranks_of_host), sound(rank % fault.ranks_of_host % 2)});
    if (fault.where.count(rank) != 0) ranks.back().facts.merge_patch(fault.patch);
  }
  return Gathered(std::move(ranks));
}

Findings findings_of(const Gathered& all) {
  Findings findings;
  for (const Check& check : checks()) check.judge(all, findings);
  return findings;
}

const std::set<int> kAll{0, 1, 2, 3}, kFirstHost{0, 1};

Json pairs(std::initializer_list<double> rates, int first) {
  Json all = Json::array();
  for (const double rate : rates) all.push_back({{"rank", first++}, {"latency_s", 1e-6}, {"bytes_per_s", rate}});
  return all;
}

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all{
      {"singletons", {0}, {{"launch", {{"launcher_ranks", 3}}}}, 1},
      {"no_mpi_threads", kAll, {{"launch", {{"mpi_threads", false}}}}},
      {"one_core_for_all_ranks", kFirstHost, {{"cores", {{"usable", "3"}}}}},
      {"fewer_cores_than_threads", {2}, {{"cores", {{"asked_threads", 9}}}}},
      {"fewer_cores_than_threads", kFirstHost, {{"cores", {{"usable", "0-7"}, {"asked_threads", 5}}}}},
      {"fewer_cores_than_threads", kFirstHost, {{"cores", {{"quota", 4.0}, {"quota_of", "/sys/fs/cgroup/job"}}}}},
      {"busy_host", kFirstHost, {{"load", {{"busy_cores", 5.0}}}}},
      {"stolen_time", kFirstHost, {{"load", {{"stolen_cores", 2.0}}}}},
      {"nested_memory_limit",
       kFirstHost,
       {{"memory",
         {{"cgroups",
           Json::array({{{"cgroup", "/a"}, {"limit_bytes", 16e9}, {"available_bytes", 15e9}, {"own", false}}})}}}}},
      {"nested_memory_limit",
       kFirstHost,
       {{"memory",
         {{"cgroups",
           Json::array({{{"cgroup", "/a/b"}, {"limit_bytes", 90e9}, {"available_bytes", 80e9}, {"own", true}},
                        {{"cgroup", "/a"}, {"limit_bytes", 16e9}, {"available_bytes", 15e9}, {"own", false}}})}}}}},
      {"little_memory", kFirstHost, {{"memory", {{"available_bytes", 600e6}}}}},
      {"small_dev_shm", kFirstHost, {{"shared_memory", {{"bytes", 1 << 20}, {"free_bytes", 1 << 20}}}}},
      {"small_dev_shm", kFirstHost, {{"shared_memory", {{"free_bytes", 1 << 20}}}}},
      {"low_memlock", {1}, {{"limits", {{"locked_bytes", 65536}}}}},
      {"low_memlock",
       kFirstHost,
       {{"network",
         {{"rdma", Json::array({{{"name", "mlx5_0:1"}, {"state", "4: ACTIVE"}, {"link_layer", "InfiniBand"}}})}}}}},
      {"few_open_files", {3}, {{"limits", {{"open_files", 64}}}}},
      {"address_space_limit", {3}, {{"limits", {{"address_space_bytes", 64e9}}}}},
      {"no_huge_pages", {2, 3}, {{"huge_pages", {{"transparent", "never"}}}}},
      {"far_memory", {1}, {{"numa", {{"nodes_of_memory", "0"}}}}},
      {"port_down",
       kFirstHost,
       {{"network", {{"rdma", Json::array({{{"name", "mlx5_0:1"}, {"state", "1: DOWN"}, {"link_layer", "InfiniBand"}}})}}},
        {"limits", {{"locked_bytes", nullptr}}}}},
      {"slow_network",
       {2, 3},
       {{"network", {{"interfaces", Json::array({{{"name", "eth0"}, {"state", "up"}, {"megabits_per_s", 1000}}})}}}}},
      {"old_driver", kFirstHost, {{"gpus", {{"driver_cuda", 12000}, {"visible", Json::array()}}}}},
      {"unused_gpus", kFirstHost, {{"gpus", {{"built_with_cuda", false}, {"runtime_cuda", nullptr}}}}},
      {"unused_gpus", kFirstHost, {{"gpus", {{"visible", Json::array()}, {"cuda_visible_devices", ""}}}}},
      {"shared_gpu", kAll, Json::object(), 3, 3},
      {"no_peer_access", kFirstHost, {{"gpus", {{"visible", Json::array({gpu(1, Json::array()), gpu(2, Json::array())})}}}}},
      {"far_gpu", {0}, {{"numa", {{"nodes_of_cores", "1"}}}}},
      {"no_nccl", kAll, {{"gpus", {{"built_with_nccl", false}}}}},
      {"no_nccl", {1}, {{"gpus", {{"nccl_missing", "2.28.9"}}}}},
      {"slowed_gpu",
       {0},
       {{"gpu_health",
         {{"gpus", Json::array({{{"id", "0000:01:00.0"}, {"sm_mhz", 600}, {"slowed_by", Json::array({"heat"})}}})}}}}},
      {"ecc_errors", {2}, {{"gpu_health", {{"gpus", Json::array({{{"id", "0000:01:00.0"}, {"uncorrected_errors", 3}}})}}}}},
      {"busy_gpu", {0}, {{"gpu_health", {{"gpus", Json::array({{{"id", "0000:01:00.0"}, {"processes", 1}}})}}}}},
      {"different_libraries", {2, 3}, {{"libraries", {{"loaded", {{"libmpi", "libmpi.so.40.30.5"}}}}}}},
      {"different_libraries", {2, 3}, {{"libraries", {{"shardmat", "0.1.0"}}}}},
      {"different_cpus", {3}, {{"libraries", {{"instruction_set", "avx2"}}}}},
      {"slowing_settings", kAll, {{"settings", {{"variables", {{"CUDA_LAUNCH_BLOCKING", "1"}}}}}}},
      {"slowing_settings", kAll, {{"settings", {{"variables", {{"OMPI_MCA_btl", "tcp,self"}}}}}}},
      {"no_nvlink_multicast", kAll, {{"settings", {{"variables", {{"NCCL_NVLS_ENABLE", "0"}}}}}}},
      {"different_settings", {1}, {{"settings", {{"variables", {{"OMP_NUM_THREADS", "1"}}}}}}},
      {"clocks_apart", {2, 3}, {{"clocks", {{"ahead_s", -2.5}}}}},
      {"slow_clock", {2, 3}, {{"clocks", {{"source", "hpet"}}}}},
      {"nccl_failed", kAll, {{"gpu_links", {{"failed", "no interface"}}}}},
  };
  return all;
}

TEST(Faults, NoneWhereAllIsSound) { EXPECT_TRUE(findings_of(with({"", {}, Json::object()})).empty()); }

TEST(Faults, EachIsNamedAlone) {
  for (const Fault& fault : faults()) {
    const Findings found = findings_of(with(fault));
    ASSERT_EQ(found.size(), 1U) << fault.name << " " << fault.patch << (found.empty() ? "" : ": " + found.front().name);
    EXPECT_EQ(found.front().name, fault.name) << found.front().what;
    for (const std::string& text : {found.front().what, found.front().why, found.front().remedy})
      EXPECT_GT(text.size(), 9U) << fault.name;
    if (fault.where == std::set<int>{2, 3}) {
      EXPECT_NE(found.front().what.find("host1"), std::string::npos) << found.front().what;
    }
  }
}

TEST(Faults, HiddenPeersAndNarrowLanes) {
  std::vector<Gathered::Rank> ranks{{"a", sound(0)}, {"a", sound(1)}};
  for (int rank = 0; rank < 2; ++rank)
    ranks[static_cast<std::size_t>(rank)].facts["gpus"]["visible"] = Json::array({gpu(rank + 1, Json::array())});
  Findings found = findings_of(Gathered(ranks));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().name, "hidden_peers");
  EXPECT_NE(found.front().what.find("ranks 0-1 do not see"), std::string::npos) << found.front().what;
  ranks = {{"a", sound(0)}};
  ranks[0].facts["gpus"]["on_host"][1]["pcie_lanes"] = 8;
  found = findings_of(Gathered(ranks));
  ASSERT_EQ(found.size(), 2U);  // and the launcher of 4
  EXPECT_EQ(found.back().name, "narrow_pcie");
}

TEST(Faults, ASlowLink) {
  for (const char* check : {"links", "gpu_links"}) {
    std::vector<Gathered::Rank> ranks;
    for (int rank = 0; rank < 4; ++rank) ranks.push_back({"a", sound(rank % 2)});
    for (auto& rank : ranks) rank.facts.erase("gpus");
    ranks[0].facts[check] = {{"pairs", pairs({9e9, 10e9, 11e9}, 1)}};
    ranks[1].facts[check] = {{"pairs", pairs({9e9, 10e9}, 2)}};
    ranks[2].facts[check] = {{"pairs", pairs({1e9}, 3)}};
    for (auto& rank : ranks) rank.facts["cores"]["usable"] = "0-15";
    const Findings found = findings_of(Gathered(ranks));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].name, check == std::string("links") ? "slow_link" : "slow_gpu_link");
    EXPECT_NE(found[0].what.find("ranks 2 and 3"), std::string::npos) << found[0].what;
    ranks[2].facts[check] = {{"pairs", pairs({3e9}, 3)}};
    EXPECT_TRUE(findings_of(Gathered(ranks)).empty()) << "a third of the usual bandwidth";
    ranks[2].facts[check] = {{"pairs", pairs({1e9}, 3)}};
    ranks[0].facts["load"]["busy_cores"] = 12;
    const Findings busy = findings_of(Gathered(ranks));
    ASSERT_EQ(busy.size(), 1U) << "times of a busy host say nothing";
    EXPECT_EQ(busy[0].name, "busy_host");
  }
}

TEST(Gathered, GroupsEqualValues) {
  const Gathered all = with({"", {}, Json::object()});
  EXPECT_EQ(by_rank(all, [](int) { return "x"; }), "x");
  EXPECT_EQ(by_rank(all, [](int rank) { return rank == 2 ? "y" : "x"; }), "x (ranks 0-1,3); y (rank 2 on host1)");
  EXPECT_EQ(by_rank(all, [](int rank) { return rank == 2 ? "y" : ""; }), "y (rank 2 on host1)");
  EXPECT_EQ(by_host(all, [&](int rank) { return all.host(rank); }), "host0 (host0); host1 (host1)");
  EXPECT_EQ(all.local_rank(3), 1);
}

TEST(Pairs, MeetOnceEach) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    std::set<std::pair<int, int>> all;
    for (const auto& round : rounds_of_pairs(ranks)) {
      std::set<int> busy;
      for (const auto& [lower, higher] : round) {
        EXPECT_LT(lower, higher);
        EXPECT_TRUE(busy.insert(lower).second && busy.insert(higher).second) << "a rank has two partners";
        EXPECT_TRUE(all.emplace(lower, higher).second);
      }
    }
    EXPECT_EQ(std::ssize(all), ranks * (ranks - 1) / 2);
  }
}

/// Measures pairs of all ranks, of which pair (0, 1) is slow the first `times`, and returns the rate that counts in the end.
double rate_of_pair_slow_for(int times) {
  Communicator& ranks = world();
  const Json facts = measure_pairs(ranks, Deadline(600), false, [&](int partner) {
    const bool is_slow = ranks.rank() + partner == 1 && times-- > 0;
    return Link{is_slow ? 1e-3 : 1e-6, is_slow ? 1e7 : 1e10 + ranks.rank()};
  });
  double rate = 0;
  for (const Json& pair : facts["pairs"])
    if (ranks.rank() == 0 && pair["rank"] == 1) rate = pair["bytes_per_s"];
  return ranks.all_reduce(rate, Reduction::max);
}

TEST(Pairs, ShareOneDeadline) {
  Communicator& ranks = world();
  const auto steps = std::ssize(rounds_of_pairs(ranks.size()));
  const Deadline deadline(0.05);
  std::int64_t second = 0;
  measure_pairs(ranks, deadline, true, [&](int) {
    while (!deadline.is_over()) {
    }
    return Link{1e-6, 1e10};
  });
  while (!deadline.is_over()) {
  }
  const Json facts = measure_pairs(ranks, deadline, true, [&](int) {
    ++second;
    return Link{1e-6, 1e10};
  });
  EXPECT_LE(second, 1) << "of " << steps << " steps, where no time was left";
  EXPECT_EQ(facts["pairs_left_out"] > 0, steps > 1);
  EXPECT_EQ(deadline.half().left(), 0);
}

TEST(Pairs, GpusAreNotMeasuredWhereNoTimeIsLeft) {
  if (world().size() == 1) GTEST_SKIP() << "one rank has no links";
  Options options;
  options.seconds = 0;
  const Viewpoint viewpoint{HostFiles(), options, world().rank(), world().size(), world().local_rank()};
  EXPECT_EQ(kGpuLinks.measure(world(), viewpoint)["not_looked_at"], "no time was left to start NCCL");
}

TEST(Pairs, SlowForAMomentAreMeasuredAgain) {
  if (world().size() < 5) GTEST_SKIP() << "most of fewer pairs say nothing";
  EXPECT_EQ(rate_of_pair_slow_for(0), 1e10);
  EXPECT_EQ(rate_of_pair_slow_for(1), 1e10);
  EXPECT_EQ(rate_of_pair_slow_for(2), 1e10);
  EXPECT_EQ(rate_of_pair_slow_for(1000), 1e7) << "a link that stays slow is named";
}

}  // namespace
}  // namespace shardmat::doctor
