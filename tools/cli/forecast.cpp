#include "tools/cli/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "comm/exchange/exchange.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/shortened.h"
#include "kernels/base/text.h"
#include "partition/files/json.h"
#include "partition/source/node_blocks.h"
#include "tools/cli/growing_matrix.h"
#include "tools/cli/progress_bar.h"

namespace shardmat::tools {

using nlohmann::ordered_json;

namespace {

constexpr double kMostSeconds = 1e6;
constexpr double kMostCount = 0x1p60;
constexpr double kMostRanks = 1e6;

/// Why a study has no models, if it says so.
std::string reasons(const ordered_json& study) {
  std::string text;
  for (const ordered_json& why : study.value("no_forecasts", ordered_json::array()))
    text += (text.empty() ? ". It has no forecast for " : "; ") + why.get<std::string>();
  return shortened(text);
}

/// The number json[key]. Throws Error(input) naming the field unless it is from `least` to `most`.
double figure(const ordered_json& json, const char* key, double least, double most) {
  const ordered_json& value = json.at(key);
  const double number = value.is_number() ? value.get<double>() : least - 1;
  if (!(number >= least && number <= most))
    throw Error(ErrorKind::input,
                fmt::format("the field {} is {}; it must be a number from {:g} to {:g}", key,
                            shortened(value.dump(-1, ' ', false, ordered_json::error_handler_t::replace)), least, most));
  return number;
}

double figure(const ordered_json& json, const char* key, double least, double most, double absent) {
  return json.contains(key) ? figure(json, key, least, most) : absent;
}

std::int64_t count(const ordered_json& json, const char* key, double least, double most) {
  return static_cast<std::int64_t>(figure(json, key, least, most));
}

/// The matrix that a model or a case is of: a file or a generator.
std::string matrix_of(const ordered_json& json) {
  constexpr std::size_t kLongestName = 4096;
  std::string name = json.at("matrix");
  if (name.size() > kLongestName)
    throw Error(ErrorKind::input,
                fmt::format("the field matrix is longer than {} bytes: {}", kLongestName, shortened(name)));
  return name;
}

/// The name of an exchange between several ranks.
std::string exchange_of(const ordered_json& json) {
  const std::string name = json.at("name");
  std::vector<std::string> names;
  for (const ExchangeEntry& entry : exchanges())
    if (entry.ranks == ExchangeRanks::several) names.emplace_back(entry.name);
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error(ErrorKind::input,
                fmt::format("the field name of an exchange is '{}'; it must be {}", shortened(name), join_choices(names)));
  return name;
}

ProductCost product_from_json(const ordered_json& json) {
  std::vector<ProductCost::Point> points;
  for (const ordered_json& point : json) {
    const std::int64_t nnz = count(point, "nnz", 0, kMostCount);
    if (!points.empty() && nnz <= points.back().nnz)
      throw Error(ErrorKind::input, fmt::format("the field nnz is {} after {}; it must ascend", nnz, points.back().nnz));
    points.push_back({nnz, figure(point, "seconds", 0, kMostSeconds)});
  }
  return ProductCost(std::move(points));
}

int hosts_of(const ordered_json& measured) {
  std::set<std::string> names;
  for (const ordered_json& rank : measured.at("ranks")) names.insert(rank.at("host").get<std::string>());
  return static_cast<int>(names.size());
}

/// The fastest of the runs on each number of ranks and hosts.
void add_measured(const ordered_json& report, StudiedMatrix& studied) {
  for (const ordered_json& c : report.at("cases")) {
    if (matrix_of(c) != studied.matrix || !c.contains("report")) continue;
    const ordered_json& measured = c.at("report");
    const bool in_blocks = measured.at("exchange").value("column_block_why", "") != "";
    if (in_blocks) continue;  // of columns, which the model does not know
    const int ranks = static_cast<int>(count(c, "ranks", 1, kMostRanks)), hosts = hosts_of(measured);
    for (const ordered_json& note : c.value("notes", ordered_json::array()))
      studied.doubts.push_back(fmt::format("{} rank{}, {}: {}", ranks, ranks == 1 ? "" : "s", c.value("exchange", ""),
                                           shortened(note.get<std::string>(), 400)));
    const double seconds = figure(measured.at("iteration"), "median_s", 1e-12, kMostSeconds);
    const auto same = std::find_if(studied.measured.begin(), studied.measured.end(),
                                   [&](const auto& one) { return one.ranks == ranks && one.hosts == hosts; });
    if (same == studied.measured.end()) studied.measured.push_back({ranks, hosts, seconds});
    else same->seconds = std::min(same->seconds, seconds);
  }
}

}  // namespace

ordered_json to_json(const PerformanceModel& model) {
  ordered_json exchanges = ordered_json::array();
  for (const ExchangeCost& cost : model.exchanges)
    exchanges.push_back({{"ranks", cost.ranks},
                         {"name", cost.exchange},
                         {"latency_s", cost.latency},
                         {"s_per_byte", cost.seconds_per_byte},
                         {"few_bytes", cost.few_bytes},
                         {"s_per_byte_of_few", cost.seconds_per_byte_of_few}});
  ordered_json product = ordered_json::array();
  for (const auto& [nnz, seconds] : model.product.points()) product.push_back({{"nnz", nnz}, {"seconds", seconds}});
  return {{"product", product},
          {"entry_bytes", model.entry_bytes},
          {"overlaps", model.overlaps},
          {"overlaps_peer", model.overlaps_peer},
          {"split_latency_s", model.split_latency},
          {"measured_ranks", model.measured_ranks},
          {"exchanges", exchanges},
          {"unsteadiness", model.unsteadiness}};
}

PerformanceModel model_from_json(const ordered_json& json) {
  PerformanceModel model;
  model.product = product_from_json(json.at("product"));
  model.entry_bytes = count(json, "entry_bytes", 1, 64);
  model.overlaps = json.at("overlaps");
  model.overlaps_peer = json.value("overlaps_peer", model.overlaps);
  model.split_latency = figure(json, "split_latency_s", 0, kMostSeconds);
  model.measured_ranks = static_cast<int>(count(json, "measured_ranks", 1, kMostRanks));
  for (const ordered_json& cost : json.at("exchanges"))
    model.exchanges.push_back({static_cast<int>(figure(cost, "ranks", 1, kMostRanks, model.measured_ranks)),
                               exchange_of(cost), figure(cost, "latency_s", 0, kMostSeconds),
                               figure(cost, "s_per_byte", 0, 1), figure(cost, "few_bytes", 0, kMostCount, 0),
                               figure(cost, "s_per_byte_of_few", 0, 1, 0)});
  if (json.contains("unsteadiness"))
    for (const ordered_json& time : json.at("unsteadiness"))
      model.unsteadiness.push_back(figure({{"unsteadiness", time}}, "unsteadiness", 0, kMostSeconds));
  std::sort(model.unsteadiness.begin(), model.unsteadiness.end());
  return model;
}

std::string describe(const PerformanceModel& model) {
  std::string text;
  for (const auto& [nnz, seconds] : model.product.points())
    text += fmt::format("{}{} for {}", text.empty() ? "product: " : ", ", human_seconds(seconds), human_count(nnz));
  text += text.empty() ? "product: no nonzeros" : " nonzeros";
  int ranks = 1;
  for (const ExchangeCost& cost : model.exchanges)
    text += fmt::format("{} {}: {} + {}", cost.ranks != ranks ? fmt::format("\n  {} ranks:", ranks = cost.ranks) : ";",
                        cost.exchange, human_seconds(cost.latency),
                        cost.seconds_per_byte > 0 ? human_bytes(1 / cost.seconds_per_byte) + "/s" : "0 a byte");
  return text;
}

namespace {

ordered_json read_study_json(const std::string& path) {
  try {
    return read_json(path);
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("{}; write a study with shardmat bench scaling --json", e.what()));
  }
}

}  // namespace

