#include "tools/commands/matrix_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/bandwidth.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "kernels/choose/registry.h"
#include "kernels/matrix/locality.h"
#include "kernels/matrix/ordering.h"
#include "partition/source/node_blocks.h"
#include "runtime/solvers/multigrid/free_bodies.h"

namespace shardmat::tools {
namespace {

constexpr ValueType kTypes[] = {ValueType::f32, ValueType::f64};

/// What is counted slice by slice, in row order.
struct Counters {
  Counters(MatrixReport& report, std::int64_t cols) {
    const std::int64_t rows = report.rows.rows, bytes = 2 * cols + rows;
    if (bytes <= kFreeBytes + 100 * (rows + report.rows.nnz)) {
      require_host_memory(bytes, "counting the columns and diagonals that hold entries");
      pattern.emplace(rows, cols);
    } else {
      report.left_out.push_back(fmt::format("the pattern: counting columns and diagonals would take {} for {} nonzeros",
                                            human_bytes(static_cast<double>(bytes)), human_count(report.rows.nnz)));
    }
    for (const ValueType type : kTypes) locality.emplace_back(line_bits(type));
    if (report.rows.rows != cols) return;
    if (const std::int64_t of_diagonal = 24 * cols; of_diagonal <= share_of_host_memory()) penalty.emplace(cols);
    else
      report.left_out.push_back(fmt::format("penalty rows: finding them would take {} of memory, and there are {}",
                                            human_bytes(static_cast<double>(of_diagonal)),
                                            human_bytes(static_cast<double>(share_of_host_memory()))));
  }
  void add(std::int64_t first_row, const CsrView& slice) {
    if (pattern) pattern->add(first_row, slice);
    if (penalty) penalty->add(first_row, slice);
    for (ColumnLocality& lines : locality) lines.add(slice.col_idx);
    packing = joined(packing, find_runs(slice).statistics);
  }
  void finish(MatrixReport& report) const {
    if (pattern) report.pattern = pattern->result();
    if (penalty) report.penalty = penalty->result();
    for (std::size_t i = 0; i < locality.size(); ++i)
      report.locality.push_back({kTypes[i], locality[i].mean(), {}, {}, {}, {}});
    report.packing = packing;
  }

  /// Bytes that any matrix may take for what is counted a column.
  static constexpr std::int64_t kFreeBytes = 1'000'000'000;

