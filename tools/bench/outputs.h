// Where the report of a benchmark goes: a JSON file, a picture, the exit code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardmat::tools {

struct Outputs {
  std::string json;  ///< file, - for standard output, or empty
  std::string plot;  ///< file, or empty
};

/// Throws, before long work, what write_outputs() would throw: files that cannot be written, no `script` or Python to draw
/// with; and if a result, also of those written to `others`, would take the place of one of the `sources`, or of another.
void require_outputs(const Outputs& outputs, const std::string& script, const std::vector<std::string>& sources,
                     const std::vector<std::string>& others = {});
/// Writes the report, and draws it with `script` (plot.h).
void write_outputs(const Outputs& outputs, const std::string& json, const std::string& script);
/// 0, or with wrong results that of a failed verification and a line that says how many.
int exit_code(std::int64_t wrong);

}  // namespace shardmat::tools
