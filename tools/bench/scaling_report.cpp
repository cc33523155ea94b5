#include "tools/bench/scaling_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/base/text.h"
#include "tools/bench/scaling_notes.h"
#include "tools/bench/study_runs.h"
#include "tools/cli/forecast.h"
#include "tools/cli/samples.h"

namespace shardmat::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kLineWidth = 120;

/// Figures of the matrix are known if one of its cases was measured.
std::string heading(const ScalingStudy& study, const ScalingCase& first) {
  std::string line = fmt::format("{} ({} scaling)", first.matrix, first.scaling());
  for (const ScalingCase& one : study.cases)
    if (one.matrix == first.matrix && one.measured()) {
      const MultiplyReport& r = one.report;
      line += fmt::format(": {} rows, {} nonzeros{}, {}{}, {} on {}{}", human_count(r.rows), human_count(r.nnz),
                          one.weak() ? fmt::format(" on {}", one.ranks) : "", study.type,
                          study.right_hand_sides > 1 ? fmt::format(", {} right-hand sides", study.right_hand_sides) : "",
                          r.backend, r.ranks[0].device,
                          study.threads == 0 ? "" : fmt::format(", {} a rank", counted(study.threads, "thread")));
      break;
    }
  return wrapped(line, 0, kLineWidth) +
         fmt::format(" {:>5} {:<15} {:>10} {:>10} {:>11} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8}\n", "ranks", "exchange",
                     "whole =", "product +", "imbalance +", "waiting", "x alone", "x received", "predicted", "efficiency",
                     "GFLOP/s");
}

std::size_t hosts(const MultiplyReport& r) {
  std::set<std::string> names;
  for (const RankPlace& rank : r.ranks) names.insert(rank.host);
  return names.size();
}

/// RFC 4180: quoted if it holds what separates fields.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted;
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return fmt::format("\"{}\"", quoted);
}
template <class T>
std::string field(T number) {
  return fmt::format("{}", number);
}

using Study = ScalingStudy;
using Case = ScalingCase;
using Text = std::function<std::string(const Study&, const Case&)>;

/// Known before anything is measured; `get` takes the study and the case.
Text given(auto get) {
  return [get](const Study& study, const Case& one) { return field(get(study, one)); };
}
/// Empty in a case that has none; `get` takes the case and its report.
Text figure(auto get) {
  return [get](const Study&, const Case& one) { return one.measured() ? field(get(one, one.report)) : std::string(); };
}

