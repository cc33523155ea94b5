#include "tools/bench/service/figures.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/base/text.h"

namespace shardmat::tools::service_bench {

namespace {

constexpr const char* kRow = "  {:<58} {:>14} {:>14}  {}\n";

std::string text_of(double value, Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return human_seconds(value);
    case Unit::per_second:
      return fmt::format("{:.0f}/s", value);
    case Unit::bytes:
      return human_bytes(value);
    case Unit::bytes_per_second:
      return human_bytes(value) + "/s";
    case Unit::share:
      return fmt::format("{:.2f} %", 100 * value);
    case Unit::ratio:
      return fmt::format("{:.2f}", value);
    case Unit::count:
      return human_count(static_cast<std::int64_t>(value));
  }
  return {};
}

std::string name_of(Unit unit) {
  constexpr const char* kNames[] = {"s", "1/s", "B", "B/s", "share", "ratio", "count"};
  return kNames[static_cast<int>(unit)];
}

nlohmann::ordered_json to_json(const Curve& curve) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const Curve::Point& point : curve.points)
    points.push_back({{"clients", point.clients},
                      {"products_per_s", point.per_second},
                      {"p50_s", point.median_seconds},
                      {"p99_s", point.high_seconds},
                      {"median_columns", point.median_columns}});
  return {{"matrix", curve.matrix},
          {"requests", curve.solves ? "solves" : "products"},
          {"vectors", curve.resident ? "resident" : "sent"},
          {"merging", curve.merging},
          {"points", points}};
}

}  // namespace

bool Figure::met() const { return goal == Goal::none || (goal == Goal::at_most ? value <= target : value >= target); }

void Outcome::report(const std::string& what, double value, Unit unit) {
  figures_.push_back({what, value, unit, Goal::none, 0});
}
void Outcome::at_most(const std::string& what, double value, double target, Unit unit) {
  figures_.push_back({what, value, unit, Goal::at_most, target});
}
void Outcome::at_least(const std::string& what, double value, double target, Unit unit) {
  figures_.push_back({what, value, unit, Goal::at_least, target});
}

void Outcome::count(const LoadResult& load) {
  for (const auto& [status, number] : load.statuses()) statuses_[status] += number;
  wrong_ += load.wrong + load.missing;
}

void Outcome::count(int status, bool right) {
  ++statuses_[status];
  if (!right) ++wrong_;
}

std::string figures_heading() { return fmt::format(kRow, "", "target", "result", ""); }

std::string Outcome::text() const {
  std::string answered;
  for (const auto& [status, number] : statuses_)
    answered += fmt::format("{}{} × {}", answered.empty() ? "" : ", ", human_count(number),
                            status == 0 ? "no reply" : std::to_string(status));
  std::string text =
      fmt::format("{}: {}{}; {}, {:.1f} cores of other programs\n", scenario_, answered.empty() ? "no requests" : answered,
                  wrong_ == 0 ? "" : fmt::format(", {} WRONG", wrong_), human_seconds(seconds_), foreign_cores_);
  for (const Figure& figure : figures_) {
    const std::string target =
        figure.goal == Goal::none ? "–" : (figure.goal == Goal::at_most ? "≤ " : "≥ ") + text_of(figure.target, figure.unit);
    const char* verdict = figure.goal == Goal::none ? "" : figure.met() ? "met" : "MISSED";
    text += fmt::format(kRow, figure.what, target, text_of(figure.value, figure.unit), verdict);
  }
  for (const std::string& note : notes_) text += "  " + note + "\n";
  return text;
}

nlohmann::ordered_json Outcome::json() const {
  nlohmann::ordered_json curves = nlohmann::ordered_json::array();
  for (const Curve& curve : curves_) curves.push_back(to_json(curve));
  nlohmann::ordered_json figures = nlohmann::ordered_json::array(), statuses = nlohmann::ordered_json::array();
  for (const Figure& figure : figures_) {
    nlohmann::ordered_json one{{"what", figure.what}, {"value", figure.value}, {"unit", name_of(figure.unit)}};
    if (figure.goal != Goal::none) {
      one["goal"] = figure.goal == Goal::at_most ? "at_most" : "at_least";
      one["target"] = figure.target;
      one["met"] = figure.met();
    }
    figures.push_back(one);
  }
  for (const auto& [status, number] : statuses_) statuses.push_back({{"status", status}, {"count", number}});
  return {{"scenario", scenario_},
          {"figures", figures},
          {"answers", statuses},
          {"wrong", wrong_},
          {"notes", notes_},
          {"seconds", seconds_},
          {"foreign_cores", foreign_cores_},
          {"curves", curves}};
}

}  // namespace shardmat::tools::service_bench
