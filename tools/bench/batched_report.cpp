#include "tools/bench/batched_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/text.h"
#include "tools/bench/result_table.h"

namespace shardmat::tools {
namespace {

constexpr std::int64_t kFewColumns = 128;
constexpr std::size_t kLineWidth = 110;
constexpr double kLoss = 0.95;  ///< speed-ups below are told one by one

const char* key(Way way) { return way == Way::warm ? "warm" : way == Way::placed ? "with_descriptors" : "cold"; }

const char* title(Way way) {
  switch (way) {
    case Way::warm:
      return "warm caches, back to back";
    case Way::placed:
      return "warm caches, descriptors and pointers copied to the device each time";
    default:
      return "caches flushed before each product";
  }
}

/// On the device; of what is only called plainly, so.
std::optional<double> seconds(const BatchedResult& r, Way way, bool plain) {
  const std::optional<Timing>& timing = plain && way == Way::warm     ? r.plain
                                        : plain && way == Way::placed ? r.plain_placed
                                        : plain                       ? std::nullopt
                                        : way == Way::warm            ? r.graph
                                        : way == Way::placed          ? r.graph_placed
                                                                      : r.cold;
  return timing ? std::optional(timing->median) : std::nullopt;
}
std::optional<double> seconds(const BatchedResult& r, Way way) { return seconds(r, way, !r.graph); }

bool right(const BatchedResult& r) { return r.refused.empty() && r.wrong == 0; }

/// Of ours over another, like with like: calls with calls, replayed graphs with replayed graphs.
std::optional<double> speed_up(const BatchedCase& c, const BatchedResult& other, Way way) {
  const BatchedResult* ours = c.ours();
  if (ours == nullptr || ours == &other || !right(other)) return std::nullopt;
  const auto of_other = seconds(other, way), of_ours = seconds(*ours, way, !other.graph);
  return of_other && of_ours ? std::optional(*of_other / *of_ours) : std::nullopt;
}

Cell figure_or_none(const std::optional<double>& value, int digits) {
  return value ? Cell::figure(*value, digits) : Cell::none();
}

const BatchedResult* find(const BatchedCase& c, const std::string& method) {
  const auto at =
      std::find_if(c.results.begin(), c.results.end(), [&](const BatchedResult& r) { return r.method == method; });
  return at != c.results.end() ? &*at : nullptr;
}

/// Name and heading of every method that was measured, in order.
std::vector<Column> methods(std::span<const BatchedCase> cases) {
  std::vector<Column> result;
  for (const BatchedCase& c : cases)
    for (const BatchedResult& r : c.results)
      if (r.refused.empty() &&
          std::none_of(result.begin(), result.end(), [&](const Column& m) { return m.key == r.method; }))
        result.push_back({r.method, r.heading});
  return result;
}

ResultTable speeds(std::span<const BatchedCase> cases, Way way) {
  ResultTable table;
  table.title = fmt::format("GFLOP/s, {}", title(way));
  table.columns = {{"rhs", "n_B"}};
  const std::vector<Column> all = methods(cases);
  table.columns.insert(table.columns.end(), all.begin(), all.end());
  if (way != Way::cold) table.columns.push_back({"plain", "ours, no graph"});
  for (const BatchedCase& c : cases) {
    const auto speed = [&](const BatchedResult* r, std::optional<double> time) {
      return r != nullptr && right(*r) && time ? Cell::figure(1e-9 * c.flops() / *time, 1) : Cell::none();
    };
    table.rows.push_back({Cell::count(c.rhs)});
    for (const Column& method : all) {
      const BatchedResult* r = find(c, method.key);
      table.rows.back().push_back(speed(r, r != nullptr ? seconds(*r, way) : std::nullopt));
    }
    const BatchedResult* ours = c.ours();
    if (way != Way::cold)
      table.rows.back().push_back(speed(ours, ours != nullptr ? seconds(*ours, way, true) : std::nullopt));
  }
  return table;
}

ResultTable speed_ups(std::span<const BatchedCase> cases, Way way, double copy_bandwidth) {
  ResultTable table;
  table.title = "times as fast as, and against copying as many bytes as a product must move";
  table.columns = {{"rhs", "n_B"}, {"us", "ours µs"}};
  std::vector<Column> others;
  for (const Column& method : methods(cases))
    if (std::any_of(cases.begin(), cases.end(), [&](const BatchedCase& c) {
          const BatchedResult* r = find(c, method.key);
          return r != nullptr && speed_up(c, *r, way);
        }))
      others.push_back(method);
  table.columns.insert(table.columns.end(), others.begin(), others.end());
  for (const Column& column :
       {Column{"of_copy_rate", "of copy rate"}, {"copy_us", "copy µs"}, {"of_copy", "× copy"}, {"choice", "ours"}})
    table.columns.push_back(column);
  for (const BatchedCase& c : cases) {
    const BatchedResult* ours = c.ours();
    const auto time = ours != nullptr ? seconds(*ours, way) : std::nullopt;
    if (!time) continue;
    table.rows.push_back({Cell::count(c.rhs), Cell::figure(1e6 * *time, 2)});
    for (const Column& method : others) {
      const BatchedResult* r = find(c, method.key);
      table.rows.back().push_back(figure_or_none(r != nullptr ? speed_up(c, *r, way) : std::nullopt, 2));
    }
    const auto copy = seconds(c.copy, way);
    table.rows.back().push_back(Cell::share_of_copy(static_cast<double>(c.compulsory_bytes) / *time / copy_bandwidth));
    table.rows.back().push_back(figure_or_none(copy ? std::optional(1e6 * *copy) : std::nullopt, 2));
    table.rows.back().push_back(figure_or_none(copy ? std::optional(*time / *copy) : std::nullopt, 2));
    table.rows.back().push_back(Cell::word(ours->choice));
  }
  return table;
}

struct Gathered {
  double least = 0, logs = 0;
  int count = 0;

