#include "tools/cli/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/shortened.h"
#include "kernels/base/text.h"
#include "tools/cli/samples.h"

namespace shardmat::tools {
namespace {

using nlohmann::ordered_json;

constexpr int kResamples = 2000;
constexpr std::size_t kFewestSamples = 3;
constexpr double kTail = 0.05;         ///< beyond each end of the interval
constexpr double kNormalTail = 1.645;  ///< standard deviations of a normal distribution up to such an end
constexpr double kOfMedian = 1.2533;   ///< standard error of a median over that of a mean, of normal times

/// Mean range of n normal values over their standard deviation.
double range_of_normal(std::int64_t n) {
  constexpr std::array<std::pair<double, double>, 9> kKnown{{{2, 1.128},
                                                             {3, 1.693},
                                                             {5, 2.326},
                                                             {10, 3.078},
                                                             {21, 3.778},
                                                             {50, 4.498},
                                                             {100, 5.015},
                                                             {200, 5.492},
                                                             {1000, 6.483}}};
  const double count = std::clamp(static_cast<double>(n), kKnown.front().first, kKnown.back().first);
  std::size_t i = 1;
  while (kKnown[i].first < count) ++i;
  const auto [low, at_low] = kKnown[i - 1];
  const auto [high, at_high] = kKnown[i];
  return at_low + (at_high - at_low) * std::log(count / low) / std::log(high / low);
}

/// Relative standard error of a median, from the range of the times or from what they are.
std::optional<double> relative_error(const MeasuredTime& time) {
  double least = time.min, most = time.max;
  std::int64_t count = time.count;
  if (time.samples.size() >= kFewestSamples) {
    const auto [min, max] = std::minmax_element(time.samples.begin(), time.samples.end());
    least = *min, most = *max, count = std::ssize(time.samples);
  }
  if (count < static_cast<std::int64_t>(kFewestSamples) || !(time.median > 0)) return {};
  return kOfMedian * (most - least) / range_of_normal(count) / std::sqrt(static_cast<double>(count)) / time.median;
}

double median_of_resample(const std::vector<double>& samples, std::vector<double>& scratch, std::mt19937_64& random) {
  scratch.resize(samples.size());
  for (double& one : scratch) one = samples[random() % samples.size()];
  const auto middle = scratch.begin() + static_cast<std::ptrdiff_t>(scratch.size() / 2);
  std::nth_element(scratch.begin(), middle, scratch.end());
  return *middle;
}

void bootstrap(ComparedTime& one) {
  std::mt19937_64 random(1);  // the same interval in every run
  std::vector<double> ratios, scratch;
  for (int i = 0; i < kResamples; ++i) {
    const double before = median_of_resample(one.before->samples, scratch, random);
    ratios.push_back(median_of_resample(one.now->samples, scratch, random) / before);
  }
  std::sort(ratios.begin(), ratios.end());
  one.low = std::min(one.ratio, ratios[static_cast<std::size_t>(kTail * kResamples)]);
  one.high = std::max(one.ratio, ratios[static_cast<std::size_t>((1 - kTail) * kResamples) - 1]);
  one.interval = "bootstrap";
}

std::string text_at(const ordered_json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
}

std::vector<double> samples_at(const ordered_json& json, const char* key) {
  return json.contains(key) ? json.at(key).get<std::vector<double>>() : std::vector<double>();
}

/// Iterations that were timed together have one time: their mean.
MeasuredTime of_times(const ordered_json& times, const char* count) {
  const std::int64_t repeated = times.at(count),
                     together = std::max(times.value("means_of", std::int64_t{1}), std::int64_t{1});
  return {times.at("median_s"), {}, times.at("min_s"), times.at("max_s"), (repeated + together - 1) / together};
}

MeasuredTime of_samples(std::vector<double> samples) {
  const double median = median_of_samples(samples);
  return {median, std::move(samples)};
}

std::string on_ranks_text(const std::string& matrix, std::int64_t ranks) {
  return fmt::format("{}, {}", matrix, human_count(ranks, "rank"));
}

void read_scaling(const ordered_json& report, std::vector<NamedTime>& times) {
  for (const ordered_json& one : report.at("cases")) {
    if (!one.contains("report")) continue;
    MeasuredTime time = of_times(one.at("report").at("iteration"), "iterations");
    time.samples = samples_at(one, "samples_s");
    const std::int64_t ranks = one.at("ranks");
    const std::string exchange = one.at("exchange_asked");
    times.push_back(
        {on_ranks_text(one.at("matrix"), ranks), ranks == 1 ? "product" : "product, exchange " + exchange, time});
  }
  if (!report.contains("solves")) return;  // an older version
  for (const ordered_json& one : report.at("solves")) {
    if (!one.contains("samples")) continue;
    const std::string of = on_ranks_text(one.at("matrix"), one.at("ranks"));
    const std::string with = ", preconditioner " + one.at("preconditioner_asked").get<std::string>();
    const auto set_up = samples_at(one.at("samples"), "set_up_s"), solve = samples_at(one.at("samples"), "solve_s");
    std::vector<double> wholes;
    for (std::size_t i = 0; i < std::min(set_up.size(), solve.size()); ++i) wholes.push_back(set_up[i] + solve[i]);
    if (wholes.empty()) continue;
    times.push_back({of, "set-up and solve" + with, of_samples(wholes)});
    times.push_back({of, "set-up" + with, of_samples(set_up)});
    times.push_back({of, "solve" + with, of_samples(solve)});
  }
}

void read_kernels(const ordered_json& report, std::vector<NamedTime>& times) {
  for (const ordered_json& one : report.at("cases")) {
    const std::string of = fmt::format("{}, {}", one.at("matrix").at("name").get<std::string>(), text_at(one, "type"));
    for (const char* best : {"best_own", "auto"})
      if (const ordered_json& result = one.at(best); result.is_object() && result.contains("median_s"))
        times.push_back(
            {of, best == std::string("auto") ? "automatic choice" : "fastest own kernel", of_times(result, "repetitions")});
    for (const ordered_json& result : one.at("results")) {
      if (!result.contains("median_s")) continue;
      const std::string policy = text_at(result, "policy");
      times.push_back(
          {of, text_at(result, "kernel") + (policy.empty() ? "" : " " + policy), of_times(result, "repetitions")});
    }
  }
}

void read_bench_solve(const ordered_json& report, std::vector<NamedTime>& times) {
  for (const ordered_json& row : report.at("table").at("rows")) {
    MeasuredTime time{row.at("whole_s")};
    time.samples = samples_at(row, "samples_s");
    times.push_back({text_at(row, "matrix"), "set-up and solve, " + text_at(row, "solver"), time});
  }
}

void read_solve(const ordered_json& report, std::vector<NamedTime>& times) {
  const std::string of = text_at(report.at("matrix"), "name");
  const ordered_json& phases = report.at("phases_s");
  const double solve = report.at("seconds");
  const double set_up = phases.contains("set up solver") ? phases.at("set up solver").at("max").get<double>() : 0;
  times.push_back({of, "set-up and solve", {set_up + solve}});
  times.push_back({of, "set-up", {set_up}});
  times.push_back({of, "solve", {solve}});
  times.push_back({of, "an iteration", {report.at("seconds_an_iteration").get<double>()}});
}

void read_multiply(const ordered_json& report, std::vector<NamedTime>& times) {
  const std::string of = text_at(report.at("matrix"), "name");
  for (const auto& [key, what] : {std::pair("iteration", "iteration"), std::pair("local_product", "local product")})
    if (report.at(key).at("iterations").get<std::int64_t>() > 0)
      times.push_back({of, what, of_times(report.at(key), "iterations")});
}

std::string text_of_option(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const ordered_json& one : value) text += (text.empty() ? "" : ",") + text_of_option(one);
  return text;
}

struct ReportKind {
  const char* name;
  std::vector<const char*> keys;  ///< that tell it from others
  void (*read)(const ordered_json&, std::vector<NamedTime>&);
  std::vector<const char*> options;  ///< that decide the times: values, or objects of them
};

const std::vector<ReportKind>& report_kinds() {
  static const std::vector<ReportKind> kinds{
      {"bench scaling", {"cases", "models", "no_forecasts"}, read_scaling, {"asked"}},
      {"bench kernels", {"cases", "yardstick", "machine"}, read_kernels, {"caches"}},
      {"bench solve", {"table", "clock", "machine"}, read_bench_solve, {"ranks", "threads", "clock", "method", "rtol"}},
      {"solve", {"columns", "solver", "phases_s"}, read_solve, {"solver", "threads_per_rank", "kernel"}},
      {"multiply", {"operation", "iteration", "local_product"}, read_multiply, {"operation", "threads_per_rank", "kernel"}}};
  return kinds;
}

std::string list_of_kinds() {
  std::string text;
  for (const ReportKind& kind : report_kinds()) text += fmt::format("{}{}", text.empty() ? "" : ", ", kind.name);
  return text;
}

/// The options of a report as one object. Of a kernel its name and policy count, not why it was chosen.
std::string options_of(const ordered_json& report, const ReportKind& kind) {
  ordered_json all = ordered_json::object();
  for (const std::string key : kind.options) {
    if (!report.contains(key)) continue;
    if (!report[key].is_object()) all[key] = report[key];
    else if (key == "kernel") all[key] = text_at(report[key], "name") + " " + text_at(report[key], "policy");
    else
      for (const auto& [name, value] : report[key].items())
        if (name.find("why") == std::string::npos && !value.is_object()) all[name] = value;
  }
  if (report.contains("matrix")) all["type"] = text_at(report["matrix"], "type");
  if (report.contains("ranks") && report["ranks"].is_array()) all["ranks"] = report["ranks"].size();
  return all.dump();
}

Verdict verdict_of(const ComparedTime& one) {
  if (!one.before) return Verdict::only_now;
  if (!one.now) return Verdict::only_before;
  if (one.interval == "none") return Verdict::one_time;
  return one.low > 1 ? Verdict::slower : one.high < 1 ? Verdict::faster : Verdict::same;
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::slower:
      return "slower";
    case Verdict::faster:
      return "faster";
    case Verdict::same:
      return "same";
    case Verdict::one_time:
      return "one time each";
    case Verdict::only_before:
      return "only before";
    case Verdict::only_now:
      return "only now";
  }
  throw Error(ErrorKind::internal, "unknown verdict");
}

