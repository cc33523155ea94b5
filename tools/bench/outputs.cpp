#include "tools/bench/outputs.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/print_error.h"
#include "runtime/doctor/doctor.h"
#include "tools/cli/checks.h"
#include "tools/cli/plot.h"
#include "tools/cli/write_report.h"

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

bool is_rewritable(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && path != "-" && !std::filesystem::is_other(path, ignored);
}

std::string document(const nlohmann::ordered_json& report, bool complete) {
  nlohmann::ordered_json whole{{"complete", complete}};
  whole.update(report);
  return whole.dump(2) + "\n";
}

GrowingReport::GrowingReport(Outputs outputs, std::string script, Communicator& ranks)
    : outputs_(std::move(outputs)), script_(std::move(script)) {
  if (!outputs_.json.empty()) findings_ = doctor::quick_findings(ranks);
  if (ranks.rank() != 0) outputs_ = {};
}

GrowingReport::GrowingReport(Outputs outputs, std::string script)
    : outputs_(std::move(outputs)), script_(std::move(script)) {
  if (outputs_.json.empty()) return;
  Communicator alone = Communicator::alone();
  findings_ = doctor::quick_findings(alone);
}

void GrowingReport::save(const std::function<nlohmann::ordered_json()>& report) const {
  if (is_rewritable(outputs_.json)) write_report(outputs_.json, document(report(), false), findings_);
}

void GrowingReport::finish(const nlohmann::ordered_json& report) const {
  const std::string text = document(report, true);
  if (!outputs_.json.empty()) write_report(outputs_.json, text, findings_);
  if (!outputs_.plot.empty()) plot(script_, text, outputs_.plot);
}

int exit_code(std::int64_t wrong) {
  if (wrong == 0) return 0;
  print_error("shardmat: {} of the results are wrong\n", wrong);
  return static_cast<int>(ErrorKind::verification);
}

}  // namespace shardmat::tools
