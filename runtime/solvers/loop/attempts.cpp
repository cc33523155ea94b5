#include "runtime/solvers/loop/attempts.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace shardmat {

SolveControl counting_from(std::int64_t before, const SolveControl& control) {
  SolveControl counting = control;
  if (control.monitor)
    counting.monitor = [&control, before](std::int64_t iterations, const std::vector<double>& norms,
                                          const std::vector<double>& true_norms) {
      control.monitor(before + iterations, norms, true_norms);
    };
  if (control.watch)
    counting.watch = [&control, before](std::int64_t iterations, const DistributedVector& x) {
      control.watch(before + iterations, x);
    };
  return counting;
}

void append(SolveResult result, SolveResult& all) {
  for (std::size_t j = 0; j < result.columns.size(); ++j) {
    SolvedColumn& column = result.columns[j];
    const SolvedColumn& before = all.columns[j];
    const auto put_before = [](const std::vector<double>& first, std::vector<double>& history) {
      if (first.empty() || history.empty()) return;
      history.erase(history.begin());  // the residual of the same x
      history.insert(history.begin(), first.begin(), first.end());
    };
    put_before(before.history, column.history);
    put_before(before.true_history, column.true_history);
    column.iterations += before.iterations;
    column.replacements += before.replacements;
    column.breakdowns += before.breakdowns;
  }
  result.seconds += all.seconds;
  result.iterations = 0;
  for (const SolvedColumn& column : result.columns) result.iterations = std::max(result.iterations, column.iterations);
  result.fall_backs = std::move(all.fall_backs);
  result.attempts.insert(result.attempts.begin(), all.attempts.begin(), all.attempts.end());
  all = std::move(result);
}

}  // namespace shardmat
