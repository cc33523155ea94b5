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

struct LocalitySettings {
  static constexpr std::int64_t kLongest = -1;
  std::int64_t fold_width = 0;       ///< nonzeros of a folded piece; 0: the mean length of the rows, kLongest: the longest
  bool fold_sorted = false;          ///< folds the rows by descending length
  std::int64_t l1_bytes = 0;         ///< of the modelled L1; 0: that of the device
  std::int64_t multiprocessors = 0;  ///< of the modelled GPU; 0: those of the device
};

class LocalityPaper final : public Paper {
 public:
  /// `triangle`: the matrices that equal their transpose come as their lower triangle. `device`: whose L1 is modelled unless
  /// the settings say another.
  LocalityPaper(const LocalitySettings& settings, bool triangle, Device device);

  void measure(PaperBench& bench, Trial& trial, const Subject& subject) override;
  /// paper_4, paper_4_padding, paper_4_rows (Fig. 2), paper_4_groups (Figs. 5 to 7), paper_4_advice; paper_4_published if
  /// matrices of the paper were measured.
  Tables tables() const override;

 private:
  struct Row {
    ValueType type;
    double stored, folded;  ///< localities
    double line;            ///< entries of a line
    double model_stored, model_folded;
    std::optional<double> counted_stored, counted_folded;  ///< by ncu
    double crs_seconds, sorted_seconds, fold_seconds;      ///< 0: not measured
    double nnz, rows;
    ReadOrder advised;  ///< by locality alone
    bool x_fits;        ///< x lies in the L1 whatever the order
  };

  /// What ncu counts for the kernel of that name in `multiply --kernel`, from 0 to 1; nothing without it.
  std::optional<double> counted(const PaperBench& bench, const Subject& subject, const char* kernel, const char* function,
                                const std::string& policy);
  void add_padding(const Subject& subject, const CsrView& sorted);
  void add_published(const Subject& subject, const HitRates& crs, const std::optional<double>& counted, double seconds);
  ResultTable rows_and_hits() const;
  ResultTable groups() const;
  ResultTable advice() const;

  LocalitySettings settings_;
  L1Model model_;
  ResultTable table_, padding_, published_;
  std::vector<Row> rows_;
  std::string why_no_counters_;
};

/// Thirty settings of generators: grids, elements, bands, diagonals, graphs, random columns. The first eight are those of
/// the size tiny.
std::vector<NamedMatrix> locality_matrices(Size size);

}  // namespace shardmat::tools
