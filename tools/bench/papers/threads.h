// Paper 3, Okada, Okamoto and Imamura: threads a row (NT) of CRS by the formula and by measuring 1 … 32, and the product of
// sorted rows on several ranks.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "runtime/context/context.h"
#include "tools/bench/papers/paper.h"

namespace shardmat::tools {

constexpr std::array<int, 6> kThreadsPerRow{1, 2, 4, 8, 16, 32};
/// The text sorts matrices with a long longest row; it names no bound, this one is ours.
constexpr double kUnevenRows = 4;

class ThreadsPerRow final : public Paper {
 public:
  ThreadsPerRow();
  void measure(PaperBench& bench, Trial& trial, const Subject& subject) override;
  /// paper_3 (the formula's loss), paper_3_threads (every NT).
  Tables tables() const override { return {{"paper_3", table_}, {"paper_3_threads", sweep_}}; }

 private:
  ResultTable table_, sweep_;
};

/// The text's procedure on the ranks of a job: rows sorted by nonzeros, cut where the parts have equal nonzeros, multiplied,
/// y brought back to the order of the rows on every rank. And the same without sorting.
class SortedOnRanks {
 public:
  SortedOnRanks();

  /// The median seconds of each phase on the slowest rank, and of all together.
  struct Phases {
    double product = 0, gather = 0, restore = 0, whole = 0;
    int threads_per_row = 0;       ///< of rank 0
    std::vector<double> products;  ///< seconds on each rank
    bool right = true;
  };
  /// Collective over `all`. Measures on 1, 2, 4 … and all ranks; ranks beyond wait. `rows`: the whole matrix, on every rank.
  /// Only rank 0 has the table and knows which results were wrong.
  void measure(Communicator& all, Backend backend, int repetitions, const NamedMatrix& matrix, const HostCsr& rows,
               ValueType type);
  /// paper_3_ranks (the best NT against sorted rows), paper_3_ranks_threads (every NT, on every rank).
  Paper::Tables tables() const { return {{"paper_3_ranks", table_}, {"paper_3_ranks_threads", sweep_}}; }
  /// Matrices whose product was wrong.
  const std::set<std::string>& wrong() const { return wrong_; }

 private:
  /// `all`: of each of kThreadsPerRow. `formula`: the NT of each rank by the formula.
  void add_sweep(const std::vector<Cell>& subject, std::string_view order, const std::vector<Phases>& all,
                 const std::vector<int>& formula);

  ResultTable table_, sweep_;
  std::set<std::string> wrong_;
};

/// The rows of `matrix` in another order: order[new] = old. With order_by_row_length() the longest come first.
HostCsr rows_in_order(const CsrView& matrix, std::span<const std::int64_t> order);

}  // namespace shardmat::tools
