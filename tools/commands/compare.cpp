// Two reports of one kind side by side: what became slower, with intervals.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "kernels/base/print_error.h"
#include "kernels/base/text.h"
#include "partition/files/json.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/comparison.h"
#include "tools/cli/environment.h"
#include "tools/cli/plot.h"
#include "tools/cli/report_option.h"
#include "tools/cli/write_report.h"

namespace shardmat::tools {
namespace {

using nlohmann::ordered_json;

constexpr const char* kPageScript = "compare_html.py";
constexpr int kBecameSlower = 8;  ///< exit code
constexpr std::int64_t kMostBytes = 512 << 20;

struct Options {
  std::string before, now, json, html, fail_above;
  bool all = false;
  double share = -1;  ///< of fail_above; below 0: none
};

/// "5%", "5 %" or "0.05" as 0.05.
double share_of(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  while (*end == ' ') ++end;
  const bool percent = *end == '%';
  if (end == text.c_str() || end[percent ? 1 : 0] != '\0' || !(number >= 0 && number <= 1e6))
    throw Error(ErrorKind::usage, fmt::format("'{}' is no share; give one such as 5%", text), "fail_above");
  return percent ? number / 100 : number;
}

ReportOfTimes read_file(const std::string& path) { return read_times(read_json(path, kMostBytes), path); }

std::string head(const std::string& label, const std::string& file, const ReportOfTimes& report) {
  return fmt::format("{:<7} {}: shardmat {} {}, {} on {}\n", label, file, report.program, report.kind, report.date,
                     report.host);
}

std::string seconds_text(const std::optional<MeasuredTime>& time) { return time ? human_seconds(time->median) : "-"; }

std::string interval_text(const ComparedTime& one) {
  if (!one.before || !one.now) return "";
  if (one.interval == "none") return "";
  return fmt::format("{} … {}", human_change(one.low - 1), human_change(one.high - 1));
}

bool is_shown(const ComparedTime& one, const Options& options) { return options.all || one.verdict != Verdict::same; }

void print(const Options& options, const ReportOfTimes& before, const ReportOfTimes& now,
           const std::vector<ComparedTime>& all) {
  fmt::print("{}{}", head("before", options.before, before), head("now", options.now, now));
  std::string of;
  std::map<Verdict, int> counts;
  for (const ComparedTime& one : all) {
    ++counts[one.verdict];
    if (!is_shown(one, options)) continue;
    if (one.of != of)
      fmt::print("\n{}\n  {:<52} {:>11} {:>11} {:>9} {:>20}\n", of = one.of, "", "before", "now", "change", "90 %");
    fmt::print("  {:<52} {:>11} {:>11} {:>9} {:>20}  {}\n", one.what, seconds_text(one.before), seconds_text(one.now),
               one.before && one.now ? human_change(one.ratio - 1) : "", interval_text(one), name(one.verdict));
  }
  std::string summary;
  for (const auto& [verdict, count] : counts)
    summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count, name(verdict));
  fmt::print("\n{} times: {}{}\n", all.size(), summary,
             options.all || counts[Verdict::same] == 0 ? "" : " (not shown: the same)");
  for (const std::string& doubt : doubts_of(before, now)) fmt::print("note: {}\n", doubt);
}

ordered_json json_of_time(const std::optional<MeasuredTime>& time) {
  if (!time) return nullptr;
  const bool kept = !time->samples.empty();
  return {{"median_s", time->median}, {"times", kept ? std::ssize(time->samples) : time->count}};
}

ordered_json json_of_side(const std::string& file, const ReportOfTimes& report) {
  return {{"file", file},
          {"program", report.program},
          {"date", report.date},
          {"host", report.host},
          {"command", report.command}};
}

ordered_json to_json(const Options& options, const ReportOfTimes& before, const ReportOfTimes& now,
                     const std::vector<ComparedTime>& all, std::size_t too_slow) {
  ordered_json list = ordered_json::array();
  for (const ComparedTime& one : all) {
    list.push_back(
        {{"of", one.of}, {"what", one.what}, {"before", json_of_time(one.before)}, {"now", json_of_time(one.now)}});
    if (one.before && one.now) {
      list.back()["ratio"] = one.ratio;
      if (one.interval != "none") list.back()["ratio_low"] = one.low, list.back()["ratio_high"] = one.high;
      list.back()["interval"] = one.interval;
    }
    list.back()["verdict"] = name(one.verdict);
  }
  return {{"kind", before.kind},
          {"before", json_of_side(options.before, before)},
          {"now", json_of_side(options.now, now)},
          {"fail_above", options.share < 0 ? ordered_json() : ordered_json(options.share)},
          {"slower_than_allowed", too_slow},
          {"doubts", doubts_of(before, now)},
          {"times", list},
          {"intervals", interval_help()}};
}

int compare_files(Options options) {
  require_spared({{options.before, "the first report"}, {options.now, "the second report"}}, {options.json, options.html});
  check_report_file(options.json);
  if (options.html == "-") throw Error(ErrorKind::usage, "a page goes to a file; name one", "html");
  if (!options.html.empty()) {
    check_report_file(options.html);
    require_plot_script(kPageScript, "--html");
  }
  if (!options.fail_above.empty()) options.share = share_of(options.fail_above);
  const ReportOfTimes before = read_file(options.before), now = read_file(options.now);
  const std::vector<ComparedTime> all = compare(before, now);
  const auto too_slow = options.share < 0 ? std::vector<const ComparedTime*>() : slower_by_more_than(all, options.share);
  if (options.json != "-") print(options, before, now, all);
  const std::string json = to_json(options, before, now, all, too_slow.size()).dump(2) + "\n";
  if (!options.json.empty()) write_report(options.json, json);
  if (!options.html.empty()) plot(kPageScript, json, options.html, "--html");
  if (too_slow.empty()) return 0;
  print_error("shardmat: {} became slower by more than {:g} %, most of all {}: {}, by {:.1f} %\n",
              human_count(std::ssize(too_slow), "time"), 100 * options.share, too_slow.front()->of, too_slow.front()->what,
              100 * (too_slow.front()->ratio - 1));
  return kBecameSlower;
}

}  // namespace

std::function<int()> add_compare(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("compare", "Compare two reports: what became slower or faster, with intervals");
  auto options = std::make_shared<Options>();
  Options& o = *options;
  app.add_option("before", o.before, "JSON report of bench scaling, bench kernels, bench solve, solve or multiply")
      ->required();
  app.add_option("now", o.now, "a later report of the same kind")->required();
  app.in(Topic::computation)
      .add_option("--fail-above", o.fail_above,
                  "exit code 8 if a time became longer by more than this, e.g. 5%, and its interval lies wholly above no "
                  "change, or it has none")
      ->option_text("SHARE")
      ->common();
  app.in(Topic::output).add_flag("--all", o.all, "also show what stayed the same")->common();
  add_json_option(app, o.json);
  app.in(Topic::output)
      .add_option("--html", o.html, "write a page with all times to FILE; it needs no other file (needs python3-matplotlib)")
      ->check(output_name())
      ->type_name("FILE")
      ->common();
  app.footer(std::string(interval_help()) +
             "\n\nExamples:\n  shardmat compare monday.json tuesday.json --html changes.html\n"
             "  shardmat compare main.json mine.json --fail-above 5% || echo slower\n");
  return [options] {
    require_single_process("compare");
    return compare_files(*options);
  };
}

}  // namespace shardmat::tools