struct Column {
  const char *name, *meaning;
  Text text;
};
const Column kColumns[] = {
    {"matrix", "as named; numbers in braces grow with the ranks", given([](auto&, auto& c) { return c.matrix; })},
    {"scaling", "strong or weak", given([](auto&, auto& c) { return std::string(c.scaling()); })},
    {"ranks", "number of ranks that shared the matrix", given([](auto&, auto& c) { return c.ranks; })},
    {"exchange_asked", "exchange of x that was asked for", given([](auto&, auto& c) { return c.exchange; })},
    {"threads_per_rank", "host threads of each rank", figure([](auto&, auto& r) { return r.threads_per_rank; })},
    {"type", "type of the values", given([](auto& s, auto&) { return s.type; })},
    {"right_hand_sides", "right-hand sides multiplied at once", given([](auto& s, auto&) { return s.right_hand_sides; })},
    {"column_block", "right-hand sides that moved and were multiplied at a time",
     figure([](auto&, auto& r) { return r.column_block; })},
    {"hosts", "number of hosts that the ranks ran on", figure([](auto&, auto& r) { return hosts(r); })},
    {"exchange", "exchange of x that was taken", figure([](auto&, auto& r) { return r.exchange; })},
    {"backend", "cuda or host", figure([](auto&, auto& r) { return r.backend; })},
    {"device", "device of rank 0", figure([](auto&, auto& r) { return r.ranks[0].device; })},
    {"kernel", "kernel of rank 0, with its policy", figure([](auto&, auto& r) { return r.kernel_of_rank[0]; })},
    {"rows", "rows of the matrix", figure([](auto&, auto& r) { return r.rows; })},
    {"nonzeros", "nonzeros of the matrix", figure([](auto&, auto& r) { return r.nnz; })},
    {"nonzeros_max_over_mean", "most nonzeros of a rank, divided by the mean",
     figure([](auto&, auto& r) { return r.imbalance; })},
    {"iterations", "number of timed iterations", figure([](auto&, auto& r) { return r.iteration.iterations; })},
    {"iteration_median_s", "median time of exchange and product, slowest rank",
     figure([](auto&, auto& r) { return r.iteration.median; })},
    {"iteration_min_s", "shortest iteration", figure([](auto&, auto& r) { return r.iteration.min; })},
    {"iteration_max_s", "longest iteration", figure([](auto&, auto& r) { return r.iteration.max; })},
    {"product_mean_s", "product alone, mean over ranks of each rank's median",
     figure([](auto&, auto& r) { return r.local.of_ranks.mean; })},
    {"product_max_s", "product alone, median of the slowest rank",
     figure([](auto&, auto& r) { return r.local.of_ranks.max; })},
    {"product_s", "product_mean_s, at most the iteration; product_s, imbalance_s and waiting_s add up to iteration_median_s",
     figure([](auto& c, auto&) { return c.product(); })},
    {"imbalance_s", "product_max_s, at most the iteration, less product_s",
     figure([](auto& c, auto&) { return c.imbalance(); })},
    {"waiting_s", "rest of the iteration, in which a rank waits for x", figure([](auto& c, auto&) { return c.waiting(); })},
    {"exchange_alone_s", "exchange without a product at the same time, slowest rank",
     figure([](auto&, auto& r) { return r.exchange_times.median; })},
    {"received_max_bytes", "most bytes of x that a rank receives in an iteration",
     figure([](auto&, auto& r) { return r.exchange_bytes.max; })},
    {"efficiency", "share of perfect scaling from base_ranks: strong T0*R0/(T*R), weak T0/T",
     figure([](auto& c, auto&) { return c.efficiency; })},
    {"base_ranks", "ranks of the case that efficiency compares with: the fewest ranks, with the fastest exchange",
     figure([](auto& c, auto&) { return c.base_ranks; })},
    {"flop_per_s", "2 * nonzeros * right_hand_sides / iteration_median_s",
     figure([](auto&, auto& r) { return 1e9 * r.gflops; })},
    {"product_bytes_per_s", "compulsory bytes of the product alone, mean over ranks",
     figure([](auto&, auto& r) { return r.bandwidth.mean; })},
    {"copy_bytes_per_s", "copy bandwidth, read plus written, mean over ranks",
     figure([](auto&, auto& r) { return r.copy_bandwidth.mean; })},
    {"predicted_iteration_s", "iteration time that the model predicts; empty without a model",
     given([](auto&, auto& c) { return c.forecast ? fmt::format("{}", c.forecast->iteration) : std::string(); })},
    {"device_max_bytes", "most memory of a rank for matrix, x and y",
     figure([](auto&, auto& r) { return r.device_bytes.max; })},
    {"verification", "passed, or not asked for",
     figure([](auto&, auto& r) { return std::string(r.verification ? "passed" : "not asked for"); })},
    {"notes", "reasons to doubt the figures, and their likely cause",
     figure([](auto& c, auto&) { return fmt::format("{}", fmt::join(c.notes, "; ")); })},
    {"reason", "why there are no figures: it did not fit, or the result was wrong",
     given([](auto&, auto& c) { return c.why_not; })},
};

ordered_json json(const ScalingCase& one) {
  ordered_json j{{"matrix", one.matrix}, {"weak", one.weak()}, {"ranks", one.ranks}, {"exchange_asked", one.exchange}};
  if (!one.measured()) {
    j["why_not"] = one.why_not;
    return j;
  }
  j["efficiency"] = one.efficiency;
  j["base_ranks"] = one.base_ranks;
  if (one.forecast)
    j["forecast"] = {{"iteration_s", one.forecast->iteration}, {"product_s", one.forecast->product},
                     {"exchange_s", one.forecast->exchange},   {"exchange", one.forecast->moved_by},
                     {"unsteady_s", one.forecast->unsteady},   {"overlapped", one.forecast->overlapped}};
  j["breakdown"] = {{"product_s", one.product()}, {"imbalance_s", one.imbalance()}, {"waiting_s", one.waiting()}};
  j["notes"] = one.notes;
  j["host_ranks"] = one.host_ranks;
  j["host_cores"] = one.host_cores;
  j["samples_s"] = kept_samples(one.report.iteration.samples, one.kept.empty() ? one.report.iteration.together : 1);
  j["report"] = ordered_json::parse(one.kept.empty() ? to_json(one.report) : one.kept);
  return j;
}

/// With one digit behind the point, or with three significant ones if it would be wider than a column of the table.
std::string narrow_figure(double value) { return value < 1e5 ? fmt::format("{:.1f}", value) : fmt::format("{:.2e}", value); }

std::string line_of(const ScalingCase& one) {
  const MultiplyReport& r = one.report;
  if (!one.measured()) {
    const std::string begins = fmt::format(" {:>5} {:<15} ", one.ranks, one.exchange);
    return begins + wrapped(one.why_not, begins.size(), kLineWidth).substr(begins.size());
  }
  return fmt::format(" {:>5} {:<15} {:>10} {:>10} {:>11} {:>10} {:>10} {:>10} {:>10} {:>8} % {:>8}{}\n", one.ranks,
                     one.ranks > 1 && one.exchange == "auto" ? "auto: " + r.exchange : r.exchange,
                     human_seconds(one.iteration()), human_seconds(one.product()), human_seconds(one.imbalance()),
                     human_seconds(one.waiting()), human_seconds(r.exchange_times.median),
                     human_bytes(static_cast<double>(r.exchange_bytes.max)),
                     one.forecast ? human_seconds(one.forecast->iteration) : "-", narrow_figure(100 * one.efficiency),
                     narrow_figure(r.gflops), one.notes.empty() ? "" : " !");
}

