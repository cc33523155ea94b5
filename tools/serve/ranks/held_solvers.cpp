#include "tools/serve/ranks/held_solvers.h"

#include <algorithm>
#include <utility>

namespace shardmat::serve {
namespace {

bool has_settings(const HeldSolver& solver, const std::string& settings, std::int64_t columns) {
  return solver.settings == settings && solver.columns == columns;
}

}  // namespace

void HeldSolvers::take(const std::vector<service::Answer>& answers, const std::string& settings, std::int64_t columns,
                       double time) {
  const std::vector<HeldSolver> before = std::exchange(all_, {});
  for (const service::HeldSolver& one : std::get<service::Progress>(answers.front().what).solvers) {
    HeldSolver solver{one.settings, one.columns, one.method, one.preconditioner, one.note, {}, time};
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&](const HeldSolver& other) { return has_settings(other, one.settings, one.columns); });
    if (known != before.end() && !has_settings(solver, settings, columns)) solver.last_used = known->last_used;
    all_.push_back(std::move(solver));
  }
  for (const service::Answer& answer : answers) {
    const auto& solvers = std::get<service::Progress>(answer.what).solvers;
    for (std::size_t i = 0; i < std::min(all_.size(), solvers.size()); ++i) all_[i].bytes.push_back(solvers[i].bytes);
  }
}

void HeldSolvers::drop(const std::string& settings, std::int64_t columns) {
  std::erase_if(all_, [&](const HeldSolver& one) { return has_settings(one, settings, columns); });
}

bool HeldSolvers::clear() { return !std::exchange(all_, {}).empty(); }

std::int64_t HeldSolvers::bytes(std::size_t rank) const {
  std::int64_t bytes = 0;
  for (const HeldSolver& one : all_) bytes += rank < one.bytes.size() ? one.bytes[rank] : 0;
  return bytes;
}

}  // namespace shardmat::serve