  std::optional<PatternScan> pattern;
  std::optional<PenaltyScan> penalty;
  std::vector<ColumnLocality> locality;
  RunStatistics packing;
};

void predict(MatrixReport& report, const CsrView& matrix, double bandwidth) {
  if (matrix.cols > std::numeric_limits<std::int32_t>::max()) {
    report.left_out.push_back("storage formats: the matrix has 2^31 columns or more; one rank's part may have fewer");
    return;
  }
  const bool cuda = cuda_device_count() > 0;
  Stream stream(cuda ? Device{Backend::cuda, 0} : Device{});
  report.bandwidth = bandwidth > 0 ? bandwidth : measure_copy_bandwidth(stream);
  report.bandwidth_of = bandwidth > 0 ? "given" : "copy bandwidth measured on " + properties(stream.device()).name;
  if (report.bandwidth == 0) {
    report.left_out.push_back("storage formats: there is no memory to measure the copy bandwidth; give --bandwidth");
    return;
  }
  for (const ValueType type : kTypes) {
    ConversionInput input(matrix, type, stream);
    for (FormatSize& size : format_sizes(input, report.bandwidth)) report.formats.push_back(std::move(size));
  }
}

void report_whole(MatrixReport& report, const CsrView& matrix, const ReportOptions& options) {
  Counters counters(report, matrix.cols);
  counters.add(0, matrix);
  counters.finish(report);
  if (options.visit) options.visit(0, matrix);
  if (matrix.rows == matrix.cols) report.symmetry = symmetry(matrix);
  const auto order = order_by_row_length(matrix.row_ptr);
  report.fold_width = options.fold_width > 0 ? options.fold_width : usual_fold_width(matrix);
  for (Locality& locality : report.locality) {
    const int bits = line_bits(locality.type);
    locality.sorted = column_locality(matrix, bits, order);
    locality.folded = folded_column_locality(matrix, bits, report.fold_width);
    locality.padded = folded_column_locality(matrix, bits, report.fold_width, FoldPadding::counted);
    locality.runs_first = rbp_column_locality(matrix, bits);
  }
  predict(report, matrix, options.bandwidth);
}

void report_streamed(MatrixReport& report, const RowSource& source, const ReportOptions& options) {
  Counters counters(report, source.cols());
  SymmetrySample sample;
  const bool square = source.rows() == source.cols();
  if (square) require_host_memory(8 * source.rows(), "the largest entry of each row");
  for_each_row_slice(
      source, 0, source.rows(),
      [&](std::int64_t first_row, const CsrView& slice) {
        counters.add(first_row, slice);
        if (square) sample.add(first_row, slice);
        if (options.visit) options.visit(first_row, slice);
        shardmat::report(options.progress, "counting", first_row + slice.rows, source.rows());
      },
      PatternScan::kRowMultiple);
  counters.finish(report);
  if (square) report.symmetry = sample.result();
}

/// The textbooks' choice among the formats that no type refuses.
Recommendation textbook_choice(const MatrixReport& report) {
  std::vector<std::string_view> available;
  for (const FormatSize& size : report.formats) available.push_back(size.name);
  for (const FormatSize& size : report.formats)
    if (!size.refused.empty()) std::erase(available, size.name);
  return recommended_format(*report.pattern, report.rows, available);
}

/// That of the textbooks, unless the bytes are known and another takes fewer: a product takes as long as its bytes.
Recommendation recommend(const MatrixReport& report) {
  if (report.formats.empty() || report.rows.nnz == 0) return recommended_format(*report.pattern, report.rows);
  Recommendation textbook = textbook_choice(report);
  const FormatSize* const best = smallest(report, ValueType::f64);
  const auto theirs = std::ranges::find_if(
      report.formats, [&](const FormatSize& size) { return size.type == ValueType::f64 && size.name == textbook.format; });
  const auto bytes = [](const FormatSize& size) { return static_cast<double>(size.bytes); };
  if (best == nullptr || theirs == report.formats.end() || bytes(*theirs) <= bytes(*best)) return textbook;
  const auto nnz = static_cast<double>(report.rows.nnz);
  return {std::string(best->name), fmt::format("fewest bytes in f64, {:.2f} a nonzero; textbooks would take {} ({:.2f}): {}",
                                               bytes(*best) / nnz, textbook.format, bytes(*theirs) / nnz, textbook.reason)};
}

/// Twice, because formats analyse the matrix to know their bytes.
bool fits_memory(const MatrixReport& report) {
  return 2 * (16 * report.rows.nnz + 8 * report.rows.rows) <= available_host_memory();
}

/// Parts that nothing holds. Solving with an unsymmetric matrix does not ask for them.
void find_floating(MatrixReport& report, RowSource& source) {
  if (!report.symmetry || !report.symmetry->within_rounding(ValueType::f64) || report.rows.nnz == 0) return;
  if (report.pattern && report.pattern->nonfinite > 0) return;
  try {
    report.floating = find_free_bodies(source);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::resources) throw;
    report.left_out.push_back(fmt::format("parts that float: {}", error.what()));
  }
}

}  // namespace

MatrixReport report_matrix(const InputMatrix& input, const ReportOptions& options) {
  const RowSource& source = *input.rows;
  MatrixReport report;
  report.name = source.name();
  report.cols = source.cols();
  report.file = input.file;
  report.nodes = counts_of(source);
  if (const auto unknowns = source.unknowns()) report.unknowns = statistics_of(*unknowns);
  {
    const auto row_ptr = read_row_pointers(source, options.progress);
    report.rows = row_statistics(row_ptr);
    report.quantiles = row_length_quantiles(row_ptr, MatrixReport::kQuantiles);
    for (std::size_t i = 0; i + 1 < row_ptr.size(); ++i) report.row_lengths.add(row_ptr[i + 1] - row_ptr[i]);
  }
  if (options.quick) {
    report.left_out.push_back("everything but row lengths and partitions: --quick reads no entries");
  } else if (!options.stream && (input.in_memory || fits_memory(report))) {
    source.visit_rows(0, source.rows(), [&](const CsrView& matrix) { report_whole(report, matrix, options); });
    find_floating(report, *input.rows);
  } else {
    report_streamed(report, source, options);
    report.left_out.push_back(fmt::format(
        "locality of sorted and folded rows, of runs first and storage formats: they need the whole matrix in memory{}",
        options.stream ? " (--stream)" : ", which has not enough room for it"));
  }
  if (report.pattern && source.rows() == source.cols()) report.node_block_size = find_node_block_size(source);
  if (report.pattern) report.recommendation = recommend(report);
  return report;
}

const FormatSize* smallest(const MatrixReport& report, ValueType type) {
  const FormatSize* best = nullptr;
  for (const FormatSize& size : report.formats)
    if (size.type == type && size.refused.empty() && stores(size.name, StoredEntries::all) &&
        (best == nullptr || size.bytes < best->bytes))
      best = &size;
  return best;
}

}  // namespace shardmat::tools
