// In which order work on the same things may begin. Each piece of work claims matrices and vectors, to read or to write
// them, in the order of arrival. It may begin once no earlier work waits that writes what it claims, or claims what it
// writes.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

namespace shardmat::serve {

struct Claim {
  enum class Kind { matrix, vector };
  Kind kind = Kind::matrix;
  std::uint64_t number = 0;
  bool writes = false;
};

class Claims {
 public:
  /// REQUIRES: `work` is larger than all before. No thing is claimed twice by one piece of work.
  void add(std::uint64_t work, std::vector<Claim> claims);
  /// The work has begun, or is given up. Ignores work that is unknown.
  void remove(std::uint64_t work);
  /// True for work that claims nothing.
  bool may_begin(std::uint64_t work) const;

 private:
  struct Waiting {
    std::set<std::uint64_t> all, writers;
  };
  using Thing = std::pair<Claim::Kind, std::uint64_t>;

  std::unordered_map<std::uint64_t, std::vector<Claim>> claims_;  ///< by work
  std::map<Thing, Waiting> waiting_;
};

}  // namespace shardmat::serve
