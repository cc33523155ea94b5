#include "tools/bench/papers/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "kernels/base/text.h"
#include "kernels/choose/registry.h"

namespace shardmat::tools {
namespace {

/// A format and what it packs, with what the text reports of both on a V100.
struct Pair {
  std::string_view usual, usual_kernel, packed;
  double mean_memory, best_memory, mean_speed_up, best_speed_up;
};
constexpr Pair kPairs[] = {{"csr", "csr_scalar", "rbp_csr", -0.145, -0.260, 1.50, 2.07},
                           {"ell", "ell", "rbp_ell", -0.162, -0.263, 1.65, 3.28},
                           {"ell_r", "ell_r", "rbp_ell_r", -0.162, -0.262, 1.51, 3.32}};

/// Table 2 of the text: N, N_z, N_non, K, K_v, K_c.
struct PublishedMatrix {
  std::string_view name;
  std::array<std::int64_t, 6> figures;
};
constexpr PublishedMatrix kTable2[] = {
    {"cant", {62451, 4007383, 39097, 40, 40, 16}},
    {"rma10", {46835, 2374001, 447, 145, 145, 40}},
    {"consph", {83334, 6010480, 30461, 78, 78, 38}},
    {"parabolic_fem", {525825, 3674625, 999115, 7, 6, 6}},
    {"pwtk", {217918, 11524432, 199, 90, 90, 18}},
    {"thermal2", {1228045, 8580313, 2846134, 11, 9, 8}},
    {"af_shell9", {504855, 17588845, 919, 30, 30, 10}},
    {"F1", {343791, 26837113, 46738, 378, 378, 150}},
    {"nd24k", {72000, 28715634, 441476, 483, 472, 114}},
    {"dielFilterV2real", {1157456, 48538952, 10631364, 99, 79, 48}},
    {"Cube_Coup_dt0", {2164760, 124406070, 125891, 52, 52, 23}},
    {"Bump_2911", {2911419, 127729899, 212859, 174, 174, 44}},
    {"Queen_4147", {4147110, 316548962, 228679, 63, 63, 35}},
    {"UT-Heart1", {82047, 3423519, 0, 63, 63, 40}},
    {"UT-Heart2", {130595, 6954413, 969595, 124, 111, 50}},
};

/// Table 2's row for a file of that name, whatever its folder and suffixes.
const PublishedMatrix* published(const std::string& argument) {
  std::string stem = std::filesystem::path(argument).filename().string();
  stem = stem.substr(0, stem.find('.'));
  const auto found = std::ranges::find(kTable2, stem, &PublishedMatrix::name);
  return found == std::end(kTable2) ? nullptr : &*found;
}

Cell verdict(bool saves) { return {saves, saves ? "saves" : "does not"}; }
Cell bytes_cell(std::int64_t bytes) { return {bytes, human_bytes(static_cast<double>(bytes))}; }
Cell milliseconds(double seconds) { return Cell::figure(1e3 * seconds, 3); }

/// Fig. 2: values; Colind and Nzptr, an entry each for every run and single nonzero; Rowptr. 4-byte offsets.
std::int64_t bcrs_bytes(const RunStatistics& s, ValueType type) {
  const std::int64_t blocks = s.bounds / 2 + s.singles;
  return static_cast<std::int64_t>(size_of(type)) * s.nnz + 4 * blocks + 4 * (blocks + 1) + 4 * (s.rows + 1);
}

std::string block_size_of(const std::string& policy) {
  const std::string key = "block_size=";
  const auto at = policy.find(key);
  return at == std::string::npos ? "–" : policy.substr(at + key.size(), policy.find(',', at) - at - key.size());
}

/// The mean, or the extreme with the matrix that has it.
Cell mean_of(const std::vector<std::pair<double, std::string>>& all, bool percent) {
  if (all.empty()) return Cell::none();
  double sum = 0;
  for (const auto& [value, matrix] : all) sum += value;
  sum /= static_cast<double>(all.size());
  return percent ? Cell::percent(sum) : Cell::figure(sum, 2);
}

}  // namespace

RowBlockPacking::RowBlockPacking(bool triangle) {
  const std::string_view which = triangle ? kTriangles : kWhole;
  statistics_.title = fmt::format("Paper 5, Table 2: runs of consecutive columns ({})", which);
  statistics_.notes = {
      "N rows; N_z nonzeros of the whole matrix; stored: those that are stored and that all other figures count; N_non of",
      "them outside runs, N_val inside; N_col columns that bound runs; K longest row; K_v, K_c most values and bounds of "
      "runs",
      "in a row. (7): RBP-CSR takes fewer bytes than CSR; (8): RBP-ELL fewer than ELL (f64, 4-byte offsets).",
      triangle ? "The paper stores the triangle of all its matrices but rma10 and UT-Heart; its N_z is the whole matrix's."
               : "The paper stores one triangle of all its matrices but rma10 and UT-Heart: --stored-triangle does so."};
  statistics_.columns = {{"matrix", "matrix"},
                         {"source", "source", false},
                         {"n", "N"},
                         {"n_z", "N_z"},
                         {"stored", "stored"},
                         {"n_non", "N_non"},
                         {"n_val", "N_val"},
                         {"n_col", "N_col"},
                         {"k", "K"},
                         {"k_v", "K_v"},
                         {"k_c", "K_c"},
                         {"condition_7", "(7)"},
                         {"condition_8", "(8)"}};
  formats_.title = fmt::format("Paper 5, Figs. 6 and 7: bytes and time of each format ({})", which);
  formats_.notes = {
      "memory: bytes over those of the format that is packed, less one. block: threads a block, the fastest of 64 to 512 "
      "for",
      "every kernel alike. convert: from CSR in host memory, without the transfer; transfer: a copy of the format's bytes "
      "to",
      "the GPU. refused: the format would take more than 8 times the bytes of CSR; its bytes are then those of the "
      "formula.",
      "bcsr: blocks of a fixed size, which the text names beside BELL; bcrs: Pinar's BCRS of Fig. 2, one column for each "
      "run. "
      "The text measures neither: it finds no way to run BCRS with a thread a row, so its bytes alone stand here. BELL, "
      "blocks in ELL, pads both; there is none here."};
  formats_.columns = subject_columns({{"format", "format"},
                                      {"bytes", "bytes"},
                                      {"memory", "memory"},
                                      {"us", "µs"},
                                      {"block_size", "block"},
                                      {"speed_up", "speed-up"},
                                      {"convert_ms", "convert ms"},
                                      {"transfer_ms", "transfer ms"}});
}

void RowBlockPacking::add_statistics(const Subject& subject) {
  if (!described_.insert(subject.matrix.name).second) return;
  const RunStatistics s = find_runs(subject.csr).statistics;
  const auto row = [&](const std::string& name, std::initializer_list<Cell> more) {
    std::vector<Cell> cells{Cell::word(name), Cell::word(subject.matrix.argument)};
    append(cells, more);
    statistics_.rows.push_back(std::move(cells));
  };
  row(subject.matrix.name,
      {Cell::count(s.rows), Cell::count(subject.whole_nnz), Cell::count(s.nnz), Cell::count(s.singles),
       Cell::count(s.in_runs), Cell::count(s.bounds), Cell::count(s.max_row), Cell::count(s.max_in_runs),
       Cell::count(s.max_bounds), verdict(rbp_csr_saves(s)), verdict(rbp_ell_saves(s))});
  if (const PublishedMatrix* const p = published(subject.matrix.argument)) {
    const auto& f = p->figures;
    row("  in the paper", {Cell::count(f[0]), Cell::count(f[1]), Cell::none(), Cell::count(f[2]), Cell::none(), Cell::none(),
                           Cell::count(f[3]), Cell::count(f[4]), Cell::count(f[5]), Cell::none(), Cell::none()});
  }
}

void RowBlockPacking::measure(PaperBench& bench, Trial& trial, const Subject& subject) {
  add_statistics(subject);
  const auto saved = [](std::int64_t bytes, std::int64_t base) {
    return static_cast<double>(bytes) / static_cast<double>(base) - 1;
  };
  const auto row = [&](std::string_view name, const Best& best, const Best* base, std::int64_t base_bytes) {
    const Format& format = find_format(name);
    const std::int64_t bytes = format.bytes(trial.input(), trial.layouts(format).front());
    const double transfer = best ? copy_seconds(bytes, bench.stream()) : 0;
    const bool on_gpu = bench.backend() == Backend::cuda;
    std::vector<Cell> cells = subject.cells();
    append(cells, {Cell::word(std::string(name)), bytes_cell(bytes),
                   base == nullptr ? Cell::none() : Cell::percent(saved(bytes, base_bytes)), microseconds(best),
                   best && on_gpu ? Cell::word(block_size_of(best->policy)) : Cell::none(),
                   base == nullptr ? Cell::none() : speed_up(*base, best),
                   best ? milliseconds(std::max(0.0, best->convert_seconds - transfer)) : Cell::none(),
                   best && on_gpu ? milliseconds(transfer) : Cell::none()});
    formats_.rows.push_back(std::move(cells));
    if (base == nullptr || std::ranges::find(kPairs, name, &Pair::packed) == std::end(kPairs)) return bytes;
    Gains& gains = gains_[{std::string(shardmat::name(subject.type)), std::string(name)}];
    gains.memory.emplace_back(saved(bytes, base_bytes), subject.matrix.name);
    if (*base && best) gains.speed_up.emplace_back(base->seconds() / best.seconds(), subject.matrix.name);
    else ++gains.refused;
    return bytes;
  };
  for (const Pair& pair : kPairs) {
    const Best& usual = bench.best(trial, pair.usual_kernel);
    const std::int64_t bytes = row(pair.usual, usual, nullptr, 0);
    row(pair.packed, bench.best(trial, pair.packed), &usual, bytes);
    if (pair.usual != "csr") continue;
    row("bcsr", bench.best(trial, "bcsr"), &usual, bytes);
    const std::int64_t packed = bcrs_bytes(find_runs(subject.csr).statistics, subject.type);
    std::vector<Cell> cells = subject.cells();
    append(cells, {Cell::word("bcrs"), bytes_cell(packed), Cell::percent(saved(packed, bytes))});
    cells.resize(formats_.columns.size(), Cell::none());
    formats_.rows.push_back(std::move(cells));
  }
}

ResultTable RowBlockPacking::published_memory() {
  ResultTable table;
  table.title =
      "Paper 5: memory by formulas (2), (3), (5) and (6) from the paper's own Table 2, beside what its text prints";
  table.notes = {
      "N_col is not printed, so RBP-CSR cannot be formed again. The text prints for RBP-ELL and RBP-ELL-R the mean -16.2 %, "
      "pwtk -26.3 and -26.2 %, and for UT-Heart1 and 2 together -20.6 %, which is UT-Heart2's; RBP-CSR: the mean -14.5 %, "
      "nd24k -26.0 %, UT-Heart -12.4 %.",
      "The UT-Heart matrices are the authors' own: nothing else can be measured of them here."};
  table.columns = {{"matrix", "matrix"},
                   {"n", "N"},
                   {"k", "K"},
                   {"k_v", "K_v"},
                   {"k_c", "K_c"},
                   {"ell_bytes", "ELL"},
                   {"rbp_ell_bytes", "RBP-ELL"},
                   {"memory", "memory"},
                   {"paper_memory", "paper"},
                   {"memory_r", "RBP-ELL-R"},
                   {"paper_memory_r", "paper"}};
  const auto printed = [](double value) { return value == 0 ? Cell::none() : Cell::percent(value); };
  double sum = 0, sum_r = 0;
  for (const PublishedMatrix& matrix : kTable2) {
    const auto [n, n_z, n_non, k, k_v, k_c] = matrix.figures;
    const std::int64_t ell = 12 * n * k, packed = 8 * n * k_v + 4 * n * k_c + 12 * n_non + 4 * (n + 1);
    const double memory = static_cast<double>(packed) / static_cast<double>(ell) - 1,
                 memory_r = static_cast<double>(packed + 4 * n) / static_cast<double>(ell + 4 * n) - 1;
    sum += memory, sum_r += memory_r;
    const bool pwtk = matrix.name == "pwtk", heart = matrix.name == "UT-Heart2";
    table.rows.push_back({Cell::word(std::string(matrix.name)), Cell::count(n), Cell::count(k), Cell::count(k_v),
                          Cell::count(k_c), bytes_cell(ell), bytes_cell(packed), Cell::percent(memory),
                          printed(pwtk    ? -0.263
                                  : heart ? -0.206
                                          : 0),
                          Cell::percent(memory_r),
                          printed(pwtk    ? -0.262
                                  : heart ? -0.206
                                          : 0)});
  }
  const auto count = static_cast<double>(std::size(kTable2));
  std::vector<Cell> mean{Cell::word("mean")};
  mean.resize(7, Cell::none());
  append(mean, {Cell::percent(sum / count), printed(-0.162), Cell::percent(sum_r / count), printed(-0.162)});
  table.rows.push_back(std::move(mean));
  return table;
}

ResultTable RowBlockPacking::means() const {
  ResultTable table;
  table.title = "Paper 5: what packing gains, mean and best over the matrices above, by type";
  table.notes = {
      "refused: matrices without a time, because one of the two formats does not suit them; their bytes count. paper: its "
      "15",
      "matrices in f64 on a V100, against its own kernels with one thread a row."};
  table.columns = {{"type", "type"},
                   {"format", "format"},
                   {"matrices", "matrices"},
                   {"refused", "refused"},
                   {"mean_memory", "memory"},
                   {"best_memory", "best"},
                   {"best_memory_of", "of"},
                   {"paper_mean_memory", "paper"},
                   {"paper_best_memory", "its best"},
                   {"mean_speed_up", "speed-up"},
                   {"best_speed_up", "best"},
                   {"best_speed_up_of", "of"},
                   {"paper_mean_speed_up", "paper"},
                   {"paper_best_speed_up", "its best"}};
  for (const auto& [key, gains] : gains_) {
    const auto& pair = *std::ranges::find(kPairs, key.second, &Pair::packed);
    const bool f64 = key.first == name(ValueType::f64);
    const auto least = std::ranges::min_element(gains.memory);
    const auto most = std::ranges::max_element(gains.speed_up);
    const bool timed = !gains.speed_up.empty();
    table.rows.push_back(
        {Cell::word(key.first), Cell::word(key.second), Cell::count(std::ssize(gains.memory)), Cell::count(gains.refused),
         mean_of(gains.memory, true), Cell::percent(least->first), Cell::word(least->second),
         f64 ? Cell::percent(pair.mean_memory) : Cell::none(), f64 ? Cell::percent(pair.best_memory) : Cell::none(),
         mean_of(gains.speed_up, false), timed ? Cell::figure(most->first, 2) : Cell::none(),
         timed ? Cell::word(most->second) : Cell::none(), f64 ? Cell::figure(pair.mean_speed_up, 2) : Cell::none(),
         f64 ? Cell::figure(pair.best_speed_up, 2) : Cell::none()});
  }
  return table;
}

Paper::Tables RowBlockPacking::tables() const {
  return {{"paper_5", statistics_},
          {"paper_5_formats", formats_},
          {"paper_5_means", means()},
          {"paper_5_published", published_memory()}};
}

}  // namespace shardmat::tools
