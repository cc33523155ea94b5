// What a scenario found: figures with their targets, what was answered, and curves for the picture.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/bench/service/load.h"

namespace shardmat::tools::service_bench {

enum class Goal { none, at_most, at_least };
enum class Unit { seconds, per_second, bytes, bytes_per_second, share, ratio, count };

struct Figure {
  std::string what;
  double value = 0;
  Unit unit = Unit::ratio;
  Goal goal = Goal::none;
  double target = 0;

  /// Without a goal: true.
  bool met() const;
};

/// A line of the picture: products or solves with one matrix, vectors that stay or are sent, merged or not, by the number of
/// clients.
struct Curve {
  struct Point {
    int clients = 0;
    double per_second = 0, median_seconds = 0, high_seconds = 0;  ///< high: of 99 % of the requests
    double median_columns = 0;                                    ///< of the product or solve that a request was part of
  };
  std::string matrix;
  bool resident = false, merging = true;
  std::vector<Point> points;
  bool solves = false;  ///< in place of products
};

class Outcome {
 public:
  explicit Outcome(std::string scenario) : scenario_(std::move(scenario)) {}

  void report(const std::string& what, double value, Unit unit);
  void at_most(const std::string& what, double value, double target, Unit unit);
  void at_least(const std::string& what, double value, double target, Unit unit);
  void note(const std::string& text) { notes_.push_back(text); }
  /// Adds what a load was answered. A request without any answer counts as wrong.
  void count(const LoadResult& load);
  /// Adds replies that were compared one by one.
  void count(int status, bool right);
  void add(Curve curve) { curves_.push_back(std::move(curve)); }

  /// Seconds that it took, and the cores that other programs used meanwhile.
  void finish(double seconds, double foreign_cores) { seconds_ = seconds, foreign_cores_ = foreign_cores; }

  const std::string& scenario() const { return scenario_; }
  std::int64_t wrong() const { return wrong_; }
  std::string text() const;
  nlohmann::ordered_json json() const;

 private:
  std::string scenario_;
  std::vector<Figure> figures_;
  std::vector<std::string> notes_;
  std::map<int, std::int64_t> statuses_;
  std::int64_t wrong_ = 0;
  double seconds_ = 0, foreign_cores_ = 0;
  std::vector<Curve> curves_;
};

/// The heading of the texts of all outcomes.
std::string figures_heading();

}  // namespace shardmat::tools::service_bench
