// What a check is. It looks at this rank's host, judges what all ranks saw, and shows it.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/timer.h"
#include "runtime/doctor/doctor.h"
#include "runtime/doctor/host_files.h"

namespace shardmat::doctor {

using Json = nlohmann::ordered_json;
using Findings = std::vector<Finding>;
using Rows = std::vector<std::pair<std::string, std::string>>;

/// Until when an examination measures. All of its measurements share one.
class Deadline {
 public:
  explicit Deadline(double seconds) : seconds_(seconds) {}
  double left() const { return std::max(0.0, seconds_ - timer_.seconds()); }
  bool is_over() const { return left() == 0; }
  /// Half of the time that is left, for one measurement of two.
  Deadline half() const { return Deadline(left() / 2); }

 private:
  Timer timer_;
  double seconds_;
};

/// Where a rank looks from.
struct Viewpoint {
  HostFiles files;
  const Options& options;
  int rank = 0, ranks = 1;
  int local_rank = 0;
  Deadline deadline{options.seconds};
  bool is_real() const { return files.root().empty(); }  ///< false: a folder of a test stands for this host
};

/// What all ranks saw.
class Gathered {
 public:
  struct Rank {
    std::string host;
    Json facts;  ///< by the names of the checks
  };
  struct Host {
    std::string name;
    std::vector<int> ranks;
  };
  explicit Gathered(std::vector<Rank> ranks);

  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<Host>& hosts() const { return hosts_; }
  const std::string& host(int rank) const { return ranks_[static_cast<std::size_t>(rank)].host; }
  /// What a check saw on a rank; an empty object if it did not look.
  const Json& facts(int rank, const char* check) const;
  const Json& facts(int rank) const { return ranks_[static_cast<std::size_t>(rank)].facts; }
  /// A rank's position among the ranks of its host.
  int local_rank(int rank) const;

 private:
  std::vector<Rank> ranks_;
  std::vector<Host> hosts_;
};

struct Check {
  const char* name;
  const char* title;
  /// Looks at this rank's host, alone. Returns an object. Null: the check only measures.
  Json (*look)(const Viewpoint&) = nullptr;
  /// Collective: measures with the other ranks. What it returns joins what look() saw. May be null. Runs only if asked for.
  Json (*measure)(Communicator&, const Viewpoint&) = nullptr;
  void (*judge)(const Gathered&, Findings&);
  void (*show)(const Gathered&, Rows&);
  bool is_quick = true;  ///< look() takes no time; false: it runs only if measurements are asked for
};

/// The field of a fact, or `otherwise` if it is not there, or null.
template <class T>
T get(const Json& facts, const char* key, T otherwise) {
  const auto found = facts.find(key);
  return found == facts.end() || found->is_null() ? otherwise : found->template get<T>();
}

/// An object of texts; empty if it is not there.
inline std::map<std::string, std::string> texts(const Json& facts, const char* key) {
  return get(facts, key, std::map<std::string, std::string>());
}

/// "rank 3", "ranks 0-2,5".
std::string ranks_text(const std::vector<int>& ranks);
/// value(rank) once if all ranks have the same, else each value with its ranks. Empty values are left out.
std::string by_rank(const Gathered& all, const std::function<std::string(int rank)>& value);
/// The same of hosts: value(rank) of the first rank of each.
std::string by_host(const Gathered& all, const std::function<std::string(int rank)>& value);
/// " on host a", or nothing if there is one host.
std::string on_host(const Gathered& all, const std::string& host);

}  // namespace shardmat::doctor
