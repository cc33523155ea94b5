// Paper 4, Tomimori, Tanabe, Takata and Joe: spatial locality of the column sequence in the orders of CRS, sorted CRS and
// Fold, the hit rates of an L1 cache, and the time; whether the order with the largest locality is the fastest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/matrix/locality.h"
#include "tools/bench/cache_model.h"
#include "tools/bench/papers/paper.h"

namespace shardmat::tools {

class LocalityPaper final : public Paper {
 public:
  /// `fold_width`: nonzeros of a folded piece; 0: the mean length of the rows. `device`: whose L1 is modelled.
  LocalityPaper(std::int64_t fold_width, Device device);

  void measure(PaperBench& bench, Trial& trial, const Subject& subject) override;
  /// paper_4, paper_4_groups (Figs. 5 to 7), paper_4_advice.
  Tables tables() const override;

 private:
  struct Row {
    ValueType type;
    double stored, folded;  ///< localities
    double line;            ///< entries of a line
    double model_stored, model_folded;
    std::optional<double> counted_folded;              ///< by ncu
    double crs_seconds, sorted_seconds, fold_seconds;  ///< 0: not measured
    double nnz;
    ReadOrder advised;
  };

  ResultTable groups() const;
  ResultTable advice() const;

  std::int64_t fold_width_;
  L1Model model_;
  ResultTable table_;
  std::vector<Row> rows_;
  std::string why_no_counters_;
};

/// Thirty settings of generators: grids, elements, bands, diagonals, graphs, random columns. The first eight are those of
/// the size tiny.
std::vector<NamedMatrix> locality_matrices(Size size);

}  // namespace shardmat::tools