std::string folder_of_study(const std::string& path) {
  const ordered_json report = read_study_json(path);
  return report.is_object() && report.contains("folder") && report["folder"].is_string() ? report["folder"] : "";
}

std::vector<StudiedMatrix> read_study(const std::string& path) {
  const ordered_json report = read_study_json(path);
  try {
    std::vector<StudiedMatrix> found;
    for (const ordered_json& one : report.at("models")) {
      if (grows(matrix_of(one))) continue;  // it is another on each number of ranks
      StudiedMatrix studied{matrix_of(one), model_from_json(one), {}, {}};
      add_measured(report, studied);
      found.push_back(std::move(studied));
    }
    if (found.empty())
      throw Error(ErrorKind::input, fmt::format("no matrix of it was measured on one rank and stays the same; run shardmat "
                                                "bench scaling with one rank among --ranks{}",
                                                reasons(report)));
    return found;
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("{}: {}", path, e.what()));
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::input,
                fmt::format("{} is not what this version's shardmat bench scaling --json writes, with one rank among its "
                            "cases; run it again ({})",
                            path, shortened(e.what())));
  }
}

namespace {

/// What ranks and hosts need of other hosts: the quality of the same parts, and of parts that are hosts, in a matrix without
/// the columns of their own hosts.
class HostMeter {
 public:
  HostMeter(const Partition& partition, std::int64_t cols, int ranks_per_host)
      : row_starts_(partition.row_starts),
        column_starts_(column_starts(partition, cols)),
        ranks_per_host_(static_cast<std::size_t>(ranks_per_host)),
        of_ranks_(partition, cols),
        of_hosts_(merged(partition, ranks_per_host_), cols) {}

