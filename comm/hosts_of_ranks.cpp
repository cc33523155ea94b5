// Which ranks share a host: Communicator::find_local_rank().
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"

namespace shardmat {
namespace {

/// The value of the first of these environment variables that is a number >= 0, else -1.
int first_number(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') continue;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (*end == '\0' && value >= 0 && value < (1 << 20)) return static_cast<int>(value);
  }
  return -1;
}

/// Other after each start of a machine, and on each machine; empty if that is not to be known.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

void Communicator::find_local_rank() {
  // A launcher inside a Slurm allocation passes the batch script's SLURM_LOCALID=0 on to all ranks, so a
  // claim counts only if (host, local rank) is unique.
  int world_size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  int world_to_this = MPI_UNEQUAL;
  if (world_size == size_) MPI_Comm_compare(comm_, MPI_COMM_WORLD, &world_to_this);
  const bool spans_world = world_to_this == MPI_IDENT || world_to_this == MPI_CONGRUENT;
  const int claimed = spans_world ? first_number({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                                  "MV2_COMM_WORLD_LOCAL_RANK", "PMI_LOCAL_RANK", "SLURM_LOCALID"})
                                  : -1;
  const std::vector<std::string> hosts = all_gather(host_);
  const std::vector<int> claims = all_gather(claimed);
  std::vector<std::pair<std::string, int>> places;
  for (std::size_t r = 0; r < hosts.size(); ++r) places.emplace_back(hosts[r], claims[r]);
  std::sort(places.begin(), places.end());
  const bool consistent = *std::min_element(claims.begin(), claims.end()) >= 0 &&
                          std::adjacent_find(places.begin(), places.end()) == places.end();
  if (consistent) {
    local_rank_ = claimed;
    local_size_ =
        first_number({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE"});
    if (local_size_ <= local_rank_)
      local_size_ = std::max(local_rank_ + 1, static_cast<int>(std::count(hosts.begin(), hosts.end(), host_)));
    number_hosts(hosts);
    return;
  }
  // Not by MPI_Comm_split_type(), which has no deadline. Machines may bear the same name, so each boot counts as a host.
  const std::vector<std::string> boots = all_gather(boot_id());
  std::vector<std::string> names;
  for (std::size_t r = 0; r < hosts.size(); ++r) names.push_back(hosts[r] + " " + boots[r]);
  number_hosts(names);
  local_rank_ = static_cast<int>(std::count(host_of_.begin(), host_of_.begin() + rank_, host_of(rank_)));
  local_size_ = static_cast<int>(std::count(host_of_.begin(), host_of_.end(), host_of(rank_)));
}

void Communicator::number_hosts(const std::vector<std::string>& names) {
  std::map<std::string, int> numbers;
  host_of_.clear();
  for (const std::string& name : names)
    host_of_.push_back(numbers.try_emplace(name, static_cast<int>(numbers.size())).first->second);
  hosts_ = static_cast<int>(numbers.size());
}

}  // namespace shardmat
