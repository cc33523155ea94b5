#include "tools/bench/papers/locality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/text.h"
#include "kernels/choose/registry.h"
#include "kernels/matrix/ordering.h"
#include "tools/bench/papers/profiler.h"
#include "tools/bench/papers/threads.h"

namespace shardmat::tools {
namespace {

constexpr const char* kHitRate = "l1tex__t_sector_hit_rate.pct";

/// The text's groups in Figs. 5 to 8. It drew them by eye; these bounds are ours.
enum class Group { stream, scattered, related };
constexpr std::pair<Group, std::string_view> kGroups[] = {{Group::stream, "stream (red: apache2)"},
                                                          {Group::scattered, "scattered (blue: thermal2, roadNet)"},
                                                          {Group::related, "related (green: the rest)"}};

Group group_of(double folded, double line) {
  return folded >= 0.75 * line ? Group::stream : folded < 2 ? Group::scattered : Group::related;
}

/// Pearson's coefficient; nothing for fewer than three points or if one side does not vary.
std::optional<double> correlation(const std::vector<std::pair<double, double>>& points) {
  if (points.size() < 3) return std::nullopt;
  const auto n = static_cast<double>(points.size());
  double mx = 0, my = 0, sxx = 0, syy = 0, sxy = 0;
  for (const auto& [x, y] : points) mx += x / n, my += y / n;
  for (const auto& [x, y] : points) sxx += (x - mx) * (x - mx), syy += (y - my) * (y - my), sxy += (x - mx) * (y - my);
  if (sxx <= 1e-12 * n || syy <= 1e-12 * n) return std::nullopt;
  return sxy / std::sqrt(sxx * syy);
}

Cell coefficient(const std::vector<std::pair<double, double>>& points) {
  const auto r = correlation(points);
  return r ? Cell::figure(*r, 2) : Cell::none();
}

Cell rate(const std::optional<double>& value) { return value ? Cell::percent(*value) : Cell::none(); }

}  // namespace

LocalityPaper::LocalityPaper(std::int64_t fold_width, Device device) : fold_width_(fold_width), model_(l1_model(device)) {
  table_.title = "Paper 4: spatial locality of the column sequence by order, L1 hit rates, time (Fig. 4)";
  table_.notes = {
      "locality: mean number of consecutive columns in one 128-byte line of x, in the order in which the format stores "
      "them;",
      fmt::format("padded: with Fold's padding, which reads column 0. width: nonzeros of a folded piece{}.",
                  fold_width > 0 ? "" : ", the mean row length (--fold-width)"),
      fmt::format(
          "model: hit rates of a modelled L1 of {} kB and 4 ways, of one of {} multiprocessors ({}), under the reads of",
          model_.bytes >> 10, model_.multiprocessors, model_.of),
      "csr_scalar, of the same with sorted rows, and of fold; all reads. x: of reads of x alone, as the metric. ncu: the "
      "hit",
      "rate that the GPU counted for fold_pieces (l1tex sectors), where ncu is on the PATH. advised: the order with the "
      "largest",
      "locality, Fold's without padding, CRS if within 5 %. sorted: y left in that order.",
      "The paper, on a C2050 with f32: F1 24 % of L1 hits and 9.41 GFLOPS, ldoor 39 % and 13.27; Fold hurts nd24k and helps",
      "webbase-1M and Hamrle3."};
  table_.columns = subject_columns({{"width", "width"},
                                    {"locality", "CRS"},
                                    {"locality_sorted", "sorted"},
                                    {"locality_fold", "Fold"},
                                    {"locality_padded", "padded"},
                                    {"one_line_hit_rate", "one line"},
                                    {"l1_crs", "model CRS"},
                                    {"l1_sorted", "sorted"},
                                    {"l1_fold", "Fold"},
                                    {"l1_crs_x", "CRS x"},
                                    {"l1_fold_x", "Fold x"},
                                    {"ncu_fold", "ncu Fold"},
                                    {"crs_us", "CRS µs"},
                                    {"sorted_us", "sorted µs"},
                                    {"fold_us", "Fold µs"},
                                    {"advised", "advised"},
                                    {"fastest", "fastest"}});
}

void LocalityPaper::measure(PaperBench& bench, Trial& trial, const Subject& subject) {
  const int bits = line_bits(subject.type);
  const std::int64_t width = fold_width_ > 0 ? fold_width_ : usual_fold_width(subject.csr);
  const auto order = order_by_row_length(subject.csr.row_ptr);
  const double stored = column_locality(subject.csr, bits), by_length = column_locality(subject.csr, bits, order),
               folded = folded_column_locality(subject.csr, bits, width),
               padded = folded_column_locality(subject.csr, bits, width, FoldPadding::counted);
  const HostCsr sorted_rows = rows_in_order(subject.csr, order);
  const HitRates crs_rates = crs_hit_rates(subject.csr, subject.type, model_),
                 sorted_rates = crs_hit_rates(sorted_rows.view(), subject.type, model_),
                 fold_rates = fold_hit_rates(subject.csr, subject.type, width, model_);
  const Best crs = bench.best(trial, "csr_scalar");
  Best sorted, fold;
  {
    Trial sorted_trial = bench.trial(sorted_rows.view(), subject.type);
    const Kernel& kernel = *bench.find_or_note("csr_scalar");
    const StoredMatrix rows = sorted_trial.convert(find_format(kernel.format), {});
    for (const Policy& policy : bench.policies(kernel, sorted_trial.input().rows()))
      bench.keep(sorted_trial.measure(kernel, rows, policy), sorted);
    const Kernel& folding = *bench.find_or_note("fold");
    const StoredMatrix pieces = trial.convert(find_format("fold"), Policy{{"width", static_cast<int>(width)}});
    for (const Policy& policy : bench.policies(folding, trial.input().rows()))
      bench.keep(trial.measure(folding, pieces, policy), fold);
  }
  Counted counted;
  if (bench.backend() == Backend::cuda && why_no_counters_.empty()) {
    counted = count_by_ncu(kHitRate, "fold_pieces",
                           {"multiply", subject.matrix.argument, "--kernel", "fold", "--policy",
                            fmt::format("width={}", width), "--type", std::string(name(subject.type)), "--iterations", "3"});
    why_no_counters_ = counted.why_not;
  }
  if (counted.value) *counted.value /= 100;
  const ReadOrder advised = advised_order(stored, by_length, folded);
  const std::pair<const Best*, ReadOrder> all[] = {
      {&crs, ReadOrder::stored}, {&sorted, ReadOrder::sorted}, {&fold, ReadOrder::folded}};
  const auto fastest =
      std::ranges::min_element(all, {}, [](const auto& one) { return *one.first ? one.first->seconds() : HUGE_VAL; });
  std::vector<Cell> cells = subject.cells();
  append(cells, {Cell::count(width), Cell::figure(stored, 2), Cell::figure(by_length, 2), Cell::figure(folded, 2),
                 Cell::figure(padded, 2), stored > 0 ? Cell::percent(1 - 1 / stored) : Cell::none(),
                 Cell::percent(crs_rates.all), Cell::percent(sorted_rates.all), Cell::percent(fold_rates.all),
                 Cell::percent(crs_rates.x), Cell::percent(fold_rates.x), rate(counted.value), microseconds(crs),
                 microseconds(sorted), microseconds(fold), Cell::word(std::string(name(advised))),
                 *fastest->first ? Cell::word(std::string(name(fastest->second))) : Cell::none()});
  table_.rows.push_back(std::move(cells));
  const auto seconds = [](const Best& best) { return best ? best.seconds() : 0; };
  if (subject.csr.nnz() > 0)
    rows_.push_back({subject.type, stored, folded, std::ldexp(1.0, bits), crs_rates.all, fold_rates.all, counted.value,
                     seconds(crs), seconds(sorted), seconds(fold), static_cast<double>(subject.csr.nnz()), advised});
}

ResultTable LocalityPaper::groups() const {
  ResultTable table;
  table.title = "Paper 4, Figs. 5 to 7: correlation of locality with hit rate and speed, by group";
  table.notes = {
      "Pearson's coefficient of locality and the modelled L1 hit rate, the counted one, GFLOPS; – for fewer than three "
      "matrices.",
      "CRS: all matrices as they are. Fold: after folding, by the text's groups, whose bounds are ours: stream from 3/4 of "
      "a",
      "line on, scattered below 2, the rest related. The paper finds none in the scattered group and a positive one in the "
      "rest."};
  table.columns = {{"type", "type"},   {"order", "order"}, {"group", "group"}, {"matrices", "matrices"},
                   {"model", "model"}, {"ncu", "ncu"},     {"speed", "GFLOPS"}};
  for (const ValueType type : {ValueType::f32, ValueType::f64}) {
    const auto add = [&](std::string_view order, std::string_view group, const std::function<bool(const Row&)>& in) {
      std::vector<std::pair<double, double>> model, counted, speed;
      std::int64_t matrices = 0;
      const bool fold = order == name(ReadOrder::folded);
      for (const Row& row : rows_) {
        if (row.type != type || !in(row)) continue;
        ++matrices;
        const double locality = fold ? row.folded : row.stored, seconds = fold ? row.fold_seconds : row.crs_seconds;
        model.emplace_back(locality, fold ? row.model_folded : row.model_stored);
        if (fold && row.counted_folded) counted.emplace_back(locality, *row.counted_folded);
        if (seconds > 0) speed.emplace_back(locality, 2e-9 * row.nnz / seconds);
      }
      if (matrices == 0) return;
      table.rows.push_back({Cell::word(std::string(name(type))), Cell::word(std::string(order)),
                            Cell::word(std::string(group)), Cell::count(matrices), coefficient(model), coefficient(counted),
                            coefficient(speed)});
    };
    add(name(ReadOrder::stored), "all", [](const Row&) { return true; });
    add(name(ReadOrder::folded), "all", [](const Row&) { return true; });
    for (const auto& [group, text] : kGroups)
      add(name(ReadOrder::folded), text, [g = group](const Row& row) { return group_of(row.folded, row.line) == g; });
  }
  return table;
}

ResultTable LocalityPaper::advice() const {
  ResultTable table;
  table.title = "Paper 4: how often the advised order was the fastest";
  table.notes = {
      "near: the advised order took at most 5 % more than the fastest. loss: its time over the fastest, less one."};
  if (!why_no_counters_.empty()) table.notes.push_back("No counted hit rates: " + why_no_counters_ + ".");
  table.columns = {{"type", "type"}, {"matrices", "matrices"},   {"fastest", "fastest"},
                   {"near", "near"}, {"mean_loss", "mean loss"}, {"worst_loss", "worst loss"}};
  for (const ValueType type : {ValueType::f32, ValueType::f64}) {
    std::int64_t matrices = 0, fastest = 0, near = 0;
    double sum = 0, worst = 0;
    for (const Row& row : rows_) {
      if (row.type != type || row.crs_seconds == 0 || row.sorted_seconds == 0 || row.fold_seconds == 0) continue;
      const double least = std::min({row.crs_seconds, row.sorted_seconds, row.fold_seconds});
      const double taken = row.advised == ReadOrder::stored   ? row.crs_seconds
                           : row.advised == ReadOrder::sorted ? row.sorted_seconds
                                                              : row.fold_seconds;
      const double loss = taken / least - 1;
      ++matrices, fastest += loss == 0, near += loss <= 0.05;
      sum += loss, worst = std::max(worst, loss);
    }
    if (matrices > 0)
      table.rows.push_back({Cell::word(std::string(name(type))), Cell::count(matrices), Cell::count(fastest),
                            Cell::count(near), Cell::percent(sum / static_cast<double>(matrices)), Cell::percent(worst)});
  }
  return table;
}

Paper::Tables LocalityPaper::tables() const {
  return {{"paper_4", table_}, {"paper_4_groups", groups()}, {"paper_4_advice", advice()}};
}

}  // namespace shardmat::tools