/// Of all cases of a matrix.
std::string notes_of(const ScalingStudy& study, const std::string& matrix) {
  std::string text;
  for (const ScalingCase& one : study.cases)
    if (one.matrix == matrix)
      for (const std::string& note : one.notes)
        text +=
            wrapped(fmt::format("note: {}, {}: {}", counted(one.ranks, "rank"), one.report.exchange, note), 2, kLineWidth);
  return text;
}

}  // namespace

void find_efficiencies(std::vector<ScalingCase>& cases) {
  for (ScalingCase& one : cases) {
    const ScalingCase* first = nullptr;  // of the fewest ranks the fastest
    for (const ScalingCase& other : cases)
      if (other.matrix == one.matrix && other.measured() &&
          (first == nullptr || other.ranks < first->ranks ||
           (other.ranks == first->ranks && other.report.iteration.median < first->report.iteration.median)))
        first = &other;
    if (first == nullptr || !one.measured()) continue;
    one.base_ranks = first->ranks;
    one.efficiency = first->report.iteration.median / one.report.iteration.median;
    if (!one.weak()) one.efficiency *= static_cast<double>(first->ranks) / one.ranks;
    one.notes = notes_of(one, *first);
  }
}

std::string table(const ScalingStudy& study) {
  std::string text;
  if (study.cases.empty()) return table(study.solves) + text_of_runs(study.runs);
  for (std::size_t i = 0; i < study.cases.size(); ++i) {
    const ScalingCase& one = study.cases[i];
    if (i == 0 || one.matrix != study.cases[i - 1].matrix) {
      text += (i > 0 ? "\n" : "") + heading(study, one);
    }
    text += line_of(one);
    if (i + 1 == study.cases.size() || study.cases[i + 1].matrix != one.matrix) text += notes_of(study, one.matrix);
  }
  text += fmt::format(
      "\nwhole: an iteration, median of {}, slowest rank; product: alone, mean over ranks; imbalance: what the slowest "
      "rank's\n"
      "takes longer; waiting: for x, as far as no product hides it; x alone: exchange with nothing beside it; x received: "
      "most\n"
      "bytes of x that a rank receives in an iteration; predicted: an iteration, by a model of one rank and of the links\n"
      "(shardmat predict); efficiency: of perfect scaling from the fastest of the fewest ranks (strong: time falls as "
      "1/ranks;\n"
      "weak: time stays); !: see the note\n",
      study.iterations);
  for (const std::string& why : study.no_forecasts) text += wrapped("no forecast for " + why, 0, kLineWidth);
  if (!study.solves.empty()) text += "\n" + table(study.solves);
  return text + text_of_runs(study.runs);
}

ordered_json to_json(const ScalingStudy& study) {
  ordered_json cases = ordered_json::array();
  for (const ScalingCase& one : study.cases) cases.push_back(json(one));
  ordered_json solves = ordered_json::array(), runs = ordered_json::array();
  for (const SolveCase& one : study.solves) solves.push_back(to_json(one));
  for (const std::string& one : study.runs) runs.push_back(ordered_json::parse(one));
  ordered_json models = ordered_json::array();
  for (const auto& [matrix, model] : study.models) {
    ordered_json one{{"matrix", matrix}};
    one.update(to_json(model));
    models.push_back(std::move(one));
  }
  return {{"command", study.command},
          {"date", study.date},
          {"host", study.host},
          {"folder", study.folder},
          {"software", study.software},
          {"ranks", study.ranks},
          {"threads_per_rank", study.threads == 0 ? ordered_json() : ordered_json(study.threads)},
          {"type", study.type},
          {"right_hand_sides", study.right_hand_sides},
          {"iterations", study.iterations},
          {"overlap", std::any_of(study.cases.begin(), study.cases.end(),
                                  [](const ScalingCase& one) { return one.measured() && one.report.overlapped.max > 0; })},
          {"models", models},
          {"no_forecasts", study.no_forecasts},
          {"asked", ordered_json::parse(study.asked)},
          {"runs", runs},
          {"cases", cases},
          {"solves", solves}};
}

std::string to_csv(const ScalingStudy& study) {
  std::string text;
  const auto line = [&](auto field_of) {
    for (const Column& column : kColumns) text += fmt::format("{}{}", &column == kColumns ? "" : ",", field_of(column));
    text += "\r\n";
  };
  line([](const Column& column) { return std::string(column.name); });
  for (const auto* cases : {&study.cases, &study.to_come})
    for (const ScalingCase& one : *cases) line([&](const Column& column) { return column.text(study, one); });
  return text;
}

std::string csv_help() {
  std::string text;
  for (const Column& column : kColumns) text += fmt::format("  {:<22}  {}\n", column.name, column.meaning);
  return text;
}

}  // namespace shardmat::tools
