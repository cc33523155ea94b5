// Hardware counters of a GPU kernel, by NVIDIA's profiler ncu, which runs this program as its child.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shardmat::tools {

/// What ncu counted, or why it counted nothing.
struct Counted {
  std::optional<double> value;
  std::string why_not;
};

/// The value of `metric` in ncu's CSV output (--csv, --page raw or details): the mean over the kernels listed. Nothing if no
/// line has the metric.
std::optional<double> metric_in_csv(const std::string& csv, const std::string& metric);

/// Runs `ncu` of the PATH on this program with `arguments` and reads `metric` of its kernels whose name matches `kernel`, a
/// regular expression. Takes seconds. Never throws: without ncu, or without the right to read counters, says so.
Counted count_by_ncu(const std::string& metric, const std::string& kernel, const std::vector<std::string>& arguments);

}  // namespace shardmat::tools