const char* interval_help() {
  return "An interval holds the ratio of the medians with 90 %. Where both reports keep the single times, it is "
         "bootstrapped "
         "from them (2,000 times). Where they keep shortest, median and longest of several times, it is that of normal "
         "times "
         "with such a range. One time each has none. It tells what varied within the two runs; from run to run, with "
         "other clocks and other work on the machine, more may change.";
}

void find_interval(ComparedTime& one) {
  one.low = one.high = one.ratio = one.now->median / one.before->median;
  one.interval = "none";
  if (!(one.before->median > 0) || !(one.now->median > 0)) {
    one.ratio = one.low = one.high = 1;  // nothing was timed
    return;
  }
  if (std::min(one.before->samples.size(), one.now->samples.size()) >= kFewestSamples) return bootstrap(one);
  const auto before = relative_error(*one.before), now = relative_error(*one.now);
  if (!before || !now) return;
  const double half = kNormalTail * std::hypot(*before, *now);
  one.low = one.ratio * std::exp(-half), one.high = one.ratio * std::exp(half);
  one.interval = "range";
}

ReportOfTimes read_times(const ordered_json& report, const std::string& file) {
  const auto is = [&](const ReportKind& kind) {
    return report.is_object() &&
           std::all_of(kind.keys.begin(), kind.keys.end(), [&](const char* key) { return report.contains(key); });
  };
  const auto kind = std::find_if(report_kinds().begin(), report_kinds().end(), is);
  if (kind == report_kinds().end())
    throw Error(ErrorKind::input, fmt::format("{} is no report that can be compared; these are: {}", file, list_of_kinds()));
  ReportOfTimes found;
  found.kind = kind->name;
  const ordered_json run = report.value("run", ordered_json::object());
  const std::string commit = text_at(run, "commit");
  found.program = text_at(run, "version") + (commit.empty() ? "" : fmt::format(" ({})", commit));
  found.date = text_at(run, "date"), found.host = text_at(run, "host"), found.command = text_at(run, "command");
  if (run.contains("cores")) found.cores = text_at(run, "cores");
  if (report.contains("complete") && report["complete"].is_boolean()) found.complete = report["complete"];
  found.options = options_of(report, *kind);
  try {
    for (const ordered_json& one : report.value("runs", ordered_json::array()))
      found.busy_cores = std::max(found.busy_cores, one.at("load").at("busy_cores").get<double>());
    kind->read(report, found.times);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::input, fmt::format("{} is not what this version's shardmat {} writes ({})", file, kind->name,
                                              shortened(error.what())));
  }
  return found;
}

