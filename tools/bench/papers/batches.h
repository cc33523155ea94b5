// Paper 1, Nagasaka, Nukada, Kojima and Matsuoka: batched products of small matrices. Figs. 6 to 8 with the ratios of the
// paper's own kernels, and the share of time in which multiprocessors work.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/bench/papers/paper.h"

namespace shardmat::tools {

class BatchesPaper {
 public:
  /// `small`: only the smallest and largest number of columns of Figs. 6 and 8.
  BatchesPaper(bool small, const TrialOptions& options);

  /// Measures all figures in f32, as the paper; calls `save` after every row.
  void measure(Stream& stream, const Progress& progress, const std::function<void()>& save);
  /// paper_1 (Figs. 6 to 8), paper_1_ratios, paper_1_sm.
  Paper::Tables tables() const;
  const std::set<std::string>& wrong() const { return wrong_; }

 private:
  struct Ratio {
    std::string figure;
    std::int64_t columns = 0;
    double over_called = 0, over_others = 0, over_tensorflow = 0, over_cublas = 0,
           ours_over_others = 0;  ///< 0: not measured
  };

  void add_busy_share(Stream& stream);

  bool small_;
  TrialOptions options_;
  ResultTable table_, busy_;
  std::vector<Ratio> ratios_;
  std::set<std::string> wrong_;
};

}  // namespace shardmat::tools
