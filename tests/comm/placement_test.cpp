#include "comm/placement.h"

#include <gtest/gtest.h>

#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/parallel.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

TEST(Placement, Host) {
  const Placement placement = place_ranks(world(), BackendChoice::host);
  EXPECT_EQ(placement.device, Device{});
  ASSERT_EQ(static_cast<int>(placement.ranks.size()), world().size());
  EXPECT_FALSE(placement.ranks[0].device.empty());
  EXPECT_EQ(placement.why, "asked for");
  EXPECT_GE(placement.threads, 1);
}

TEST(Placement, AutomaticWithoutDevices) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "there is a GPU here";
  const Placement placement = place_ranks(world(), BackendChoice::automatic);
  EXPECT_EQ(placement.device.backend, Backend::host);
  EXPECT_NE(placement.why.find("no GPU: "), std::string::npos) << placement.why;
}

TEST(Placement, CudaWithoutDevicesIsRefusedWithTheRemedy) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "there is a GPU here";
  const std::string message = error_of(ErrorKind::resources, [] { place_ranks(world(), BackendChoice::cuda); });
  EXPECT_EQ(setting_of([] { place_ranks(world(), BackendChoice::cuda); }), "backend");
  EXPECT_NE(message.find("has no CUDA device: " + why_no_cuda_device()), std::string::npos) << message;
  EXPECT_NE(message.find("on the host backend"), std::string::npos) << message;
}

TEST(Placement, SharedDevicesAreRefused) {
  const auto ranks = [](std::vector<std::pair<const char*, const char*>> places) {
    std::vector<RankPlace> result;
    for (const auto& [host, uuid] : places) result.push_back({host, "GPU", std::string("pci ") + uuid, uuid});
    return result;
  };
  require_own_devices(ranks({{"a", "1"}, {"a", "2"}, {"b", "1"}}), {2, 2, 2});
  EXPECT_EQ(error_of(ErrorKind::resources,
                     [&] {
                       require_own_devices(ranks({{"a", "1"}, {"a", "2"}, {"a", "1"}, {"a", "2"}}), {2, 2, 2, 2});
                     }),
            "4 ranks on host a but 2 GPUs: start at most 2 ranks there (mpirun -n 2), or run on the host backend");
  EXPECT_EQ(error_of(ErrorKind::resources,
                     [&] {
                       require_own_devices(ranks({{"b", "1"}, {"b", "1"}}), {1, 1});
                     }),
            "2 ranks on host b but 1 GPU: start at most 1 rank there (mpirun -n 1), or run on the host backend");
  const std::string message = error_of(ErrorKind::resources, [&] {
    require_own_devices(ranks({{"a", "1"}, {"a", "1"}}), {2, 2});
  });
  EXPECT_NE(message.find("ranks 0 and 1 on host a would share GPU pci 1"), std::string::npos) << message;
}

TEST(Placement, ThreadsAreSharedOnlyWhereCpusAre) {
  EXPECT_EQ(threads_for_rank({{0xFF}}, 0, 8), 8);
  EXPECT_EQ(threads_for_rank({{0xFF}, {0xFF}}, 1, 8), 4);
  EXPECT_EQ(threads_for_rank({{0x0F}, {0xF0}}, 1, 4), 4);  // bound: each has its own four
  EXPECT_EQ(threads_for_rank({{0xFF}, {0xFF}}, 0, 2), 1);  // a quota of two cores for both
  EXPECT_EQ(threads_for_rank({{0x1}, {0x1}, {0x1}}, 2, 1), 1);
  EXPECT_EQ(threads_for_rank({{0}}, 0, 1), 1);
  EXPECT_EQ(cores_of_ranks({{0xFF}}, 0, 8), 8);
  EXPECT_EQ(cores_of_ranks({{0x0F}, {0x1E}}, 1, 4), 5);  // cores 0 to 4
  EXPECT_EQ(cores_of_ranks({{0xFF}, {0xFF}}, 0, 2), 2);  // a quota
  EXPECT_EQ(cores_of_ranks({{0}}, 0, 1), 1);
}

TEST(Nccl, AbsentIsRefusedWithTheRemedy) {
  if (built_with_nccl()) GTEST_SKIP() << "this build has NCCL";
  const std::string message = error_of(ErrorKind::resources, [] { NcclCommunicator(world(), Device{Backend::cuda, 0}); });
  EXPECT_EQ(setting_of([] { NcclCommunicator(world(), Device{Backend::cuda, 0}); }), "backend");
  EXPECT_NE(message.find("libnccl-dev"), std::string::npos) << message;
  EXPECT_NE(message.find("on the host backend"), std::string::npos) << message;
  EXPECT_EQ(nccl_version(), "");
}

TEST(Nccl, IsLoadedWithoutAGpu) {
  if (!built_with_nccl()) GTEST_SKIP() << "this build has no NCCL";
  EXPECT_NE(nccl_version(), "");
  EXPECT_EQ(nccl_version().substr(0, 2), nccl_version_of_build().substr(0, 2));
}

}  // namespace
}  // namespace shardmat
