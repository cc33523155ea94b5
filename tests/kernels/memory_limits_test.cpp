#include "kernels/base/memory_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "kernels/base/cgroup_memory.h"
#include "kernels/base/error.h"

namespace shardmat {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
constexpr const char* kUnlimited1 = "9223372036854771712\n";  // as version 1 writes it

/// A folder that stands for /, with what a kernel shows in it.
class Machine : public testing::Test {
 protected:
  Machine() : root_(std::filesystem::temp_directory_path() / ("memory_limits_" + std::to_string(getpid()))) {
    write("/proc/meminfo", "MemTotal:       32000000 kB\nMemFree:         9000000 kB\nMemAvailable:   16000000 kB\n");
  }
  ~Machine() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_.string() + path).substr(0, (root_.string() + path).rfind('/')));
    std::ofstream(root_.string() + path) << text;
  }
  void cgroups(const std::string& lines) { write("/proc/self/cgroup", lines); }
  void mounts(const std::string& lines) {
    write("/proc/self/mountinfo",
          "22 1 259:2 / / rw shared:1 - ext4 /dev/root rw\n26 22 0:24 / /sys rw shared:7 - sysfs sysfs rw\n" + lines);
  }
  void version2(const std::string& folder, const std::string& limit, std::int64_t used, std::int64_t inactive_file = 0) {
    write(folder + "/memory.max", limit + "\n");
    write(folder + "/memory.current", std::to_string(used) + "\n");
    write(folder + "/memory.stat", "anon 5\nactive_file 777\ninactive_file " + std::to_string(inactive_file) + "\n");
  }
  void version1(const std::string& folder, const std::string& limit, std::int64_t used, std::int64_t inactive_file = 0) {
    write(folder + "/memory.limit_in_bytes", limit);
    write(folder + "/memory.usage_in_bytes", std::to_string(used) + "\n");
    write(folder + "/memory.use_hierarchy", "1\n");
    write(folder + "/memory.stat",
          "cache 777\ninactive_file 3\nhierarchical_memory_limit 9223372036854771712\ntotal_inactive_file " +
              std::to_string(inactive_file) + "\n");
  }
  std::int64_t available() const { return available_in_cgroups(root_.string()); }

  const std::filesystem::path root_;
  static constexpr const char* kMount2 = "35 26 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
  static constexpr const char* kMount1 = "42 32 0:37 / /sys/fs/cgroup/memory rw shared:16 - cgroup cgroup rw,memory\n";
};

TEST_F(Machine, WithoutCgroups) {
  EXPECT_EQ(available(), kNone);
  EXPECT_EQ(available_on_host(root_.string()), std::int64_t{16000000} * 1024);
  cgroups("0::/\n");
  mounts("");
  EXPECT_EQ(available(), kNone);
  mounts(kMount2);  // the root of version 2 has no limit of its own
  EXPECT_EQ(available(), kNone);
}

TEST_F(Machine, SystemdSlicesOfVersion2) {
  cgroups("0::/user.slice/user-1000.slice/session-3.scope\n");
  mounts(kMount2);
  const std::string base = "/sys/fs/cgroup/user.slice";
  version2(base + "/user-1000.slice/session-3.scope", "max", 100);
  version2(base + "/user-1000.slice", "5000000", 1000000, 200000);
  version2(base, "max", 2000000);
  EXPECT_EQ(available(), 4200000);
  version2(base, "5500000", 2000000);  // less room than below
  EXPECT_EQ(available(), 3500000);
  version2(base + "/user-1000.slice/session-3.scope", "3000000", 100);
  EXPECT_EQ(available(), 2999900);
  EXPECT_EQ(available_on_host(root_.string()), 2999900);
}

TEST_F(Machine, HighIsNoLimit) {
  cgroups("0::/a\n");
  mounts(kMount2);
  version2("/sys/fs/cgroup/a", "max", 100);
  write("/sys/fs/cgroup/a/memory.high", "50\n");
  EXPECT_EQ(available(), kNone);
}

TEST_F(Machine, UseBeyondTheLimitLeavesNothing) {
  cgroups("0::/a\n");
  mounts(kMount2);
  version2("/sys/fs/cgroup/a", "1000", 1500, 100);
  EXPECT_EQ(available(), 0);
  version2("/sys/fs/cgroup/a", "1000", 500, 800);  // read at different moments: never more than the limit
  EXPECT_EQ(available(), 1000);
}

TEST_F(Machine, ContainerOfVersion2InItsNamespace) {
  cgroups("0::/\n");
  mounts(kMount2);
  version2("/sys/fs/cgroup", "2147483648", 1073741824);
  EXPECT_EQ(available(), 1073741824);
}

TEST_F(Machine, ContainerOfVersion2WithTheHostsNames) {
  cgroups("0::/system.slice/docker-abc.scope\n");
  mounts("35 26 0:30 /system.slice/docker-abc.scope /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n");
  version2("/sys/fs/cgroup", "2000", 500);
  EXPECT_EQ(available(), 1500);
}

