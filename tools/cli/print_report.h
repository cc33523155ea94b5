// How a command on all ranks ends: its report as text and JSON, and the exit code of an iteration.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "runtime/doctor/doctor.h"
#include "tools/cli/stop_signal.h"
#include "tools/cli/write_report.h"
#include "tools/cli/write_text.h"

namespace shardmat::tools {

constexpr int kNotConverged = 7;  ///< exit code

/// Rank 0 prints to_text(report) unless JSON takes its place, and writes to_json(report) to `json`, the value of --json,
/// with the names of what `shardmat doctor` finds without measuring.
/// Collective; the same error on all ranks.
template <class Report>
void print_report(const Report& report, const std::string& json, Communicator& communicator) {
  std::optional<std::vector<std::string>> findings;
  if (!json.empty()) findings = doctor::quick_findings(communicator);
  communicator.run_agreed([&] {
    if (communicator.rank() != 0) return;
    if (!json.empty()) write_report(json, to_json(report), findings);  // first: nobody may read standard output any more
    if (json != "-") write_text("-", to_text(report));
    std::fflush(stdout);
  });
}

/// 0, or kNotConverged with the line "shardmat: WHO did not converge".
inline int convergence_code(bool converged, const char* who, const Communicator& communicator) {
  if (converged) return 0;
  if (communicator.rank() == 0) print_news(fmt::format("shardmat: {} did not converge\n", who));
  return kNotConverged;
}

}  // namespace shardmat::tools
