// Building blocks of all reports, as text for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "comm/placement.h"
#include "kernels/choose/choice.h"
#include "runtime/base/over_ranks.h"
#include "runtime/run/product_report.h"
#include "runtime/timing/iteration_times.h"

namespace shardmat::reporting {

/// Text with titles, and labels and values in two columns.
class Table {
 public:
  /// Adds nothing if `value` is empty.
  void row(std::string_view label, const std::string& value);
  void section(std::string_view title);
  void line(const std::string& text) { text_ += text + "\n"; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// "3 … 5 (mean 4)", or "4" if min, mean and max give the same text.
std::string min_mean_max(const OverRanks& figure, std::string (*text)(double));
std::string count_text(double count);
std::string percent_text(double share);
std::string rate_text(double bytes_per_second);
/// "5 GB/s a rank = 80 % of the copy bandwidth …"; above 100 % the text says that caches must hold the data.
std::string bandwidth_text(double bytes_per_second, double copy_bytes_per_second);
/// One line of a table with the heading "min median max".
std::string times_line(std::string_view label, const IterationTimes& times);

nlohmann::ordered_json json(const OverRanks& figure);
nlohmann::ordered_json json(const IterationTimes& times);
/// The measured kernels, in the given order.
nlohmann::ordered_json json(const std::vector<Measurement>& measurements);
nlohmann::ordered_json json(const std::vector<RankPlace>& ranks);
/// A JSON number; NaN and infinity, which JSON lacks, as text.
nlohmann::ordered_json number(double value);

/// The sections from "Matrix" to "Choices", and the kernels that were compared.
void write_setup(Table& table, const ProductReport& report);
/// The phases: least, mean and most seconds of the ranks.
void write_phases(Table& table, const std::vector<Phase>& phases);
/// Where the time of an iteration goes.
void write_iteration(Table& table, const IterativeReport& report);

nlohmann::ordered_json json_of_matrix(const ProductReport& report);
nlohmann::ordered_json json_of_partition(const ProductReport& report);
nlohmann::ordered_json json_of_ranks(const ProductReport& report);
nlohmann::ordered_json json_of_kernel(const ProductReport& report);
nlohmann::ordered_json json_of_exchange(const ProductReport& report);
nlohmann::ordered_json json_of_phases(const std::vector<Phase>& phases);
/// Adds the times, how the product was made, the memory and the output. `seconds`: of all iterations.
void add_json_of_run(const IterativeReport& report, double seconds, nlohmann::ordered_json& j);

}  // namespace shardmat::reporting