  /// As QualityMeter::add().
  void add(const CsrView& rows) {
    row_ptr_.assign(1, 0), columns_.clear();
    const std::size_t parts = row_starts_.size() - 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows.rows); ++i, ++row_) {
      while (row_ >= row_starts_[part_ + 1]) ++part_;
      const std::size_t first = part_ / ranks_per_host_ * ranks_per_host_, last = std::min(first + ranks_per_host_, parts);
      for (std::int64_t k = rows.row_ptr[i] - rows.row_ptr[0]; k < rows.row_ptr[i + 1] - rows.row_ptr[0]; ++k)
        if (const auto column = rows.col_idx[static_cast<std::size_t>(k)];
            column < column_starts_[first] || column >= column_starts_[last])
          columns_.push_back(column);
      row_ptr_.push_back(std::ssize(columns_));
    }
    CsrView rest = rows;
    rest.row_ptr = row_ptr_, rest.col_idx = columns_;
    of_ranks_.add(rest);
    of_hosts_.add(rest);
  }
  HostTraffic result() {
    const PartitionQuality rank = of_ranks_.result(), host = of_hosts_.result();
    return {std::max(rank.halo_max, rank.sent_max), rank.neighbours_max, std::max(host.halo_max, host.sent_max),
            host.neighbours_max};
  }

 private:
  /// If the matrix is not square, x may be cut a few entries beside the ranks' cuts.
  static Partition merged(const Partition& partition, std::size_t ranks_per_host) {
    Partition whole{partition.method, {}};
    for (std::size_t rank = 0; rank + 1 < partition.row_starts.size(); rank += ranks_per_host)
      whole.row_starts.push_back(partition.row_starts[rank]);
    whole.row_starts.push_back(partition.row_starts.back());
    return whole;
  }

  std::vector<std::int64_t> row_starts_, column_starts_;
  std::size_t ranks_per_host_, part_ = 0;
  std::int64_t row_ = 0;
  QualityMeter of_ranks_, of_hosts_;
  std::vector<std::int64_t> row_ptr_, columns_;
};

}  // namespace

std::vector<RanksForecast> forecast_ranks(const PerformanceModel& model, const RowSource& matrix,
                                          std::span<const std::string> methods, std::span<const int> ranks) {
  const Progress progress = make_progress_bar();
  const std::int64_t bits = (model.ranks_per_host > 0 ? 3 : 1) * (matrix.cols() / 8);
  require_host_memory(8 * (matrix.rows() + 1) + std::ssize(methods) * std::ssize(ranks) * bits,
                      "cutting the matrix for each number of ranks");
  for (const int count : ranks) require_links(model, count);
  const HostVector<std::int64_t> row_ptr = read_row_pointers(matrix, progress);
  const std::int64_t nodes = find_node_block_size(matrix);
  std::vector<RanksForecast> found;
  std::vector<QualityMeter> meters;
  std::vector<std::optional<HostMeter>> between;  // of those on several hosts
  for (const std::string& method : methods)
    for (const int parts : ranks) {
      RanksForecast& one = found.emplace_back();
      one.method = method, one.ranks = parts;
      const Partition partition = make_partition(method, row_ptr, parts, nodes);
      between.emplace_back();
      if (model.hosts(parts) > 1) between.back().emplace(partition, matrix.cols(), model.ranks_per_host);
      meters.emplace_back(partition, matrix.cols());
    }
  for_each_row_slice(matrix, 0, matrix.rows(), [&](std::int64_t first_row, const CsrView& rows) {
    parallel_tasks(std::ssize(meters), [&](std::int64_t i) {
      meters[static_cast<std::size_t>(i)].add(rows);
      if (auto& meter = between[static_cast<std::size_t>(i)]; meter) meter->add(rows);
    });
    report(progress, "cutting", first_row + rows.rows, matrix.rows());
  });
  for (std::size_t i = 0; i < meters.size(); ++i) {
    found[i].quality = meters[i].result();
    if (between[i]) found[i].between = between[i]->result();
    found[i].forecast = forecast(model, found[i].quality, found[i].ranks, found[i].between);
  }
  return found;
}

}  // namespace shardmat::tools
