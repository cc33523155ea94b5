// The doctor on ranks whose /proc and /sys are folders: two hosts where there is one.
#include "runtime/doctor/doctor.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/doctor/gpu_list.h"
#include "runtime/doctor/host_files.h"
#include "runtime/doctor/run_facts.h"
#include "tests/support/world.h"

namespace shardmat::doctor {
namespace {

/// What `work` returns in a process of a user who may not open everything, as root may.
bool as_user(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit((getuid() != 0 || setresuid(65534, 65534, 65534) == 0) && work() ? 0 : 1);
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Each rank's folder that stands for /, of a host without faults.
class DoctorOnRanks : public testing::Test {
 protected:
  DoctorOnRanks()
      : folder_(
            world().broadcast((std::filesystem::temp_directory_path() / ("doctor_" + std::to_string(getpid()))).string())) {
    write("/proc/sys/kernel/hostname", "host" + std::to_string(world().rank() % 2));
    write("/proc/meminfo", "MemTotal: 64000000 kB\nMemAvailable: 60000000 kB\nHugePages_Total: 0\n");
    write("/proc/self/status", "Name: x\nCpus_allowed_list:\t0-63\nMems_allowed_list:\t0\n");
    write("/proc/self/limits", "Max locked memory         unlimited            unlimited            bytes     \n");
    write("/sys/devices/system/cpu/online", "0-63\n");
    write("/sys/devices/system/node/online", "0\n");
    write("/sys/devices/system/node/node0/cpulist", "0-63\n");
    write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    write("/sys/class/rtc/rtc0/since_epoch", "1700000000\n");
    maps("40.30.4");
    std::filesystem::create_directories(root() + "/dev/shm");
    world().barrier();
  }
  ~DoctorOnRanks() override {
    world().barrier();
    std::filesystem::remove_all(root());
  }

  std::string root() const { return folder_ + "_" + std::to_string(world().rank()); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root() + path).substr(0, (root() + path).rfind('/')));
    std::ofstream(root() + path) << text;
  }
  void maps(const std::string& version) const {
    write("/proc/self/maps", "7f00-7f01 r-xp 0 08:01 1  /usr/lib/libmpi.so." + version +
                                 "\n7f02-7f03 rw-p 0 00:00 0\n7f04-7f05 r-xp 0 08:01 2  /usr/lib/libother.so.1\n");
  }
  /// Two GPUs, 3 and 8 by their device files.
  void write_gpus() const {
    for (const std::string id : {"0000:3b:00.0", "0000:86:00.0"}) {
      write("/proc/driver/nvidia/gpus/" + id + "/information", "Model: \t\t NVIDIA H200\nIRQ:   3\nGPU UUID: \t GPU-" +
                                                                   id.substr(5, 1) + "f2a\nBus Location: \t " + id +
                                                                   "\nDevice Minor: \t " + id.substr(5, 1) + "\n");
      write("/dev/nvidia" + id.substr(5, 1), "");
      chmod((root() + "/dev/nvidia" + id.substr(5, 1)).c_str(), 0666);
    }
  }
  Report examined(bool measure = true) const {
    Options options;
    options.root = folder_ + "_{rank}";
    options.measure = measure;
    options.seconds = 0.2;
    return examine(world(), options);
  }
  /// Names of the findings, without those of this machine: its variables, and its links, which a loaded machine slows.
  static std::vector<std::string> names(const Report& report) {
    std::vector<std::string> found;
    for (const Finding& finding : report.findings)
      if (finding.name.find("settings") == std::string::npos && finding.name != "slow_link") found.push_back(finding.name);
    return found;
  }
  bool on_second_host() const { return world().rank() % 2 == 1; }