std::vector<ComparedTime> compare(const ReportOfTimes& before, const ReportOfTimes& now) {
  if (before.kind != now.kind)
    throw Error(ErrorKind::input, fmt::format("one report is of shardmat {}, the other of shardmat {}; give two of one kind",
                                              before.kind, now.kind));
  std::vector<ComparedTime> all;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const NamedTime& one : before.times)
    if (places.emplace(std::pair(one.of, one.what), all.size()).second) {
      ComparedTime& compared = all.emplace_back();
      compared.of = one.of, compared.what = one.what, compared.before = one.time;
    }
  bool common = false;
  for (const NamedTime& one : now.times) {
    const auto [place, is_new] = places.emplace(std::pair(one.of, one.what), all.size());
    if (is_new) {
      ComparedTime& compared = all.emplace_back();
      compared.of = one.of, compared.what = one.what;
    }
    ComparedTime& compared = all[place->second];
    if (!compared.now) compared.now = one.time;
    common = common || compared.before;
  }
  if (!common)
    throw Error(ErrorKind::input, "the reports have nothing in common: no matrix with the same ranks and the same way");
  std::map<std::string, std::size_t> firsts;  // what belongs together stands together
  for (std::size_t i = 0; i < all.size(); ++i) firsts.emplace(all[i].of, i);
  std::stable_sort(all.begin(), all.end(),
                   [&](const ComparedTime& a, const ComparedTime& b) { return firsts[a.of] < firsts[b.of]; });
  for (ComparedTime& one : all) {
    if (one.before && one.now) find_interval(one);
    one.verdict = verdict_of(one);
  }
  return all;
}

