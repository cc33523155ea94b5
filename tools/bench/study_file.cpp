#include "tools/bench/study_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "partition/files/json.h"
#include "tools/cli/comparison.h"

namespace shardmat::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMostBytes = 512 << 20;

void read_over_ranks(const ordered_json& json, OverRanks& figure) {
  figure.min = json.at("min"), figure.mean = json.at("mean"), figure.max = json.at("max");
}

void read_times(const ordered_json& json, IterationTimes& times) {
  times.iterations = json.at("iterations"), times.together = json.at("means_of");
  times.median = json.at("median_s"), times.min = json.at("min_s"), times.max = json.at("max_s");
  times.mean = json.at("mean_s");
  read_over_ranks(json.at("medians_of_ranks_s"), times.of_ranks);
}

void read_report(const ordered_json& json, MultiplyReport& r) {
  const ordered_json &matrix = json.at("matrix"), &exchange = json.at("exchange");
  r.matrix = matrix.at("name"), r.rows = matrix.at("rows"), r.nnz = matrix.at("nnz"), r.type = matrix.at("type");
  r.right_hand_sides = json.at("operation").at("right_hand_sides");
  r.backend = json.at("backend").at("name");
  for (const ordered_json& rank : json.at("ranks")) {
    r.ranks.push_back({rank.at("host"), rank.at("device"), rank.at("id"), ""});
    r.kernel_of_rank.push_back(rank.at("kernel"));
  }
  r.threads_per_rank = json.at("threads_per_rank"), r.imbalance = json.at("partition").at("imbalance");
  r.exchange = exchange.at("name"), r.column_block = exchange.at("column_block");
  r.column_block_why = exchange.at("column_block_why");
  read_over_ranks(exchange.at("bytes_received"), r.exchange_bytes);
  read_over_ranks(exchange.at("overlapped"), r.overlapped);
  read_times(json.at("iteration"), r.iteration);
  read_times(json.at("local_product"), r.local);
  read_times(json.at("exchange_alone"), r.exchange_times);
  r.gflops = json.at("gflops");
  read_over_ranks(json.at("bandwidth_bytes_per_s"), r.bandwidth);
  read_over_ranks(json.at("copy_bandwidth_bytes_per_s"), r.copy_bandwidth);
  read_over_ranks(json.at("device_bytes"), r.device_bytes);
  if (const ordered_json& checked = json.at("verification"); !checked.is_null())
    r.verification.emplace().passed = checked.at("passed");
}

}  // namespace

std::string unfinished_study(const std::string& path, const std::string& asked) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  ordered_json json;
  try {
    json = read_json(path, kMostBytes);
  } catch (const Error&) {  // no report: it is replaced, as any report
    return {};
  }
  if (!json.is_object() || json.value("complete", true) || !json.contains("asked") || !json.contains("solves")) return {};
  if (const std::string others = differences(json["asked"], ordered_json::parse(asked)); !others.empty())
    throw Error(
        ErrorKind::usage,
        fmt::format("{} holds an unfinished study with other options: {}. Finish it with those, name another file, or "
                    "measure all anew",
                    path, others),
        "anew");
  json.erase("models");  // measured at the end
  return json.dump();
}

ScalingCase read_case(const ordered_json& json) {
  ScalingCase one;
  one.matrix = json.at("matrix"), one.exchange = json.at("exchange_asked"), one.ranks = json.at("ranks");
  one.why_not = json.value("why_not", "");
  if (one.why_not.starts_with(kWrong)) one.report.verification.emplace();  // which did not pass
  if (!json.contains("report")) return one;
  one.host_ranks = json.at("host_ranks"), one.host_cores = json.at("host_cores");
  read_report(json.at("report"), one.report);
  json.at("samples_s").get_to(one.report.iteration.samples);
  one.kept = json.at("report").dump();
  return one;
}

void take_measured(const std::string& text, ScalingStudy& study, std::vector<SolveCase>& solves_to_come) {
  const ordered_json json = ordered_json::parse(text);
  for (const ordered_json& kept : json.at("cases")) {
    ScalingCase one = read_case(kept);
    const auto planned = std::find_if(study.to_come.begin(), study.to_come.end(), [&](const ScalingCase& p) {
      return p.matrix == one.matrix && p.ranks == one.ranks && p.exchange == one.exchange;
    });
    if (planned == study.to_come.end()) continue;
    study.to_come.erase(planned);
    study.cases.push_back(std::move(one));
  }
  for (const ordered_json& kept : json.at("solves")) {
    SolveCase one = solve_case_from_json(kept);
    const auto planned = std::find_if(solves_to_come.begin(), solves_to_come.end(), [&](const SolveCase& p) {
      return p.matrix == one.matrix && p.ranks == one.ranks && p.preconditioner == one.preconditioner;
    });
    if (planned == solves_to_come.end()) continue;
    solves_to_come.erase(planned);
    study.solves.push_back(std::move(one));
  }
  for (const ordered_json& run : json.at("runs")) study.runs.push_back(run.dump());
}

}  // namespace shardmat::tools
