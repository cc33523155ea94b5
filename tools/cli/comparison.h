// What became slower or faster between two reports of one kind: studies, benchmarks of kernels, solves, products.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace shardmat::tools {

/// A time as a report keeps it.
struct MeasuredTime {
  double median = 0;              ///< seconds
  std::vector<double> samples{};  ///< all that it kept; may be empty
  double min = 0, max = 0;        ///< of `count` times; looked at without samples
  std::int64_t count = 1;
};

/// A time that a report has, under what both reports call it.
struct NamedTime {
  std::string of, what;  ///< "poisson27:n=64, 4 ranks", "iteration, exchange auto"
  MeasuredTime time;
};

enum class Verdict { slower, faster, same, one_time, only_before, only_now };
std::string_view name(Verdict verdict);

/// The time of the second report over that of the first.
struct ComparedTime {
  std::string of, what;
  std::optional<MeasuredTime> before, now;
  double ratio = 1, low = 1, high = 1;  ///< with its 90 % interval; low = high: there is none
  std::string interval;                 ///< where that comes from: "bootstrap", "range", "none"
  Verdict verdict = Verdict::same;      ///< slower and faster: the interval does not hold 1
};

/// Of the ratio of two medians; see interval_help().
void find_interval(ComparedTime& one);
/// How intervals are made, in some sentences.
const char* interval_help();

struct ReportOfTimes {
  std::string kind;  ///< "bench scaling", "bench kernels", "bench solve", "solve", "multiply"
  std::string program, date, host, cores, command;
  std::string options = "{}";  ///< JSON: what decides the times
  bool complete = true;        ///< the benchmark came to its end
  double busy_cores = 0;       ///< that other programs kept busy, where the report tells
  std::vector<NamedTime> times;
};

/// Throws Error(input) for a report of another kind, or of another version.
ReportOfTimes read_times(const nlohmann::ordered_json& report, const std::string& file);

/// In the order of the first report, what belongs together side by side. Throws Error(input) if the kinds differ, or if they
/// have no time in common.
std::vector<ComparedTime> compare(const ReportOfTimes& before, const ReportOfTimes& now);

/// Why the times may not stand side by side, a sentence each: other hosts, cores, options, other work, unfinished reports.
std::vector<std::string> doubts_of(const ReportOfTimes& before, const ReportOfTimes& now);

/// What differs between two objects of options: "iterations 5, not 6; type f32, not f64". Empty: nothing.
std::string differences(const nlohmann::ordered_json& kept, const nlohmann::ordered_json& asked);

/// The slowest first: those that became slower by more than this share, in an interval wholly above 1, or in times without
/// any.
std::vector<const ComparedTime*> slower_by_more_than(const std::vector<ComparedTime>& all, double share);

}  // namespace shardmat::tools
