// Measurements of each pair of ranks.
//
// Threads: one thread of each rank.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "runtime/doctor/check.h"

namespace shardmat::doctor {

/// All pairs (lower, higher) of `ranks` ranks in rounds, in which no rank has two partners.
std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int ranks);

/// What one rank measured with another.
struct Link {
  double latency = 0;           ///< seconds of a message of 8 bytes
  double bytes_per_second = 0;  ///< in one direction
};

/// Measures pairs until rank 0 says that the time is over, at least one step. `at_once`: all pairs of a round concurrently,
/// else one pair at a time. Pairs much slower than most are measured again, alone, and their best figures count. `measure`
/// runs on both ranks of a pair with the number of the partner; what the lower returns counts. Returns "at_once", "pairs"
/// (rank, latency_s, bytes_per_s) with higher partners, and "pairs_left_out". Collective.
Json measure_pairs(Communicator& communicator, const Deadline& deadline, bool at_once,
                   const std::function<Link(int partner)>& measure);

/// Names the links that are much slower than most others between ranks of one host, or of different hosts.
void judge_pairs(const Gathered& all, const char* check, Finding of_slow, Findings& findings);

/// A matrix of few ranks; else least, median and most.
void show_pairs(const Gathered& all, const char* check, Rows& rows);

}  // namespace shardmat::doctor
