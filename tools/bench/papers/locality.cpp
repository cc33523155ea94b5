#include "tools/bench/papers/locality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "kernels/base/text.h"
#include "kernels/choose/registry.h"
#include "kernels/matrix/ordering.h"
#include "kernels/matrix/statistics.h"
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

/// Tables 1 and 3 of the paper: the triangle that a file stores where the matrix is symmetric; 0: not told. Two of its names
/// are spelt otherwise in the collection.
struct Published {
  std::string_view name;
  double nnz, rows, hit_rate = 0, gflops = 0;
};
constexpr Published kPublished[] = {{"crankseg_2", 7'106'348, 63'838},       {"nd24k", 14'393'817, 72'000},
                                    {"thermal2", 3'489'300, 147'900},        {"hood", 5'494'489, 220'542},
                                    {"F1", 13'590'452, 343'791, 0.24, 9.41}, {"msdoor", 10'328'399, 415'863},
                                    {"rajat29", 4'866'270, 643'994},         {"ASIC_680ks", 12'329'176, 682'712},
                                    {"apache2", 2'766'523, 715'176},         {"ldoor", 23'737'339, 952'203, 0.39, 13.27},
                                    {"webbase-1M", 3'105'536, 1'000'005},    {"delaunay_n20", 2'097'124, 1'048'576},
                                    {"roadNet-TX", 1'281'106, 1'393'383},    {"Hamrle3", 5'514'242, 1'447'360},
                                    {"G3_circuit", 4'623'152, 1'585'478},    {"roadNet-CA", 1'844'404, 1'971'281}};

/// The row of the paper for a file of this name, or null.
const Published* published_of(const std::string& argument) {
  std::string stem = argument.substr(argument.find_last_of('/') + 1);
  stem.resize(std::min(stem.size(), stem.find('.')));
  const auto lower = [](unsigned char c) { return static_cast<char>(std::tolower(c)); };
  for (const Published& one : kPublished)
    if (std::ranges::equal(stem, one.name, {}, lower, lower)) return &one;
  return nullptr;
}

/// Padding to the longest row reads this many times the nonzeros at most; beyond that it is left out.
constexpr double kMostPadding = 64;

L1Model model_of(const LocalitySettings& settings, Device device) {
  L1Model model = l1_model(device);
  if (settings.l1_bytes == 0 && settings.multiprocessors == 0) return model;
  if (settings.l1_bytes > 0) model.bytes = settings.l1_bytes;
  if (settings.multiprocessors > 0) model.multiprocessors = static_cast<int>(settings.multiprocessors);
  model.of = "as asked";
  return model;
}

std::int64_t longest_row(const CsrView& m) { return std::max<std::int64_t>(1, row_statistics(m.row_ptr).max_row); }

std::string width_text(const LocalitySettings& s) {
  const char* const width = s.fold_width == 0                            ? ", the mean row length (--fold-width)"
                            : s.fold_width == LocalitySettings::kLongest ? ", the longest row"
                                                                         : "";
  return std::string(width) + (s.fold_sorted ? "; rows sorted by length before they are folded" : "");
}

}  // namespace

