// Versions of what the ranks run: they should be the same everywhere.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "comm/mpi_library.h"
#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/isa.h"
#include "runtime/doctor/check_list.h"
#include "runtime/doctor/gpu_list.h"

namespace shardmat::doctor {
namespace {

constexpr std::string_view kWatched[] = {"libc.",   "libc-",      "libstdc++.",   "libgomp.",     "libmpi.",    "libmpich.",
                                         "libhdf5", "libnccl.",   "libcudart.",   "libcusparse.", "libcublas.", "libcuda.",
                                         "libucp.", "libfabric.", "libopen-pal.", "libpmix."};

/// File names of the watched libraries that this process has loaded, by name without version.
Json loaded_libraries(const HostFiles& files) {
  std::map<std::string, std::string> found;
  for (const std::string& word : words_of(files.text("/proc/self/maps"))) {
    if (word.front() != '/') continue;
    const std::string file = word.substr(word.rfind('/') + 1);
    if (file.find(".so") == std::string::npos) continue;
    if (std::any_of(std::begin(kWatched), std::end(kWatched),
                    [&](std::string_view name) { return file.rfind(name, 0) == 0; }))
      found[file.substr(0, file.find(".so"))] = file;
  }
  return found;
}

Json look_at_libraries(const Viewpoint& viewpoint) {
  const HostFiles& files = viewpoint.files;
  const std::pair<const char*, std::string> versions[] = {{"shardmat", viewpoint.options.program},
                                                          {"mpi", mpi_library()},
                                                          {"nccl", nccl_version()},
                                                          {"driver", driver_version(files)},
                                                          {"kernel", files.line("/proc/sys/kernel/osrelease")},
                                                          {"instruction_set", std::string(name(best_isa()))}};
  Json facts{{"loaded", loaded_libraries(files)}};
  for (const auto& [what, version] : versions)
    if (!version.empty()) facts[what] = version;
  return facts;
}

std::string version_on(const Gathered& all, int rank, const std::string& name) {
  const Json& facts = all.facts(rank, "libraries");
  const std::map<std::string, std::string> loaded = texts(facts, "loaded");
  const auto file = loaded.find(name);
  return file == loaded.end() ? get<std::string>(facts, name.c_str(), "") : file->second;
}

/// Names that some rank has.
std::set<std::string> library_names(const Gathered& all) {
  std::set<std::string> names{"shardmat", "mpi", "nccl", "driver"};
  for (int rank = 0; rank < all.size(); ++rank)
    for (const auto& [name, file] : texts(all.facts(rank, "libraries"), "loaded")) names.insert(name);
  return names;
}

void judge_libraries(const Gathered& all, Findings& findings) {
  std::string different;
  for (const std::string& name : library_names(all)) {
    std::set<std::string> versions;
    for (int rank = 0; rank < all.size(); ++rank)
      if (const std::string version = version_on(all, rank, name); !version.empty()) versions.insert(version);
    if (versions.size() < 2) continue;
    different += fmt::format("{}{}: {}", different.empty() ? "" : "; ", name,
                             by_rank(all, [&](int rank) { return version_on(all, rank, name); }));
  }
  if (!different.empty())
    findings.push_back({"different_libraries", "ranks run different versions: " + different,
                        "Ranks of different MPI, NCCL or drivers may hang, crash, or fall back to slow paths; different "
                        "math libraries give other bits.",
                        "Use one installation on a file system that all hosts share, one container image, and the same "
                        "LD_LIBRARY_PATH on all ranks."});
  std::set<std::string> sets;
  for (int rank = 0; rank < all.size(); ++rank) sets.insert(version_on(all, rank, "instruction_set"));
  sets.erase("");
  if (sets.size() > 1)
    findings.push_back({"different_cpus",
                        "ranks run on CPUs of different instruction sets: " +
                            by_rank(all, [&](int rank) { return version_on(all, rank, "instruction_set"); }),
                        "All ranks take the instructions that each of them has, so that sums have the same bits.",
                        "Ask the scheduler for hosts of one kind (Slurm's --constraint)."});
}

void show_libraries(const Gathered& all, Rows& rows) {
  for (const auto& [label, name] :
       {std::pair("shardmat", "shardmat"), std::pair("MPI", "mpi"), std::pair("NCCL", "nccl"), std::pair("driver", "driver"),
        std::pair("kernel", "kernel"), std::pair("instructions", "instruction_set")})
    rows.emplace_back(label, by_rank(all, [&, of = name](int rank) { return version_on(all, rank, of); }));
  rows.emplace_back("loaded", by_rank(all, [&](int rank) {
                      std::string text;
                      for (const auto& [name, file] : texts(all.facts(rank, "libraries"), "loaded"))
                        text += (text.empty() ? "" : ", ") + file;
                      return text;
                    }));
}

}  // namespace

const Check kLibraries{
    .name = "libraries", .title = "Libraries", .look = look_at_libraries, .judge = judge_libraries, .show = show_libraries};

}  // namespace shardmat::doctor
