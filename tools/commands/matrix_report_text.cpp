// The two views of a matrix report.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/base/text.h"
#include "kernels/matrix/locality.h"
#include "partition/files/object_name.h"
#include "tools/commands/matrix_report.h"
#include "tools/commands/quality_table.h"

namespace shardmat::tools {
namespace {

double percent(std::int64_t part, std::int64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
}

/// One line a bin, from the first to the last that is not empty.
std::string bar_chart(const Histogram& histogram) {
  constexpr double kWidth = 48;
  const auto counted = [](std::int64_t count) { return count > 0; };
  const auto begin = std::ranges::find_if(histogram.bins, counted);
  const auto end = std::find_if(histogram.bins.rbegin(), histogram.bins.rend(), counted).base();
  std::int64_t all = 0, most = 1;
  for (const std::int64_t count : histogram.bins) all += count, most = std::max(most, count);
  std::string text;
  for (auto bin = begin; bin < end; ++bin) {
    const auto index = static_cast<std::size_t>(bin - histogram.bins.begin());
    const std::int64_t from = Histogram::smallest(index), to = Histogram::largest(index);
    const auto length = static_cast<int>(kWidth * static_cast<double>(*bin) / static_cast<double>(most) + 0.5);
    std::string bar;
    for (int i = 0; i < length; ++i) bar += "█";
    if (length == 0 && *bin > 0) bar = "▏";
    text += fmt::format("  {:>21}  {:>14}  {:>5.1f} %  {}\n",
                        from == to ? human_count(from) : fmt::format("{} … {}", human_count(from), human_count(to)),
                        human_count(*bin), percent(*bin, all), bar);
  }
  return text;
}

/// Rows that state known values, as those of FreeFEM's tgv.
std::string penalty_text(const PenaltyStatistics& penalty) {
  return fmt::format(
      "  penalty rows {} (first: row {}), with a diagonal {:.2g}{} times the other entries and the median "
      "diagonal: they state known values, b / diagonal, and solve takes those so that other rows hardly "
      "depend on (--penalty-rows)\n",
      human_count(penalty.count), human_count(penalty.first), penalty.least_ratio,
      penalty.largest_ratio > penalty.least_ratio ? fmt::format(" to {:.2g}", penalty.largest_ratio) : "");
}

std::string floating_text(const NullVectors& floating) {
  if (!floating.too_many) return floating.describe();
  return fmt::format("more than {} motions of parts that nothing holds, or there are more than {} parts", NullVectors::kMost,
                     human_count(NullVectors::kMostBodies));
}

std::string symmetry_text(const Symmetry& symmetry) {
  const std::int64_t all = symmetry.off_diagonal;
  std::string text = all == 0 ? "no entries beside the diagonal" : "pattern and values";
  if (symmetry.equal < all && symmetry.within_rounding(ValueType::f64))
    text = fmt::format("symmetric within rounding (largest relative difference {:.2g})", symmetry.largest_relative);
  else if (symmetry.equal < all)
    text = symmetry.mirrored == all
               ? fmt::format("pattern; {:.4g} % of the values are equal, others differ by up to {:.3g} (relative: {:.2g})",
                             percent(symmetry.equal, all), symmetry.largest_difference, symmetry.largest_relative)
               : fmt::format("none; {:.4g} % of the entries beside the diagonal are mirrored, {:.4g} % with the same value",
                             percent(symmetry.mirrored, all), percent(symmetry.equal, all));
  return text + (symmetry.exact ? "" : fmt::format(" (of {} sampled entries)", human_count(all)));
}

std::string shape_name(const PatternStatistics& p) {
  if (p.nnz == 0) return "no entries";
  return p.diagonal()           ? "diagonal"
         : p.lower_triangular() ? "lower triangular"
         : p.upper_triangular() ? "upper triangular"
                                : "";
}

std::string pattern_text(const MatrixReport& report) {
  const PatternStatistics& p = *report.pattern;
  std::string text =
      fmt::format("\nRuns of consecutive columns: {}, mean length {:.2f}, {:.1f} % of the nonzeros in runs of 2 and more\n",
                  human_count(p.runs), p.mean_run(), percent(p.entries_in_runs, p.nnz));
  text += bar_chart(p.run_lengths);
  text += fmt::format("\nPattern\n  empty        {} rows, {} columns\n", human_count(p.empty_rows),
                      human_count(p.empty_columns));
  const std::string shape = shape_name(p);
  text +=
      fmt::format("  bandwidth    lower {}, upper {}{}; profile {}\n", human_count(p.lower_bandwidth),
                  human_count(p.upper_bandwidth), shape.empty() ? "" : fmt::format(" ({})", shape), human_count(p.profile));
  text += fmt::format("  diagonals    {} of {} occupied; {} entries on the main one\n", human_count(p.diagonals),
                      human_count(std::max<std::int64_t>(0, p.rows + p.cols - 1)), human_count(p.main_diagonal));
  if (report.penalty && report.penalty->count > 0) text += penalty_text(*report.penalty);
  if (report.symmetry) text += fmt::format("  symmetry     {}\n", symmetry_text(*report.symmetry));
  if (report.floating && (report.floating->count > 0 || report.floating->too_many))
    text += fmt::format("  maps to 0    {}\n", floating_text(*report.floating));
  if (report.node_block_size > 0)
    text += report.node_block_size == 1
                ? "  nodes        of one unknown: the pattern shows none of several\n"
                : fmt::format("  nodes        of {} unknowns (--node-block-size)\n", report.node_block_size);
  for (const BlockStatistics& block : p.blocks)
    text += fmt::format("  blocks {0} × {0} {1:>11} occupied, filled to {2:.1f} %; {3:.1f} % of the nonzeros in full ones\n",
                        block.size, human_count(block.occupied), 100 * block.fill(p.nnz), 100 * block.full_share(p.nnz));
  text += fmt::format("  values       |a| from {:.6g} to {:.6g}; {} explicit zeros{}\n", p.smallest, p.largest,
                      human_count(p.explicit_zeros),
                      p.nonfinite == 0 ? "" : fmt::format(", {} NaN or infinite", human_count(p.nonfinite)));
  return text;
}

ReadOrder advice(const Locality& locality) { return advised_order(locality.stored, *locality.sorted, *locality.folded); }

std::string locality_text(const MatrixReport& report) {
  std::string text =
      "\nSpatial locality of the column indices (nonzeros read one after another from a 128-byte line of x)\n";
  for (const Locality& locality : report.locality) {
    text += fmt::format("  {}          {:.3f} as stored", name(locality.type), locality.stored);
    if (locality.sorted) text += fmt::format(", {:.3f} with rows sorted by length", *locality.sorted);
    if (locality.folded)
      text += fmt::format(", {:.3f} folded to width {} ({:.3f} with padding)", *locality.folded,
                          human_count(report.fold_width), *locality.padded);
    if (locality.runs_first) text += fmt::format(", {:.3f} with runs first", *locality.runs_first);
    if (locality.folded) text += fmt::format("; advised: {}", name(advice(locality)));
    text += "\n";
  }
  return text;
}

/// Row block packing in the letters of its paper.
std::string packing_text(const RunStatistics& s) {
  const auto verdict = [](bool saves) { return saves ? "saves bytes" : "saves none"; };
  return fmt::format(
      "\nRow block packing (f64, 4-byte offsets)\n"
      "  nonzeros     N_z {}: N_val {} in runs, N_non {} outside; N_col {} bounds of runs\n"
      "  longest row  K {}; most values in runs K_v {}, most bounds K_c {}\n"
      "  RBP-CSR      {} (condition 7): {} against {} of CSR\n"
      "  RBP-ELL      {} (condition 8): {} against {} of ELL\n",
      human_count(s.nnz), human_count(s.in_runs), human_count(s.singles), human_count(s.bounds), human_count(s.max_row),
      human_count(s.max_in_runs), human_count(s.max_bounds), verdict(rbp_csr_saves(s)),
      human_bytes(static_cast<double>(rbp_csr_bytes(s))), human_bytes(static_cast<double>(csr_bytes(s))),
      verdict(rbp_ell_saves(s)), human_bytes(static_cast<double>(rbp_ell_bytes(s))),
      human_bytes(static_cast<double>(ell_bytes(s))));
}

std::string formats_text(const MatrixReport& report) {
  std::string text =
      fmt::format("\nStorage formats (one product at {}/s, {})\n", human_bytes(report.bandwidth), report.bandwidth_of);
  text += format_table(report.formats, report.rows.nnz);
  for (const ValueType type : {ValueType::f32, ValueType::f64})
    if (const FormatSize* best = smallest(report, type))
      text += fmt::format("  fewest bytes in {}: {}\n", name(type), best->name);
  return text;
}

nlohmann::ordered_json histogram_json(const Histogram& histogram, const char* what) {
  nlohmann::ordered_json bins = nlohmann::ordered_json::array();
  for (std::size_t bin = 0; bin < histogram.bins.size(); ++bin)
    if (histogram.bins[bin] > 0)
      bins.push_back({{"from", Histogram::smallest(bin)}, {"to", Histogram::largest(bin)}, {what, histogram.bins[bin]}});
  return bins;
}

nlohmann::ordered_json partitions_json(const ShardFile& file) {
  nlohmann::ordered_json partitions = nlohmann::ordered_json::array();
  for (const StoredPartition& p : file.partitions()) {
    const PartitionQuality& q = p.quality;
    partitions.push_back({{"method", p.partition.method},
                          {"parts", p.partition.parts()},
                          {"row_starts", p.partition.row_starts},
                          {"nnz_min", q.nnz_min},
                          {"nnz_max", q.nnz_max},
                          {"rows_min", q.rows_min},
                          {"rows_max", q.rows_max},
                          {"imbalance", q.imbalance},
                          {"halo_max", q.halo_max},
                          {"halo_total", q.halo_total},
                          {"allgather_max", q.allgather_max},
                          {"allgather_total", q.allgather_total},
                          {"neighbours_max", q.neighbours_max},
                          {"boundary_nnz_max", q.boundary_nnz_max},
                          {"sent_max", q.sent_max}});
  }
  return partitions;
}

nlohmann::ordered_json rows_json(const MatrixReport& report) {
  nlohmann::ordered_json quantiles;
  for (std::size_t q = 0; q < report.quantiles.size(); ++q)
    quantiles[fmt::format("{}", MatrixReport::kQuantiles[q])] = report.quantiles[q];
  return {{"min", report.rows.min_row},
          {"mean", report.rows.mean_row},
          {"max", report.rows.max_row},
          {"stddev", report.rows.stddev_row},
          {"empty", report.rows.empty_rows},
          {"quantiles", quantiles},
          {"histogram", histogram_json(report.row_lengths, "rows")}};
}

void add_pattern(nlohmann::ordered_json& json, const PatternStatistics& p) {
  json["runs"] = {{"count", p.runs},
                  {"mean", p.mean_run()},
                  {"entries_in_runs", p.entries_in_runs},
                  {"histogram", histogram_json(p.run_lengths, "runs")}};
  json["pattern"] = {{"empty_rows", p.empty_rows},
                     {"empty_columns", p.empty_columns},
                     {"lower_bandwidth", p.lower_bandwidth},
                     {"upper_bandwidth", p.upper_bandwidth},
                     {"profile", p.profile},
                     {"diagonals", p.diagonals},
                     {"main_diagonal", p.main_diagonal},
                     {"lower_triangular", p.lower_triangular()},
                     {"upper_triangular", p.upper_triangular()},
                     {"diagonal", p.diagonal()}};
  json["blocks"] = nlohmann::ordered_json::array();
  for (const BlockStatistics& block : p.blocks)
    json["blocks"].push_back({{"size", block.size},
                              {"occupied", block.occupied},
                              {"full", block.full},
                              {"fill", block.fill(p.nnz)},
                              {"full_share", block.full_share(p.nnz)}});
  json["values"] = {
      {"smallest", p.smallest}, {"largest", p.largest}, {"explicit_zeros", p.explicit_zeros}, {"nonfinite", p.nonfinite}};
}

void add_formats(nlohmann::ordered_json& json, const MatrixReport& report) {
  json["bandwidth"] = {{"bytes_per_second", report.bandwidth}, {"of", report.bandwidth_of}};
  json["formats"] = nlohmann::ordered_json::array();
  for (const FormatSize& size : report.formats) {
    nlohmann::ordered_json one{{"name", size.name},
                               {"type", name(size.type)},
                               {"layout", size.layout},
                               {"bytes", size.bytes},
                               {"seconds", size.seconds}};
    if (!size.refused.empty()) one["refused"] = size.refused;
    json["formats"].push_back(one);
  }
  for (const ValueType type : {ValueType::f32, ValueType::f64})
    if (const FormatSize* best = smallest(report, type)) json["fewest_bytes"][std::string(name(type))] = best->name;
}

/// "1,234 of 411 nodes, dofs 1-3, 11".
std::string unknowns_text(const UnknownStatistics& unknowns) {
  constexpr std::size_t kMostRanges = 8;
  std::vector<std::string> ranges;
  for (const auto& [first, last] : unknowns.dofs) {
    if (ranges.size() == kMostRanges) {
      ranges.emplace_back("…");
      break;
    }
    ranges.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  }
  const bool one = unknowns.dofs.size() == 1 && unknowns.dofs.front().first == unknowns.dofs.front().second;
  return fmt::format("{} of {} nodes, {} {}", human_count(unknowns.count), human_count(unknowns.nodes), one ? "dof" : "dofs",
                     ranges.empty() ? "none" : fmt::format("{}", fmt::join(ranges, ", ")));
}

std::string row_order_text(const ShardFile& file) {
  if (!file.permuted()) return "original";
  return std::string(title(file.row_order())) + ", permutation stored";
}

void add_properties(nlohmann::ordered_json& json, const MatrixReport& report) {
  if (const auto& p = report.penalty) json["penalty_rows"] = {{"count", p->count}};
  if (report.penalty && report.penalty->count > 0) {
    json["penalty_rows"]["first"] = report.penalty->first;
    json["penalty_rows"]["least_ratio"] = report.penalty->least_ratio;
    json["penalty_rows"]["largest_ratio"] = report.penalty->largest_ratio;
  }
  if (const auto& s = report.symmetry)
    json["symmetry"] = {{"exact", s->exact},
                        {"off_diagonal", s->off_diagonal},
                        {"mirrored", s->mirrored},
                        {"equal", s->equal},
                        {"largest_difference", s->largest_difference},
                        {"largest_relative", s->largest_relative},
                        {"within_rounding", s->within_rounding(ValueType::f64)}};
}

void add_floating(nlohmann::ordered_json& json, const NullVectors& floating) {
  auto& to = json["floating"];
  to = {{"vectors", floating.count}, {"too_many", floating.too_many}, {"bodies", nlohmann::ordered_json::array()}};
  if (floating.too_many) return;
  for (const FreeBody& body : floating.bodies)
    to["bodies"].push_back({{"first_node", body.first_node}, {"nodes", body.nodes}, {"motions", body.motions}});
}

void add_locality(nlohmann::ordered_json& json, const MatrixReport& report) {
  for (const Locality& locality : report.locality) {
    nlohmann::ordered_json& one = json["locality"][std::string(name(locality.type))];
    one["stored"] = locality.stored;
    if (locality.sorted) one["sorted_rows"] = *locality.sorted;
    if (locality.folded) {
      one["folded"] = {{"width", report.fold_width}, {"locality", *locality.folded}, {"padded", *locality.padded}};
      one["advised"] = name(advice(locality));
    }
    if (locality.runs_first) one["runs_first"] = *locality.runs_first;
  }
  if (const auto& s = report.packing)
    json["row_block_packing"] = {{"n", s->rows},
                                 {"n_z", s->nnz},
                                 {"n_non", s->singles},
                                 {"n_val", s->in_runs},
                                 {"n_col", s->bounds},
                                 {"k", s->max_row},
                                 {"k_v", s->max_in_runs},
                                 {"k_c", s->max_bounds},
                                 {"rbp_csr_saves", rbp_csr_saves(*s)},
                                 {"rbp_ell_saves", rbp_ell_saves(*s)}};
}

}  // namespace

std::string to_text(const MatrixReport& report) {
  const RowStatistics& rows = report.rows;
  std::string text = fmt::format("{}\n", report.name);
  text += fmt::format("  shape        {} × {}, {}\n", human_count(rows.rows), human_count(report.cols),
                      human_count(rows.nnz, "nonzero"));
  text += fmt::format("  row lengths  {} … {}, mean {:.2f}, standard deviation {:.2f}, {} empty\n", rows.min_row,
                      rows.max_row, rows.mean_row, rows.stddev_row, human_count(rows.empty_rows));
  if (report.unknowns) text += fmt::format("  unknowns     {}\n", unknowns_text(*report.unknowns));
  if (const std::string nodes = nodes_text(report.nodes); !nodes.empty()) text += fmt::format("  known        {}\n", nodes);
  if (const ShardFile* file = report.file) {
    text += fmt::format("  row order    {}{}\n", row_order_text(*file),
                        file->wants_local_sort() ? "; each rank sorts its part by length when it loads" : "");
    if (!file->how().empty()) text += fmt::format("  made by      {}\n", file->how());
    text += fmt::format("  fingerprint  {:016x}\n", file->fingerprint());
    if (file->partitions().empty()) text += "  partitions   none stored; any number of parts is computed when loading\n";
    else text += "\n" + quality_table(file->partitions());
  }
  if (!report.objects.empty()) text += "\n" + objects_text(split_object_name(report.name).file, report.objects);
  text += "\nNonzeros a row: ";
  for (std::size_t q = 0; q < report.quantiles.size(); ++q)
    text += fmt::format("{}{} at {:.0f} %", q == 0 ? "" : ", ", human_count(report.quantiles[q]),
                        100 * MatrixReport::kQuantiles[q]);
  text += " of the rows\n" + bar_chart(report.row_lengths);
  if (report.pattern) text += pattern_text(report) + locality_text(report);
  if (report.packing) text += packing_text(*report.packing);
  if (!report.formats.empty()) text += formats_text(report);
  if (report.recommendation)
    text += fmt::format("\nRecommended format\n  {:<12} {}\n", report.recommendation->format, report.recommendation->reason);
  for (const std::string& what : report.left_out) text += fmt::format("\nLeft out: {}\n", what);
  return text;
}

std::string objects_text(const std::string& file, const std::vector<FileObject>& objects) {
  std::string text = fmt::format("Objects in {}\n", file);
  for (const FileObject& object : objects)
    text += object.name.empty() ? fmt::format("  {}\n", object.text)
                                : fmt::format("  {}:{}  {}\n", file, object.name, object.text);
  return text;
}

std::string to_json(const MatrixReport& report) {
  nlohmann::ordered_json json{{"name", report.name}};
  if (const ShardFile* file = report.file) {
    json["how"] = file->how();
    json["fingerprint"] = fmt::format("{:016x}", file->fingerprint());
  }
  json["rows"] = report.rows.rows;
  json["cols"] = report.cols;
  json["nnz"] = report.rows.nnz;
  if (const ShardFile* file = report.file) {
    json["permuted"] = file->permuted();
    json["order"] = std::string(name(file->row_order()));
    json["sort_local"] = file->wants_local_sort();
  }
  for (const FileObject& object : report.objects) json["objects"].push_back({{"name", object.name}, {"what", object.text}});
  json["row_lengths"] = rows_json(report);
  if (report.unknowns)
    json["unknowns"] = {
        {"count", report.unknowns->count}, {"nodes", report.unknowns->nodes}, {"dofs", report.unknowns->dofs}};
  if (!nodes_text(report.nodes).empty())
    json["nodes"] = {{"placed", report.nodes.placed},
                     {"mid_edges", report.nodes.mid_edges},
                     {"near_null_vectors", report.nodes.near_null_vectors}};
  if (report.file != nullptr) json["partitions"] = partitions_json(*report.file);
  if (report.pattern) add_pattern(json, *report.pattern);
  if (report.node_block_size > 0) json["node_block_size"] = report.node_block_size;
  add_properties(json, report);
  if (report.floating) add_floating(json, *report.floating);
  add_locality(json, report);
  if (!report.formats.empty()) add_formats(json, report);
  if (report.recommendation)
    json["recommended"] = {{"format", report.recommendation->format}, {"reason", report.recommendation->reason}};
  json["left_out"] = report.left_out;
  return json.dump(2) + "\n";
}

}  // namespace shardmat::tools