TEST_F(Machine, SlurmOfVersion1) {
  cgroups("11:devices:/slurm\n4:memory:/slurm/uid_1000/job_5/step_0/task_0\n1:name=systemd:/system.slice/slurmd.service\n");
  mounts("33 32 0:28 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n" + std::string(kMount1));
  const std::string base = "/sys/fs/cgroup/memory";
  version1(base, kUnlimited1, 9000000);
  version1(base + "/slurm", kUnlimited1, 8000000);
  version1(base + "/slurm/uid_1000", kUnlimited1, 7000000);
  version1(base + "/slurm/uid_1000/job_5", "4000000\n", 1500000, 500000);
  version1(base + "/slurm/uid_1000/job_5/step_0", "4000000\n", 1000000);
  version1(base + "/slurm/uid_1000/job_5/step_0/task_0", kUnlimited1, 100);
  EXPECT_EQ(available(), 3000000);
}

TEST_F(Machine, DockerOfVersion1) {
  cgroups("9:cpu,cpuacct:/docker/abc\n5:hugetlb,memory:/docker/abc/inner\n");
  mounts("42 32 0:37 /docker/abc /sys/fs/cgroup/memory\\040all ro - cgroup cgroup rw,hugetlb,memory\n");
  version1("/sys/fs/cgroup/memory all", "9000\n", 2000, 1000);
  version1("/sys/fs/cgroup/memory all/inner", kUnlimited1, 10);
  EXPECT_EQ(available(), 8000);
  version1("/sys/fs/cgroup/memory all/inner", "500\n", 10);
  EXPECT_EQ(available(), 490);
}

TEST_F(Machine, ContainersThatDoNotShowTheirCgroup) {
  mounts("42 32 0:37 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  version1("/sys/fs/cgroup/memory", "9000\n", 2000);
  for (const char* path : {"/", "/docker/abcdef", "/../other", "/kubepods/pod1"}) {
    cgroups(std::string("4:memory:") + path + "\n");
    EXPECT_EQ(available(), 7000) << path;
  }
  mounts(kMount1);
  cgroups("4:memory:/kubepods/pod1\n");  // mounted whole, but the folder is hidden
  EXPECT_EQ(available(), 7000);
}

TEST_F(Machine, Version1TellsOfLimitsThatAreHidden) {
  cgroups("4:memory:/docker/abc\n");
  mounts("42 32 0:37 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  version1("/sys/fs/cgroup/memory", kUnlimited1, 2000);
  write("/sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 6000\ntotal_inactive_file 0\n");
  EXPECT_EQ(available(), 4000);
}

TEST_F(Machine, Version1WithoutHierarchy) {
  cgroups("4:memory:/a/b\n");
  mounts(kMount1);
  version1("/sys/fs/cgroup/memory/a/b", "9000\n", 1000);
  version1("/sys/fs/cgroup/memory/a", "2000\n", 1000);
  EXPECT_EQ(available(), 1000);
  write("/sys/fs/cgroup/memory/a/memory.use_hierarchy", "0\n");
  EXPECT_EQ(available(), 8000);
}

TEST_F(Machine, Hybrid) {
  cgroups("4:memory:/app\n1:name=systemd:/init.scope\n0::/init.scope\n");
  mounts("41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" + std::string(kMount1));
  write("/sys/fs/cgroup/unified/init.scope/cgroup.procs", "1\n");  // the controller is with version 1
  version1("/sys/fs/cgroup/memory", kUnlimited1, 100);
  version1("/sys/fs/cgroup/memory/app", "9000\n", 1000);
  EXPECT_EQ(available(), 8000);
}

TEST_F(Machine, OfAVirtualMachineThatGrows) {
  cgroups("0::/a\n");
  mounts(kMount2);
  version2("/sys/fs/cgroup/a", "64000000000", 1000000000);
  EXPECT_EQ(available_on_host(root_.string()), 63000000000);
}

TEST_F(Machine, OddFilesAreNoLimits) {
  cgroups("\n:\n4:memory\n0::\n");
  mounts("\n-\n35 26 0:30 / /sys/fs/cgroup rw - cgroup2\n35 26 0:30 / /sys/fs/cgroup\\04 rw - cgroup2 a b\n");
  EXPECT_EQ(available(), kNone);
}

TEST(MemoryLimits, LimitsOfTheProcess) {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit before{};
    ASSERT_EQ(getrlimit(resource, &before), 0);
    const std::int64_t more = std::int64_t{1} << 29;
    std::int64_t used = 0;
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (word == (resource == RLIMIT_AS ? "VmSize:" : "VmData:")) status >> used;
    rlimit limit = before;
    limit.rlim_cur = static_cast<rlim_t>(used * 1024 + more);
    ASSERT_EQ(setrlimit(resource, &limit), 0);
    share_host_memory(4);  // this limit is not shared
    const std::int64_t available = available_host_memory(), share = share_of_host_memory();
    const auto need = [&] { require_host_memory(2 * more, "the matrix"); };
    EXPECT_THROW(need(), Error);
    share_host_memory(1);
    setrlimit(resource, &before);
    EXPECT_LE(available, more);
    EXPECT_GT(available, more / 2);
    EXPECT_LE(share, more);
    EXPECT_GT(share, more / 2);
  }
}

}  // namespace
}  // namespace shardmat
