// Limits of the process (ulimit).
#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/text.h"
#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {
namespace {

constexpr double kDefaultLocked = 8 << 20;  // of Linux since 5.16
constexpr double kLeastFiles = 256;

struct Limit {
  const char *name, *line;  ///< the field, and the words in /proc/self/limits
};
constexpr Limit kAll[] = {{"locked_bytes", "Max locked memory"},
                          {"address_space_bytes", "Max address space"},
                          {"data_bytes", "Max data size"},
                          {"open_files", "Max open files"},
                          {"processes", "Max processes"}};

/// The soft limits; none for those that are unlimited.
Json look_at_limits(const Viewpoint& viewpoint) {
  Json facts = Json::object();
  if (!viewpoint.files.exists("/proc/self/limits")) return {{"not_looked_at", "there is no /proc/self/limits"}};
  for (const Limit& limit : kAll) {
    const std::vector<std::string> words = words_of(viewpoint.files.behind("/proc/self/limits", limit.line));
    if (!words.empty() && words.front() != "unlimited") facts[limit.name] = std::atoll(words.front().c_str());
  }
  return facts;
}

/// Ranks below their limit, and the least of theirs.
struct Below {
  std::vector<int> ranks;
  double least = 0;
};
Below below(const Gathered& all, const char* name, const std::function<double(int rank)>& limit) {
  Below found;
  for (int rank = 0; rank < all.size(); ++rank) {
    const double value = get(all.facts(rank, "limits"), name, 1e30);
    if (value >= limit(rank)) continue;
    found.least = found.ranks.empty() ? value : std::min(found.least, value);
    found.ranks.push_back(rank);
  }
  return found;
}

bool has_rdma(const Gathered& all, int rank) { return !get(all.facts(rank, "network"), "rdma", Json::array()).empty(); }

void judge_limits(const Gathered& all, Findings& findings) {
  const Below locked = below(all, "locked_bytes", [&](int rank) {
    return has_rdma(all, rank) ? get(all.facts(rank, "memory"), "total_bytes", 0.0) / 2 : kDefaultLocked;
  });
  if (!locked.ranks.empty())
    findings.push_back({"low_memlock",
                        fmt::format("{} may lock {} of memory{}", ranks_text(locked.ranks), human_bytes(locked.least),
                                    has_rdma(all, locked.ranks.front()) ? ", and there is an RDMA network"
                                                                        : ", less than Linux allows by default (8 MiB)"),
                        "RDMA networks, UCX and NCCL lock the memory that they send from; without it they fail, or copy "
                        "through slower paths.",
                        "ulimit -l unlimited; for good in /etc/security/limits.d (memlock), LimitMEMLOCK=infinity for "
                        "slurmd, docker's --ulimit memlock=-1."});
  const Below files = below(all, "open_files", [](int) { return kLeastFiles; });
  if (!files.ranks.empty())
    findings.push_back({"few_open_files", fmt::format("{} may open {:.0f} files", ranks_text(files.ranks), files.least),
                        "MPI, NCCL and the service open sockets to other ranks, and CUDA opens files for each GPU.",
                        "ulimit -n 65536 before mpirun, or LimitNOFILE= of the daemon that starts the ranks."});
  const Below addresses = below(all, "address_space_bytes", [](int) { return 1e30; });
  if (!addresses.ranks.empty())
    findings.push_back(
        {"address_space_limit",
         fmt::format("{} may map {} of addresses (ulimit -v)", ranks_text(addresses.ranks), human_bytes(addresses.least)),
         "CUDA maps the memory of all GPUs and of the host, and MPI and files are mapped, too: more addresses than memory.",
         "ulimit -v unlimited; cgroups limit the memory that is used."});
}

void show_limits(const Gathered& all, Rows& rows) {
  const auto row = [&](const char* label, const char* name, std::string (*text)(double)) {
    rows.emplace_back(label, by_rank(all, [&](int rank) {
                        const Json& facts = all.facts(rank, "limits");
                        return facts.contains(name) ? text(get(facts, name, 0.0)) : std::string("unlimited");
                      }));
  };
  row("locked memory", "locked_bytes", human_bytes);
  row("addresses", "address_space_bytes", human_bytes);
  row("open files", "open_files", [](double count) { return human_count(static_cast<std::int64_t>(count)); });
}

}  // namespace

const Check kLimits{.name = "limits", .title = "Limits", .look = look_at_limits, .judge = judge_limits, .show = show_limits};

}  // namespace shardmat::doctor
