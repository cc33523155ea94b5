// Paper 5, Kawamura, Yoneda, Iwamura, Watanabe and Inoguchi: row block packing. Table 2 with the formulas' conditions, the
// bytes of Fig. 6, the times of Fig. 7, and the means that the text reports.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/matrix/runs.h"
#include "tools/bench/papers/paper.h"

namespace shardmat::tools {

class RowBlockPacking final : public Paper {
 public:
  /// `triangle`: the matrices that equal their transpose come as their lower triangle.
  explicit RowBlockPacking(bool triangle);

  void measure(PaperBench& bench, Trial& trial, const Subject& subject) override;
  /// paper_5 (Table 2), paper_5_formats (Figs. 6 and 7), paper_5_means, paper_5_published (the paper's own matrices).
  Tables tables() const override;

 private:
  /// What packing gains over the format that it packs, for one type.
  struct Gains {
    std::vector<std::pair<double, std::string>> memory, speed_up;  ///< with the matrix
    int refused = 0;                                               ///< pairs without both times
  };

  void add_statistics(const Subject& subject);
  ResultTable means() const;
  static ResultTable published_memory();

  ResultTable statistics_, formats_;
  std::set<std::string> described_;
  std::map<std::pair<std::string, std::string>, Gains> gains_;  ///< by type and packed format
};

}  // namespace shardmat::tools
