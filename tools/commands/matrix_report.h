// Everything known of one matrix before it is multiplied, as data; text for people and JSON for programs are two views of
// it.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/progress.h"
#include "kernels/choose/format_guide.h"
#include "kernels/matrix/pattern.h"
#include "kernels/matrix/penalty_scan.h"
#include "kernels/matrix/runs.h"
#include "kernels/matrix/statistics.h"
#include "kernels/matrix/symmetry.h"
#include "partition/readers/reader.h"
#include "partition/shard/shard_file.h"
#include "partition/source/unknowns.h"
#include "runtime/solvers/loop/null_vectors.h"
#include "tools/cli/input_matrix.h"
#include "tools/cli/node_options.h"
#include "tools/commands/format_table.h"

namespace shardmat::tools {

struct ReportOptions {
  bool quick = false;           ///< what the row lengths tell; no entry is read
  bool stream = false;          ///< never hold the whole matrix
  double bandwidth = 0;         ///< bytes a second for predicted times; 0: measured
  std::int64_t fold_width = 0;  ///< nonzeros of a piece of a folded row; 0: the mean length of the rows that are not empty
  std::function<void(std::int64_t first_row, const CsrView& slice)> visit;  ///< shown all rows, too; may be empty
  Progress progress;
};

/// Mean count of Tomimori et al. with lines of 128 bytes.
struct Locality {
  ValueType type = ValueType::f64;
  double stored = 0;                 ///< rows in the order they have
  std::optional<double> sorted;      ///< rows by descending length; needs the whole matrix
  std::optional<double> folded;      ///< in the order of the Fold method, rows folded to MatrixReport::fold_width; likewise
  std::optional<double> padded;      ///< the same with Fold's padding; likewise
  std::optional<double> runs_first;  ///< in the order of row block packing; likewise
};

struct MatrixReport {
  static constexpr std::array<double, 7> kQuantiles{0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};

  std::string name;
  std::int64_t cols = 0;
  const ShardFile* file = nullptr;            ///< where it is one; must outlive the report
  std::vector<FileObject> objects;            ///< of a file that holds several, or one with a name
  std::optional<UnknownStatistics> unknowns;  ///< where the source names them
  NodeCounts nodes;                           ///< what is known of them
  std::int64_t node_block_size = 0;           ///< unknowns of a node, 1: none can be told; 0: not looked for
  RowStatistics rows;
  std::vector<std::int64_t> quantiles;  ///< row lengths, one for each of kQuantiles
  Histogram row_lengths;
  std::optional<PatternStatistics> pattern;
  std::optional<Symmetry> symmetry;          ///< of square matrices
  std::optional<PenaltyStatistics> penalty;  ///< likewise
  std::optional<NullVectors> floating;       ///< what floats, of symmetric matrices; the vectors are not kept
  std::vector<Locality> locality;
  std::optional<RunStatistics> packing;  ///< what row block packing makes of the runs
  std::int64_t fold_width = 0;           ///< nonzeros of a piece of a folded row
  double bandwidth = 0;                  ///< bytes a second; 0 if no time is predicted
  std::string bandwidth_of;              ///< "given", or what was measured
  std::vector<FormatSize> formats;
  std::optional<Recommendation> recommendation;  ///< for the pattern
  std::vector<std::string> left_out;             ///< what is not here and why, one sentence each
};

/// Takes the whole matrix into memory if there is room for it, so that nothing is left out; else streams it once.
MatrixReport report_matrix(const InputMatrix& input, const ReportOptions& options);

/// The format that takes the fewest bytes in this type, or null. Formats for symmetric matrices alone do not count.
const FormatSize* smallest(const MatrixReport& report, ValueType type);

/// A line for each object with what to type for it. `file`: the file's name.
std::string objects_text(const std::string& file, const std::vector<FileObject>& objects);

std::string to_text(const MatrixReport& report);
std::string to_json(const MatrixReport& report);

}  // namespace shardmat::tools
