// The whole of `shardmat pagerank` as one call: open, transpose, load, iterate, write, report.
//
// Threads: one thread of each rank; pagerank() is collective.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/placement.h"
#include "partition/readers/input_choices.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/run/product_report.h"
#include "runtime/run/top_entries.h"
#include "runtime/solvers/eigen/pagerank.h"

namespace shardmat {

class Context;

struct PageRankOptions {
  std::string graph;        ///< matrix file or generator specification, see open_matrix(); (i, j): weight of an edge i → j
  InputChoices choices{};   ///< what the user says about its file
  bool unweighted = false;  ///< every stored entry counts as weight 1
  LoadOptions load;         ///< right-hand sides: columns of a file of weights; else 1, and a column for each seed is taken
  PageRankSettings settings;
  std::string seeds;  ///< where walks restart, see read_seeds(); empty: uniform
  BackendChoice backend = BackendChoice::automatic;
  int threads = 0;        ///< host threads of each rank; 0: its share of the cores of its host
  std::int64_t top = 10;  ///< entries of each column in the report
  std::string output;     ///< file for the scores, in the graph's original order; empty = none
  PageRankMonitor monitor;
  std::function<bool()> stop;  ///< see PageRank::run()
};

struct PageRankReport : IterativeReport {
  bool unweighted = false;
  std::string personalisation;      ///< "uniform", "seeds" or the name of a file
  std::vector<std::int64_t> seeds;  ///< of each column; empty unless the personalisation is "seeds"
  std::int64_t dangling = 0;        ///< vertices without weight on outgoing edges
  PageRankSettings settings;
  PageRankResult result;
  std::vector<std::vector<TopEntry>> top;  ///< of each column
};

/// Collective; the report is the same on all ranks. A run that did not converge does not throw: the report says so, and the
/// last scores are written. Any other failure throws the same Error on all ranks.
PageRankReport pagerank(Communicator& communicator, const PageRankOptions& options);
PageRankReport pagerank(Context& context, const PageRankOptions& options);

std::string to_text(const PageRankReport& report);
std::string to_json(const PageRankReport& report);

}  // namespace shardmat
