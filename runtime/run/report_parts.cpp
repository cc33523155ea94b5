#include "runtime/run/report_parts.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/base/text.h"

namespace shardmat::reporting {

using nlohmann::ordered_json;

void Table::row(std::string_view label, const std::string& value) {
  if (!value.empty()) text_ += fmt::format("  {:<14} {}\n", label, value);
}
void Table::section(std::string_view title) { text_ += fmt::format("{}{}\n", text_.empty() ? "" : "\n", title); }

std::string min_mean_max(const OverRanks& figure, std::string (*text)(double)) {
  if (text(figure.min) == text(figure.max)) return text(figure.max);
  return fmt::format("{} … {} (mean {})", text(figure.min), text(figure.max), text(figure.mean));
}

std::string count_text(double count) { return human_count(std::llround(count)); }
std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string rate_text(double bytes_per_second) { return human_bytes(bytes_per_second) + "/s"; }

std::string bandwidth_text(double rate, double copy) {
  if (rate > copy)
    return fmt::format("{} a rank, from caches: more than memory's copy bandwidth measured in this run ({})",
                       rate_text(rate), rate_text(copy));
  return fmt::format("{} a rank = {:.0f} % of the copy bandwidth measured in this run ({})", rate_text(rate),
                     100 * rate / copy, rate_text(copy));
}

std::string times_line(std::string_view label, const IterationTimes& times) {
  return fmt::format("  {:<16} {:>11} {:>11} {:>11}", label, human_seconds(times.min), human_seconds(times.median),
                     human_seconds(times.max));
}

ordered_json json(const OverRanks& f) { return {{"min", f.min}, {"mean", f.mean}, {"max", f.max}}; }
ordered_json json(const IterationTimes& t) {
  return {{"iterations", t.iterations},
          {"means_of", t.together},
          {"median_s", t.median},
          {"min_s", t.min},
          {"max_s", t.max},
          {"mean_s", t.mean},
          {"medians_of_ranks_s", json(t.of_ranks)}};
}
ordered_json json(const std::vector<Measurement>& measurements) {
  ordered_json all = ordered_json::array();
  for (const Measurement& m : measurements)
    all.push_back({{"kernel", m.kernel}, {"policy", m.policy}, {"seconds", m.seconds}});
  return all;
}
ordered_json json(const std::vector<RankPlace>& ranks) {
  ordered_json all = ordered_json::array();
  for (const RankPlace& place : ranks) all.push_back({{"host", place.host}, {"device", place.device}, {"id", place.id}});
  return all;
}
ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(fmt::format("{}", value));
}

void add_json_of_run(const IterativeReport& r, double seconds, ordered_json& j) {
  j["seconds"] = seconds;
  j["seconds_an_iteration"] = r.seconds_an_iteration;
  j["product_s"] = r.product_seconds;
  j["exchange_s"] = r.exchange_seconds;
  j["partition"] = json_of_partition(r);
  j["backend"] = {{"name", r.backend}, {"why", r.backend_why}};
  j["ranks"] = json_of_ranks(r);
  j["threads_per_rank"] = r.threads_per_rank;
  j["kernel"] = json_of_kernel(r);
  j["exchange"] = json_of_exchange(r);
  j["sums"] = r.sums;
  j["phases_s"] = json_of_phases(r.phases);
  j["device_bytes"] = json(r.device_bytes);
  j["host_peak_bytes"] = json(r.host_peak_bytes);
  if (!r.output.empty()) j["output"] = r.output;
}

}  // namespace shardmat::reporting
