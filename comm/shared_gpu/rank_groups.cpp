#include "comm/shared_gpu/rank_groups.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <numeric>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

/// The same for processes that can share memory by way of /proc: of one start of one machine, in one container.
std::string name_of_host(const Communicator& all) {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::array<char, 64> processes{};
  if (readlink("/proc/self/ns/pid", processes.data(), processes.size() - 1) < 0) processes[0] = '\0';
  return fmt::format("{} {} {}", all.host(), boot, processes.data());
}

/// The devices that this rank sees, by what tells them from all others.
std::string visible_devices(int count) {
  std::string devices;
  for (int i = 0; i < count; ++i) devices += " " + properties(Device{Backend::cuda, i}).uuid;
  return devices;
}

}  // namespace

std::vector<int> owners_of_places(const std::vector<std::string>& place, const std::vector<int>& groups) {
  std::map<std::string, std::vector<int>> ranks_of;
  for (std::size_t rank = 0; rank < place.size(); ++rank) ranks_of[place[rank]].push_back(static_cast<int>(rank));
  std::vector<int> owners(place.size());
  for (const auto& [name, ranks] : ranks_of) {
    const std::int64_t count = std::ssize(ranks);
    const std::int64_t parts = std::min<std::int64_t>(count, groups[static_cast<std::size_t>(ranks.front())]);
    for (std::int64_t part = 0; part < parts; ++part)
      for (std::int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i)
        owners[static_cast<std::size_t>(ranks[static_cast<std::size_t>(i)])] =
            ranks[static_cast<std::size_t>(count * part / parts)];
  }
  return owners;
}

std::vector<int> owners_of_ranks(Communicator& all, BackendChoice backend, const GroupChoice& choice) {
  std::vector<int> itself(static_cast<std::size_t>(all.size()));
  std::iota(itself.begin(), itself.end(), 0);
  const std::vector<GroupChoice> of_all = all.all_gather(choice);
  all.run_agreed([&] {
    if (choice.owners < 0)
      throw Error(ErrorKind::usage, fmt::format("{} owners of rows on a host; there must be 1 or more", choice.owners),
                  "owners");
    for (const GroupChoice& other : of_all)
      if (other.owners != choice.owners || other.feeders != choice.feeders)
        throw Error(ErrorKind::usage, "ranks differ in how many of them own rows; all must give the same", "owners");
  });
  if (!choice.feeders || all.size() == 1) return itself;
  const int count = all.run_agreed([&] { return backend == BackendChoice::host ? 0 : cuda_device_count(); });
  const bool on_gpus = all.all_reduce(count, Reduction::min) > 0;
  if (!on_gpus && choice.owners == 0) return itself;  // on the host; or placing the ranks says which of them has no GPU
  all.run_agreed([&] {
    if (on_gpus && choice.owners > 0)
      throw Error(ErrorKind::usage,
                  "the number of owners counts on the host backend; each GPU has one owner. Leave it out, or run on the "
                  "host backend",
                  "owners");
  });
  const std::string devices = all.run_agreed([&] { return visible_devices(count); });
  const std::vector<std::string> places = all.all_gather(name_of_host(all) + devices);
  return owners_of_places(places, all.all_gather(on_gpus ? count : choice.owners));
}

}  // namespace shardmat
