#include "runtime/solvers/loop/solver_options.h"

#include <algorithm>

namespace shardmat {

bool SolveResult::converged() const {
  return std::all_of(columns.begin(), columns.end(), [](const SolvedColumn& c) { return shardmat::converged(c.reason); });
}

std::string_view SolveResult::explanation(const SolvedColumn& column) const {
  return explain(column.reason, {f32, maps_constants_to_zero, maps_more_to_zero});
}

double default_rtol(ValueType type) { return type == ValueType::f64 ? 1e-8 : 1e-5; }

}  // namespace shardmat
