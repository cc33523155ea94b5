#include "tools/serve/observe/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardmat::serve {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c == '\n') result += "\\n";
    else if (c == '"' || c == '\\') result += {'\\', c};
    else result += c;
  return result;
}

}  // namespace

void Histogram::add(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  sum_ += value;
}

void PrometheusText::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void PrometheusText::line(std::string_view suffix, const Labels& labels, double value) {
  text_ += name_;
  text_ += suffix;
  for (std::size_t i = 0; i < labels.size(); ++i)
    text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first, escaped(labels[i].second));
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", number(value));
}

void PrometheusText::sample(double value, const Labels& labels) { line("", labels, value); }

void PrometheusText::sample(const Histogram& histogram, const Labels& labels) {
  std::uint64_t count = 0;
  Labels with_bound = labels;
  with_bound.emplace_back("le", "");
  for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
    count += histogram.counts()[i];
    with_bound.back().second = i < histogram.bounds().size() ? number(histogram.bounds()[i]) : "+Inf";
    line("_bucket", with_bound, static_cast<double>(count));
  }
  line("_sum", labels, histogram.sum());
  line("_count", labels, static_cast<double>(count));
}

}  // namespace shardmat::serve