std::string differences(const ordered_json& kept, const ordered_json& asked) {
  std::string text;
  const auto tell = [&](const std::string& name, const std::string& before, const std::string& now) {
    text += fmt::format("{}{} {}, not {}", text.empty() ? "" : "; ", name, shortened(before, 200), shortened(now, 200));
  };
  for (const auto& [name, value] : kept.items())
    if (!asked.contains(name)) tell(name, text_of_option(value), "left out");
    else if (asked[name] != value) tell(name, text_of_option(value), text_of_option(asked[name]));
  for (const auto& [name, value] : asked.items())
    if (!kept.contains(name)) tell(name, "left out", text_of_option(value));
  return text;
}

std::vector<std::string> doubts_of(const ReportOfTimes& before, const ReportOfTimes& now) {
  std::vector<std::string> doubts;
  if (before.host != now.host)
    doubts.push_back(fmt::format("They were measured on different hosts: {} and {}", before.host, now.host));
  else if (before.cores != now.cores)
    doubts.push_back(fmt::format("Rank 0 had other cores: {} and {}", before.cores, now.cores));
  if (const std::string options = differences(ordered_json::parse(before.options), ordered_json::parse(now.options));
      !options.empty())
    doubts.push_back("The first was made with other options: " + options);
  constexpr double kBusy = 0.5;  // cores
  if (std::max(before.busy_cores, now.busy_cores) > kBusy)
    doubts.push_back(fmt::format("Other programs kept {:.1f} cores busy beside the first, {:.1f} beside the second",
                                 before.busy_cores, now.busy_cores));
  for (const auto& [label, report] : {std::pair("first", &before), std::pair("second", &now)})
    if (!report->complete) doubts.push_back(fmt::format("The {} report is unfinished", label));
  return doubts;
}

std::vector<const ComparedTime*> slower_by_more_than(const std::vector<ComparedTime>& all, double share) {
  std::vector<const ComparedTime*> found;
  for (const ComparedTime& one : all)
    if (one.ratio > 1 + share && (one.verdict == Verdict::slower || one.verdict == Verdict::one_time)) found.push_back(&one);
  std::stable_sort(found.begin(), found.end(),
                   [](const ComparedTime* a, const ComparedTime* b) { return a->ratio > b->ratio; });
  return found;
}

}  // namespace shardmat::tools