  void add(double ratio) {
    least = count == 0 ? ratio : std::min(least, ratio);
    logs += std::log(ratio);
    ++count;
  }
  double mean() const { return std::exp(logs / count); }
};

std::string case_name(const BatchedCase& c) { return fmt::format("{} {} n_B {}", c.figure, name(c.type), c.rhs); }

/// Indented lines of items, broken before they become too long.
std::string listed(const std::vector<std::string>& items) {
  std::string text, line;
  for (const std::string& item : items) {
    if (!line.empty() && line.size() + item.size() > kLineWidth) text += "  " + line + "\n", line.clear();
    line += (line.empty() ? "" : "; ") + item;
  }
  return text + "  " + line + "\n";
}

/// Lowest and geometric mean of every speed-up, and where ours loses.
std::string summary_of(const BatchedReport& report, Way way) {
  ResultTable table;
  table.title = fmt::format("Speed-ups over all cases, {}", title(way));
  table.columns = {{"over", "over"},
                   {"least_few", fmt::format("lowest, n_B ≤ {}", kFewColumns)},
                   {"mean_few", "geometric mean"},
                   {"least", "lowest, all"},
                   {"mean", "geometric mean"},
                   {"cases", "cases"}};
  std::string losses;
  for (const Column& method : methods(report.cases)) {
    Gathered few, all;
    std::vector<std::string> lost;
    for (const BatchedCase& c : report.cases) {
      const BatchedResult* r = find(c, method.key);
      const auto ratio = r != nullptr ? speed_up(c, *r, way) : std::nullopt;
      if (!ratio) continue;
      all.add(*ratio);
      if (c.rhs <= kFewColumns) few.add(*ratio);
      if (*ratio < kLoss) lost.push_back(fmt::format("{} {:.3f}", case_name(c), *ratio));
    }
    if (all.count == 0) continue;
    table.rows.push_back({Cell::word(method.key), few.count > 0 ? Cell::figure(few.least, 2) : Cell::none(),
                          few.count > 0 ? Cell::figure(few.mean(), 2) : Cell::none(), Cell::figure(all.least, 2),
                          Cell::figure(all.mean(), 2), Cell::count(all.count)});
    if (!lost.empty()) losses += fmt::format("more than 5 % slower than {}:\n{}", method.key, listed(lost));
  }
  return table.rows.empty() ? "" : "\n" + table.text() + losses;
}

nlohmann::ordered_json timing_json(const std::optional<Timing>& timing) {
  if (!timing) return nullptr;
  return {
      {"median_s", timing->median}, {"min_s", timing->min}, {"max_s", timing->max}, {"repetitions", timing->repetitions}};
}

nlohmann::ordered_json result_json(const BatchedCase& c, const BatchedResult& r, const std::vector<Way>& ways) {
  nlohmann::ordered_json json{{"method", r.method}, {"heading", r.heading}, {"own", r.own}};
  if (!r.refused.empty()) {
    json["refused"] = r.refused;
    return json;
  }
  json["choice"] = r.choice;
  json["wrong_entries"] = r.wrong;
  json["wrong_choices"] = r.wrong_choices;
  json["times"] = {{"plain", timing_json(r.plain)},
                   {"graph", timing_json(r.graph)},
                   {"plain_with_descriptors", timing_json(r.plain_placed)},
                   {"graph_with_descriptors", timing_json(r.graph_placed)},
                   {"cold", timing_json(r.cold)}};
  for (const Way way : ways) {
    const auto time = seconds(r, way);
    json["gflops"][key(way)] = time ? nlohmann::ordered_json(1e-9 * c.flops() / *time) : nlohmann::ordered_json();
    const auto ratio = speed_up(c, r, way);
    json["speed_up"][key(way)] = ratio ? nlohmann::ordered_json(*ratio) : nlohmann::ordered_json();
  }
  return json;
}

}  // namespace

const BatchedResult* BatchedCase::ours() const {
  const BatchedResult* best = nullptr;
  for (const BatchedResult& r : results) {
    if (!r.own || !right(r)) continue;
    if (r.method == "auto") return &r;
    if (best == nullptr || r.graph->median < best->graph->median) best = &r;
  }
  return best;
}

std::vector<Way> BatchedReport::ways() const {
  std::vector<Way> ways{Way::warm};
  if (machine.device.backend == Backend::cuda) ways.push_back(Way::placed);
  if (cold) ways.push_back(Way::cold);
  return ways;
}

std::string figure_text(const BatchedReport& report, std::span<const BatchedCase> cases) {
  const BatchedCase& any = cases.front();
  std::string text = fmt::format("\n{}{}, {}: {} matrices, {} rows, {} nonzeros\n", any.figure,
                                 any.figure == any.source ? "" : " (" + any.source + ")", name(any.type),
                                 human_count(any.batch.count), human_count(any.batch.rows), human_count(any.batch.nnz));
  for (const Way way : report.ways()) {
    text += "\n" + speeds(cases, way).text();
    const ResultTable ratios = speed_ups(cases, way, report.machine.copy_bandwidth);
    if (!ratios.rows.empty()) text += "\n" + ratios.text();
  }
  return text;
}

std::string summary_text(const BatchedReport& report) {
  std::string text =
      "\nGFLOP/s: 2 · nonzeros · n_B over the time of a product, on the device; \"cuSPARSE\" and \"no graph\" are calls "
      "with the "
      "gaps\nthat launching leaves, and are compared with each other. Copy: a copy on the device that reads and writes as "
      "many "
      "bytes\ntogether as A, X and Y have, timed likewise; it may beat the copy rate of large arrays where caches hold it "
      "all\n";
  for (const Way way : report.ways()) text += summary_of(report, way);
  std::vector<std::string> lines;
  for (const BatchedCase& c : report.cases)
    for (const BatchedResult& r : c.results) {
      if (!r.refused.empty())
        lines.push_back(fmt::format("not measured: {} {}: {} {}", c.figure, name(c.type), r.method, r.refused));
      if (r.wrong > 0)
        lines.push_back(fmt::format("WRONG: {}: {} ({}) in {} entries", case_name(c), r.method, r.choice, r.wrong));
      else if (!r.wrong_choices.empty())
        lines.push_back(fmt::format("left out as wrong: {}: {}, {}", case_name(c), r.method, r.wrong_choices));
    }
  for (const std::string& note : report.notes) lines.push_back("not measured: " + note);
  std::vector<std::string> told;
  for (const std::string& line : lines)
    if (std::find(told.begin(), told.end(), line) == told.end()) told.push_back(line), text += line + "\n";
  return text;
}

nlohmann::ordered_json to_json(const BatchedReport& report) {
  nlohmann::ordered_json json;
  json["machine"] = report.machine.json();
  json["repetitions"] = report.repetitions;
  json["verified"] = report.verified;
  json["not_measured"] = report.notes;
  json["cases"] = nlohmann::ordered_json::array();
  for (const BatchedCase& c : report.cases) {
    nlohmann::ordered_json one{{"figure", c.figure}, {"source", c.source}, {"type", std::string(name(c.type))}};
    one["batch"] = {{"count", c.batch.count}, {"rows", c.batch.rows}, {"cols", c.batch.cols}, {"nnz", c.batch.nnz}};
    one["rhs"] = c.rhs;
    one["compulsory_bytes"] = c.compulsory_bytes;
    one["copy"] = {{"graph", timing_json(c.copy.graph)}, {"cold", timing_json(c.copy.cold)}};
    const BatchedResult* ours = c.ours();
    one["ours"] = ours != nullptr ? nlohmann::ordered_json(ours->method) : nlohmann::ordered_json();
    one["results"] = nlohmann::ordered_json::array();
    for (const BatchedResult& r : c.results) one["results"].push_back(result_json(c, r, report.ways()));
    json["cases"].push_back(std::move(one));
  }
  return json;
}

std::int64_t count_wrong(const BatchedReport& report) {
  std::int64_t sum = 0;
  for (const BatchedCase& c : report.cases)
    sum += std::count_if(c.results.begin(), c.results.end(), [](const BatchedResult& r) { return r.wrong > 0; });
  return sum;
}

}  // namespace shardmat::tools