LocalityPaper::LocalityPaper(const LocalitySettings& settings, bool triangle, Device device)
    : settings_(settings), model_(model_of(settings, device)) {
  table_.title = fmt::format("Paper 4: spatial locality of the column sequence by order, L1 hit rates, time (Fig. 4; {})",
                             triangle ? kTriangles : kWhole);
  table_.notes = {
      "locality: mean number of consecutive columns in one 128-byte line of x, in the order in which the format stores "
      "them;",
      fmt::format("padded: with Fold's padding, which reads column 0. width: nonzeros of a folded piece{}.",
                  width_text(settings)),
      fmt::format(
          "model: hit rates of a modelled L1 of {} KiB and 4 ways, of one of {} multiprocessors ({}), under the reads of",
          model_.bytes >> 10, model_.multiprocessors, model_.of),
      "csr_scalar, of the same with sorted rows, and of fold; all reads. x: of reads of x alone, as the metric. ncu: the "
      "hit",
      "rate that the GPU counted for csr_scalar and fold_pieces (l1tex sectors), where ncu is on the PATH. advised: the "
      "order with the",
      "largest locality, Fold's without padding, CRS if within 5 %. sorted: y left in that order.",
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
                                    {"ncu_crs", "ncu CRS"},
                                    {"ncu_fold", "ncu Fold"},
                                    {"crs_us", "CRS µs"},
                                    {"sorted_us", "sorted µs"},
                                    {"fold_us", "Fold µs"},
                                    {"advised", "advised"},
                                    {"fastest", "fastest"}});
  padding_.title = "Paper 4: what Fold's padding does to the locality";
  padding_.notes = {
      "The paper says that padding inflates the figure or changes it little. Rows folded to their longest do so, because "
      "whole",
      "columns of padding follow each other. Rows folded to the mean, in the order of the matrix, lose by it: single places "
      "of padding",
      fmt::format("cut the runs. –: the longest row would need more than {:g} places a nonzero.", kMostPadding)};
  padding_.columns = subject_columns({{"mean_width", "mean"},
                                      {"without", "without"},
                                      {"mean_stored", "padded"},
                                      {"mean_sorted", "sorted, padded"},
                                      {"longest_width", "longest"},
                                      {"longest_stored", "padded"},
                                      {"longest_sorted", "sorted, padded"}});
  published_.title = "Paper 4, Tables 1 and 3: its matrices there and here";
  published_.notes = {
      "The paper counts the entries that a file stores: one triangle of a symmetric matrix. --stored-triangle takes the "
      "same.",
      "Hit rate and speed: CRS in f32 on its C2050 (L1 of 48 KiB, 14 multiprocessors: --l1 48KiB --sms 14)."};
  published_.columns = subject_columns({{"paper_nnz", "paper's nonzeros"},
                                        {"paper_rows", "rows"},
                                        {"paper_hit_rate", "paper's hits"},
                                        {"l1_crs", "model"},
                                        {"ncu_crs", "ncu"},
                                        {"paper_gflops", "paper's GFLOPS"},
                                        {"gflops", "ours"}});
}

void LocalityPaper::measure(PaperBench& bench, Trial& trial, const Subject& subject) {
  const int bits = line_bits(subject.type);
  const std::int64_t width = settings_.fold_width > 0                             ? settings_.fold_width
                             : settings_.fold_width == LocalitySettings::kLongest ? longest_row(subject.csr)
                                                                                  : usual_fold_width(subject.csr);
  const auto order = order_by_row_length(subject.csr.row_ptr);
  const HostCsr sorted_rows = rows_in_order(subject.csr, order);
  const CsrView of_fold = settings_.fold_sorted ? sorted_rows.view() : subject.csr;
  const double stored = column_locality(subject.csr, bits), by_length = column_locality(subject.csr, bits, order),
               folded = folded_column_locality(of_fold, bits, width),
               padded = folded_column_locality(of_fold, bits, width, FoldPadding::counted);
  const HitRates crs_rates = crs_hit_rates(subject.csr, subject.type, model_),
                 sorted_rates = crs_hit_rates(sorted_rows.view(), subject.type, model_),
                 fold_rates = fold_hit_rates(of_fold, subject.type, width, model_);
  const Best crs = bench.best(trial, "csr_scalar");
  Best sorted, fold;
  {
    Trial sorted_trial = bench.trial(sorted_rows.view(), subject.type);
    const Kernel& kernel = *bench.find_or_note("csr_scalar");
    const StoredMatrix rows = sorted_trial.convert(find_format(kernel.format), {});
    for (const Policy& policy : bench.policies(kernel, sorted_trial.input().rows()))
      bench.keep(sorted_trial.measure(kernel, rows, policy), sorted);
    const Kernel& folding = *bench.find_or_note("fold");
    Trial& of_pieces = settings_.fold_sorted ? sorted_trial : trial;
    const StoredMatrix pieces = of_pieces.convert(find_format("fold"), Policy{{"width", static_cast<int>(width)}});
    for (const Policy& policy : bench.policies(folding, of_pieces.input().rows()))
      bench.keep(of_pieces.measure(folding, pieces, policy), fold);
  }
  const std::optional<double> counted_crs = counted(bench, subject, "csr_scalar", "csr_scalar", ""),
                              counted_fold = settings_.fold_sorted ? std::nullopt
                                                                   : counted(bench, subject, "fold", "fold_pieces",
                                                                             fmt::format("width={}", width));
  const ReadOrder advised = advised_order(stored, by_length, folded);
  const std::pair<const Best*, ReadOrder> all[] = {
      {&crs, ReadOrder::stored}, {&sorted, ReadOrder::sorted}, {&fold, ReadOrder::folded}};
  const auto fastest =
      std::ranges::min_element(all, {}, [](const auto& one) { return *one.first ? one.first->seconds() : HUGE_VAL; });
  std::vector<Cell> cells = subject.cells();
  append(cells, {Cell::count(width), Cell::figure(stored, 2), Cell::figure(by_length, 2), Cell::figure(folded, 2),
                 Cell::figure(padded, 2), stored > 0 ? Cell::percent(1 - 1 / stored) : Cell::none(),
                 Cell::percent(crs_rates.all), Cell::percent(sorted_rates.all), Cell::percent(fold_rates.all),
                 Cell::percent(crs_rates.x), Cell::percent(fold_rates.x), rate(counted_crs), rate(counted_fold),
                 microseconds(crs), microseconds(sorted), microseconds(fold), Cell::word(std::string(name(advised))),
                 *fastest->first ? Cell::word(std::string(name(fastest->second))) : Cell::none()});
  table_.rows.push_back(std::move(cells));
  const auto seconds = [](const Best& best) { return best ? best.seconds() : 0; };
  if (subject.csr.nnz() > 0)
    rows_.push_back({subject.type, stored, folded, std::ldexp(1.0, bits), crs_rates.all, fold_rates.all, counted_crs,
                     counted_fold, seconds(crs), seconds(sorted), seconds(fold), static_cast<double>(subject.csr.nnz()),
                     static_cast<double>(subject.csr.rows), advised,
                     subject.csr.cols * static_cast<std::int64_t>(size_of(subject.type)) <= model_.bytes});
  add_padding(subject, sorted_rows.view());
  add_published(subject, crs_rates, counted_crs, seconds(crs));
}