  const std::string folder_;
};

using Names = std::vector<std::string>;

TEST_F(DoctorOnRanks, FactsOfARunTellWhereEachRankMeasures) {
  write("/proc/self/status", "Cpus_allowed_list:\t4-5\n");
  write("/proc/cpuinfo", "processor : 3\ncpu MHz : 900\nprocessor : 4\ncpu MHz : 2100\nprocessor : 5\ncpu MHz : 2200.5\n");
  write("/sys/class/net/eth0/operstate", "up\n");
  write("/sys/class/net/eth0/speed", "10000\n");
  write("/sys/class/net/eth0/device/numa_node", "0\n");
  write("/sys/class/net/eth1/operstate", "down\n");
  write("/sys/class/net/eth1/device/numa_node", "0\n");
  setenv("SLURM_JOB_ID", "4711", 1);
  setenv("SLURM_ARRAY_TASK_ID", "3", 1);
  setenv("UCX_TLS", "tcp", 1);
  const Json facts = Json::parse(facts_of_run(world(), root()));
  EXPECT_EQ(facts["job"], "Slurm 4711, task 3");
  EXPECT_EQ(facts["ranks"], world().size());
  EXPECT_EQ(facts["binding"].size(), std::min(world().size(), 2));  // two hosts, the same cores
  EXPECT_EQ(facts["binding"][0]["cores"], "4-5");
  EXPECT_EQ(facts["binding"][0]["host"], "host0");
  std::string even;
  for (int rank = 0; rank < world().size(); rank += 2) even += (even.empty() ? "" : ",") + std::to_string(rank);
  EXPECT_EQ(facts["binding"][0]["ranks"], even);
  EXPECT_EQ(facts["network"], "eth0 10 Gb/s");
  EXPECT_EQ(facts["transport_settings"]["UCX_TLS"], "tcp");
  EXPECT_EQ(facts["cpu_mhz"]["min"], 2100);
  EXPECT_EQ(facts["cpu_mhz"]["max"], 2200.5);
  EXPECT_EQ(facts["load"]["busy_cores"], 0);  // this host has no /proc/stat
  EXPECT_FALSE(facts.contains("gpus"));
  for (const char* name : {"SLURM_JOB_ID", "SLURM_ARRAY_TASK_ID", "UCX_TLS"}) unsetenv(name);
  write("/sys/devices/system/cpu/cpu5/cpufreq/scaling_cur_freq", "3300000\n");
  world().barrier();
  const Json again = Json::parse(facts_of_run(world(), root()));
  EXPECT_EQ(again["cpu_mhz"]["min"], 3300);
  EXPECT_EQ(again.contains("job"), !job_of_environment().empty());
}

TEST_F(DoctorOnRanks, FindsNothingWhereAllIsSound) {
  const Report report = examined();
  EXPECT_EQ(names(report), Names()) << to_text(report);
  EXPECT_EQ(report.ranks, world().size());
  const auto json = nlohmann::json::parse(to_json(report));
  ASSERT_EQ(std::ssize(json["facts"]), world().size());
  EXPECT_EQ(json["facts"][0]["host"], "host0");
  EXPECT_EQ(json["facts"][0]["libraries"]["loaded"].dump(), R"({"libmpi":"libmpi.so.40.30.4"})");
  std::int64_t pairs = 0;
  for (const auto& rank : json["facts"])
    if (rank.contains("links") && rank["links"].contains("pairs"))
      for (const auto& pair : rank["links"]["pairs"]) {
        ++pairs;
        EXPECT_GT(pair["latency_s"], 0);
        EXPECT_GT(pair["bytes_per_s"], 0);
      }
  const std::int64_t all = std::int64_t{world().size()} * (world().size() - 1) / 2;
  EXPECT_EQ(pairs + (all == 0 ? 0 : json["facts"][0]["links"]["pairs_left_out"].get<std::int64_t>()), all);
}

TEST_F(DoctorOnRanks, ComparesHosts) {
  if (on_second_host()) {
    maps("40.30.5");
    write("/sys/class/rtc/rtc0/since_epoch", "1700000003\n");
    write("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  }
  const Names expected = world().size() == 1 ? Names() : Names{"no_huge_pages", "different_libraries", "clocks_apart"};
  const Report report = examined();
  EXPECT_EQ(names(report), expected) << to_text(report);
  for (const Finding& finding : report.findings) {
    if (finding.name == "clocks_apart") {
      EXPECT_EQ(finding.what, "the clock of host host1 is 3.00 s ahead of that of host host0");
    } else if (finding.name == "no_huge_pages") {
      EXPECT_NE(finding.what.find("host1"), std::string::npos) << finding.what;
    }
  }
  const Report quick = examined(false);
  EXPECT_EQ(names(quick), world().size() == 1 ? Names() : (Names{"no_huge_pages", "different_libraries"}));
  EXPECT_EQ(to_json(quick).find("\"links\""), std::string::npos);
}

TEST_F(DoctorOnRanks, ReadsNestedLimits) {
  write("/proc/self/cgroup", "0::/job/step\n");
  write("/proc/self/mountinfo", "35 26 0:30 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n");
  write("/sys/fs/cgroup/job/step/memory.max", "max\n");
  write("/sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/job/memory.max", "2000000000\n");
  write("/sys/fs/cgroup/job/memory.current", "1000000000\n");
  write("/sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  const Report report = examined(false);
  const int hosts = std::min(world().size(), 2);
  Names found = names(report);
  EXPECT_EQ(std::count(found.begin(), found.end(), "nested_memory_limit"), hosts);
  EXPECT_EQ(std::count(found.begin(), found.end(), "fewer_cores_than_threads"), hosts);
  EXPECT_NE(report.findings.front().what.find("cgroup /sys/fs/cgroup/job allows 0.5 cores"), std::string::npos)
      << report.findings.front().what;
}

TEST_F(DoctorOnRanks, SaysWhatItCannotLookAt) {
  std::filesystem::remove_all(root() + "/sys/kernel");
  std::filesystem::remove_all(root() + "/dev");
  std::filesystem::remove_all(root() + "/proc/self/limits");
  const Report report = examined(false);
  EXPECT_EQ(names(report), Names());
  const std::string text = to_text(report);
  for (const char* what :
       {"transparent_hugepage/enabled cannot be read", "/dev/shm: No such file", "there is no /proc/self/limits"})
    EXPECT_NE(text.find(what), std::string::npos) << text;
}

TEST_F(DoctorOnRanks, SeesGpusWithoutCuda) {
  write("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build\n");
  write_gpus();
  const HostFiles files(root());
  EXPECT_EQ(driver_version(files), "550.54.15");
  EXPECT_EQ(cuda_of_driver("550.54.15"), 12000);
  EXPECT_EQ(cuda_of_driver("580.65.06"), 13000);
  const Json gpus = gpus_on_host(files);
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[1]["name"], "NVIDIA H200");
  EXPECT_EQ(plain_uuid(gpus[1]["uuid"]), "8f2a");
  EXPECT_EQ(visible_of(gpus, nullptr).size(), 2U);
  EXPECT_EQ(visible_of(gpus, "").size(), 0U);
  EXPECT_EQ(visible_of(gpus, "1")[0]["id"], "0000:86:00.0");
  EXPECT_EQ(visible_of(gpus, "GPU-8,0")[0]["id"], "0000:86:00.0");
  EXPECT_EQ(visible_of(gpus, "0,7,1").size(), 1U) << "CUDA ignores what follows a wrong number";
  EXPECT_TRUE(visible_of(gpus, "MIG-8").is_null());
}

TEST_F(DoctorOnRanks, SeesGpusThatACgroupLeaves) {
  write_gpus();
  chmod((root() + "/dev/nvidia3").c_str(), 0);
  const auto sees = [&](const char* visible, const char* id) {
    return as_user([&] {
      const Json gpus = gpus_on_host(HostFiles(root())), seen = visible_of(gpus, visible);
      const Json expected = id == nullptr ? Json::array() : Json::array({id});
      Json ids = Json::array();
      for (const Json& gpu : seen) ids.push_back(gpu["id"]);
      return gpus.size() == 2 && gpus[0]["usable"] == false && gpus[1]["usable"] == true && ids == expected;
    });
  };
  EXPECT_TRUE(sees(nullptr, "0000:86:00.0"));
  EXPECT_TRUE(sees("0", "0000:86:00.0")) << "Slurm numbers the devices of a job from 0";
  EXPECT_TRUE(sees("1", nullptr));
}

TEST_F(DoctorOnRanks, JudgesNoPlacementOfGpusThatItDoesNotKnow) {
  write_gpus();
  std::filesystem::remove(root() + "/dev/nvidia8");
  EXPECT_TRUE(visible_of(gpus_on_host(HostFiles(root())), nullptr).is_null());
  const Report report = examined(false);
  for (const std::string& name : names(report))
    EXPECT_TRUE(name != "shared_gpu" && name != "hidden_peers" && name != "far_gpu") << name;
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["facts"][0]["gpus"].contains("visible"), false);
  EXPECT_NE(to_text(report).find("only CUDA knows"), std::string::npos) << to_text(report);
}

TEST(HostFiles, ReadLists) {
  EXPECT_EQ(numbers_of_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(numbers_of_list(""), std::vector<int>());
  EXPECT_EQ(list_of_numbers({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(list_of_numbers({}), "");
  EXPECT_EQ(words_of(" a  b "), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace shardmat::doctor
