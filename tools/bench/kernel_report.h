// What `bench kernels` found, as text and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/matrix/statistics.h"
#include "tools/bench/machine.h"
#include "tools/bench/trial.h"

namespace shardmat::tools {

/// One matrix in one type. The yardstick is the fastest cuSPARSE kernel; on the host, the fastest kernel on CSR.
struct KernelCase {
  std::string name, argument;
  ValueType type = ValueType::f64;
  std::int64_t cols = 0, x_entries = 0;
  RowStatistics rows;
  std::vector<KernelResult> results;   ///< as they were measured, and those that were not
  std::optional<KernelResult> chosen;  ///< what the automatic choice takes when it measures
  std::string chosen_why;

  /// Fastest right results; null if there is none.
  const KernelResult* yardstick(Backend backend) const;
  const KernelResult* best_own() const;
};

struct KernelReport {
  Machine machine;
  int repetitions = 0;
  bool flushed = true, verified = true;
  std::vector<std::string> notes;
  std::vector<KernelCase> cases;
};

/// True for kernels of other people's libraries, by name.
bool is_vendor_kernel(std::string_view kernel);
/// True if its time may be the yardstick on this backend.
bool is_yardstick(std::string_view kernel, std::string_view format, Backend backend);

std::string header_text(const KernelReport& report);
std::string case_text(const KernelCase& one, const Machine& machine);
std::string summary_text(const KernelReport& report);
nlohmann::ordered_json to_json(const KernelReport& report);
/// Wrong results of all cases.
std::int64_t count_wrong(const KernelReport& report);

}  // namespace shardmat::tools
