#include "tools/bench/outputs.h"

#include <fmt/format.h>

#include <cstdio>

#include "kernels/base/error.h"
#include "tools/bench/plot.h"
#include "tools/checks.h"
#include "tools/write_text.h"

namespace shardmat::tools {

void require_outputs(const Outputs& outputs, const std::string& script, const std::vector<std::string>& sources,
                     const std::vector<std::string>& others) {
  std::vector<InputFile> inputs;
  for (const std::string& source : sources) inputs.push_back({source, "the input"});
  std::vector<std::string> results{outputs.json, outputs.plot};
  results.insert(results.end(), others.begin(), others.end());
  require_spared(inputs, results);
  check_report_file(outputs.json);
  if (outputs.plot.empty()) return;
  check_report_file(outputs.plot);
  require_plot_script(script);
}

void write_outputs(const Outputs& outputs, const std::string& json, const std::string& script) {
  if (!outputs.json.empty()) write_text(outputs.json, json);
  if (!outputs.plot.empty()) plot(script, json, outputs.plot);
}

int exit_code(std::int64_t wrong) {
  if (wrong == 0) return 0;
  fmt::print(stderr, "shardmat: {} of the results are wrong\n", wrong);
  return static_cast<int>(ErrorKind::verification);
}

}  // namespace shardmat::tools
