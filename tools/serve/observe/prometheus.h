// Figures in the text format of Prometheus (version 0.0.4).
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardmat::serve {

/// Counts values by ranges.
class Histogram {
 public:
  /// REQUIRES: ascending bounds.
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void add(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  /// Of values up to each bound and above the one before, then of those above all bounds.
  const std::vector<std::uint64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// Begins the samples of one name. `type`: counter, gauge or histogram.
  void family(std::string_view name, std::string_view type, std::string_view help);
  /// A sample of the family.
  void sample(double value, const Labels& labels = {});
  void sample(const Histogram& histogram, const Labels& labels = {});
  const std::string& text() const { return text_; }

 private:
  void line(std::string_view suffix, const Labels& labels, double value);

  std::string name_, text_;
};

}  // namespace shardmat::serve