std::optional<double> LocalityPaper::counted(const PaperBench& bench, const Subject& subject, const char* kernel,
                                             const char* function, const std::string& policy) {
  const bool is_whole = subject.csr.nnz() == subject.whole_nnz;  // `multiply` would read no triangle
  if (bench.backend() != Backend::cuda || !why_no_counters_.empty() || !is_whole) return std::nullopt;
  std::vector<std::string> command{"multiply", subject.matrix.argument,         "--kernel",     kernel,
                                   "--type",   std::string(name(subject.type)), "--iterations", "3"};
  if (!policy.empty()) command.insert(command.end(), {"--policy", policy});
  const Counted found = count_by_ncu(kHitRate, function, command);
  why_no_counters_ = found.why_not;
  if (!found.value) return std::nullopt;
  return *found.value / 100;
}

void LocalityPaper::add_padding(const Subject& subject, const CsrView& sorted) {
  const int bits = line_bits(subject.type);
  const std::int64_t mean = usual_fold_width(subject.csr), longest = longest_row(subject.csr);
  const auto padded = [&](const CsrView& rows, std::int64_t width) {
    return Cell::figure(folded_column_locality(rows, bits, width, FoldPadding::counted), 2);
  };
  const bool fits = static_cast<double>(longest) * static_cast<double>(subject.csr.rows) <=
                    kMostPadding * static_cast<double>(subject.csr.nnz());
  std::vector<Cell> cells = subject.cells();
  append(cells, {Cell::count(mean), Cell::figure(folded_column_locality(subject.csr, bits, mean), 2),
                 padded(subject.csr, mean), padded(sorted, mean), Cell::count(longest),
                 fits ? padded(subject.csr, longest) : Cell::none(), fits ? padded(sorted, longest) : Cell::none()});
  padding_.rows.push_back(std::move(cells));
}

void LocalityPaper::add_published(const Subject& subject, const HitRates& crs, const std::optional<double>& counted,
                                  double seconds) {
  const Published* const there = published_of(subject.matrix.argument);
  if (there == nullptr) return;
  const auto told = [](double value, const Cell& cell) { return value > 0 ? cell : Cell::none(); };
  std::vector<Cell> cells = subject.cells();
  append(cells, {Cell::count(static_cast<std::int64_t>(there->nnz)), Cell::count(static_cast<std::int64_t>(there->rows)),
                 told(there->hit_rate, Cell::percent(there->hit_rate)), Cell::percent(crs.all), rate(counted),
                 told(there->gflops, Cell::figure(there->gflops, 2)),
                 seconds > 0 ? Cell::figure(2e-9 * static_cast<double>(subject.csr.nnz()) / seconds, 2) : Cell::none()});
  published_.rows.push_back(std::move(cells));
}

