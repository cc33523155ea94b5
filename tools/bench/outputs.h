// Where the report of a benchmark goes: a JSON file, a picture, the exit code.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace shardmat::tools {

struct Outputs {
  std::string json;  ///< file, - for standard output, or empty
  std::string plot;  ///< file, or empty
};

/// Throws, before long work, what write_outputs() would throw: files that cannot be written, no `script` or Python to draw
/// with; and if a result, also of those written to `others`, would take the place of one of the `sources`, or of another.
void require_outputs(const Outputs& outputs, const std::string& script, const std::vector<std::string>& sources,
                     const std::vector<std::string>& others = {});
/// True if a file of this name can be written again and again. False for no name, - (standard output), devices and pipes.
bool is_rewritable(const std::string& path);
/// The report as text, with "complete" as its first field.
std::string document(const nlohmann::ordered_json& report, bool complete);

/// The report of a benchmark while it grows. Its JSON file is whole at any moment: save() and finish() put a new one in its
/// place. "complete" in it is false until finish(). The file names what `shardmat doctor` finds without measuring.
class GrowingReport {
 public:
  /// Of `ranks`; the lowest one writes. `script` draws the report (plot.h); empty without a picture. Collective.
  GrowingReport(Outputs outputs, std::string script, Communicator& ranks);
  /// Of this process alone.
  GrowingReport(Outputs outputs, std::string script);

  /// After every row: writes what there is. Calls `report` only if there is a file to write (is_rewritable()).
  void save(const std::function<nlohmann::ordered_json()>& report) const;
  /// Writes the whole report, to standard output and devices, too, and draws it.
  void finish(const nlohmann::ordered_json& report) const;

 private:
  Outputs outputs_;
  std::string script_;
  std::optional<std::vector<std::string>> findings_;  ///< of the doctor, if there is a JSON file
};

/// 0, or with wrong results that of a failed verification and a line that says how many.
int exit_code(std::int64_t wrong);

}  // namespace shardmat::tools
