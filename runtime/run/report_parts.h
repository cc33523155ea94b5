// What the reports of several operations are made of, for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "comm/placement.h"
#include "kernels/choose/tuner.h"
#include "runtime/timing/iterate.h"
#include "runtime/over_ranks.h"

namespace shardmat::reporting {

/// Labels and values in two columns, under titles.
class Table {
 public:
  /// Left out if there is no value.
  void row(std::string_view label, const std::string& value);
  void section(std::string_view title);
  void line(const std::string& text) { text_ += text + "\n"; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// "3 … 5 (mean 4)", or "4" where all are the same in words.
std::string min_mean_max(const OverRanks& figure, std::string (*text)(double));
std::string count_text(double count);
std::string percent_text(double share);
std::string rate_text(double bytes_per_second);
/// "5 GB/s a rank = 80 % of the copy bandwidth …", or that caches must hold the data if it is more.
std::string bandwidth_text(double bytes_per_second, double copy_bytes_per_second);
/// A line under "min median max".
std::string times_line(std::string_view label, const IterationTimes& times);

nlohmann::ordered_json json(const OverRanks& figure);
nlohmann::ordered_json json(const IterationTimes& times);
/// The kernels that were measured, as they come.
nlohmann::ordered_json json(const std::vector<Measurement>& measurements);
nlohmann::ordered_json json(const std::vector<RankPlace>& ranks);
/// JSON has no NaN or infinity: as text.
nlohmann::ordered_json number(double value);

}  // namespace shardmat::reporting