ResultTable LocalityPaper::rows_and_hits() const {
  ResultTable table;
  table.title = "Paper 4, Fig. 2: correlation of the number of rows with the hit rate of CRS";
  table.notes = {
      "Pearson's coefficient of the number of rows and the modelled L1 hit rate, and the counted one; – for fewer than "
      "three",
      "matrices. The paper's Fig. 2, sixteen matrices on a C2050, has r = −0.67: the larger the matrix, the fewer hits."};
  table.columns = {{"type", "type"}, {"matrices", "matrices"}, {"model", "model"}, {"ncu", "ncu"}, {"paper", "paper"}};
  for (const ValueType type : {ValueType::f32, ValueType::f64}) {
    std::vector<std::pair<double, double>> model, counted;
    for (const Row& row : rows_) {
      if (row.type != type) continue;
      model.emplace_back(row.rows, row.model_stored);
      if (row.counted_stored) counted.emplace_back(row.rows, *row.counted_stored);
    }
    if (!model.empty())
      table.rows.push_back({Cell::word(std::string(name(type))), Cell::count(std::ssize(model)), coefficient(model),
                            coefficient(counted), type == ValueType::f32 ? Cell::figure(-0.67, 2) : Cell::none()});
  }
  return table;
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
        if (const auto& by_ncu = fold ? row.counted_folded : row.counted_stored) counted.emplace_back(locality, *by_ncu);
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
      "locality: the order with the largest one. and size: CRS where x lies in the modelled L1 whatever the order (the "
      "paper's 3.2 and",
      "6: size and locality decide together), else by locality. fits: matrices with such an x. near: the advised order took "
      "at most",
      "5 % more than the fastest. loss: its time over the fastest, less one."};
  if (!why_no_counters_.empty()) table.notes.push_back("No counted hit rates: " + why_no_counters_ + ".");
  table.columns = {{"type", "type"},       {"by", "advised by"}, {"matrices", "matrices"},   {"fits", "fits"},
                   {"fastest", "fastest"}, {"near", "near"},     {"mean_loss", "mean loss"}, {"worst_loss", "worst loss"}};
  for (const ValueType type : {ValueType::f32, ValueType::f64})
    for (const bool with_size : {false, true}) {
      std::int64_t matrices = 0, fastest = 0, near = 0, fits = 0;
      double sum = 0, worst = 0;
      for (const Row& row : rows_) {
        if (row.type != type || row.crs_seconds == 0 || row.sorted_seconds == 0 || row.fold_seconds == 0) continue;
        const double least = std::min({row.crs_seconds, row.sorted_seconds, row.fold_seconds});
        const ReadOrder advised = with_size && row.x_fits ? ReadOrder::stored : row.advised;
        const double taken = advised == ReadOrder::stored   ? row.crs_seconds
                             : advised == ReadOrder::sorted ? row.sorted_seconds
                                                            : row.fold_seconds;
        const double loss = taken / least - 1;
        ++matrices, fits += row.x_fits, fastest += loss == 0, near += loss <= 0.05;
        sum += loss, worst = std::max(worst, loss);
      }
      if (matrices == 0) continue;
      table.rows.push_back({Cell::word(std::string(name(type))), Cell::word(with_size ? "locality and size" : "locality"),
                            Cell::count(matrices), Cell::count(fits), Cell::count(fastest), Cell::count(near),
                            Cell::percent(sum / static_cast<double>(matrices)), Cell::percent(worst)});
    }
  return table;
}

Paper::Tables LocalityPaper::tables() const {
  Tables all{{"paper_4", table_},
             {"paper_4_padding", padding_},
             {"paper_4_rows", rows_and_hits()},
             {"paper_4_groups", groups()},
             {"paper_4_advice", advice()}};
  if (!published_.rows.empty()) all.emplace_back("paper_4_published", published_);
  return all;
}

}  // namespace shardmat::tools
