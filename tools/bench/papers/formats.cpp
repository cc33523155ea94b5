#include "tools/bench/papers/formats.h"

#include <algorithm>
#include <string>

#include "kernels/choose/format_guide.h"
#include "kernels/choose/registry.h"
#include "kernels/matrix/pattern.h"

namespace shardmat::tools {
namespace {

constexpr MatrixClass kClasses[] = {
    {"random", {"random:n=2000", "random:n=200000", "random:n=4194304"}},
    {"uneven rows", {"rmat:scale=11", "rmat:scale=17", "rmat:scale=22"}},
    {"very sparse",
     {"rmat:scale=12,edge_factor=1,a=0.25,b=0.25,c=0.25", "rmat:scale=18,edge_factor=1,a=0.25,b=0.25,c=0.25",
      "rmat:scale=23,edge_factor=1,a=0.25,b=0.25,c=0.25"}},
    {"triangular",
     {"random:n=2000,row_nnz=40,triangular", "random:n=100000,row_nnz=100,triangular",
      "random:n=2000000,row_nnz=200,triangular"}},
    {"banded", {"banded:n=3000", "banded:n=200000", "banded:n=4000000"}},
    {"diagonal", {"diagonals:n=5000,spacing=70", "diagonals:n=1000000,spacing=1000", "diagonals:n=16777216,spacing=4096"}},
    {"blocks", {"elasticity:n=8,clamp=0.02", "elasticity:n=32,clamp=0.02", "elasticity:n=96,clamp=0.02"}},
    {"stencil", {"poisson27:n=12", "poisson27:n=64", "poisson27:n=192"}},
};
/// What the text advises for each of them.
constexpr std::string_view kAdvice[] = {"ell", "hyb", "coo", "jds", "ell", "dia", "bcsr", "–"};
static_assert(std::size(kAdvice) == std::size(kClasses));
constexpr std::string_view kFormats[] = {"csr", "csc", "coo", "ell", "ell_r", "hyb", "jds", "jds_t", "dia", "bcsr", "pkt"};

std::string text_advice(const NamedMatrix& matrix) {
  const auto found = std::ranges::find(kClasses, matrix.name, &MatrixClass::name);
  return std::string(found == std::end(kClasses) ? "–" : kAdvice[found - std::begin(kClasses)]);
}

/// Our guide's format, of those of the table.
std::string our_advice(const CsrView& matrix, const RowStatistics& rows) {
  PatternScan scan(matrix.rows, matrix.cols);
  scan.add(0, matrix);
  return recommended_format(scan.result(), rows, kFormats).format;
}

}  // namespace

std::span<const MatrixClass> course_classes() { return kClasses; }

Formats::Formats() {
  table_.title = "Paper 2: formats by class of matrix";
  table_.notes = {
      "Speed-up of each format over the text's CSR, one thread a row (csr_scalar; on the host csr_host); each with the "
      "fastest",
      "of our kernels, layouts and policies, csr with the fastest of all for CSR. –: there is no kernel; refused: it does "
      "not",
      "suit the matrix. text: the course text's advice for this class; ours: the guide's that shardmat info prints, of "
      "these",
      "formats. The text gives no figures."};
  table_.columns =
      subject_columns({{"advised", "text"}, {"ours", "ours"}, {"fastest", "fastest"}, {"text_csr_us", "text's CSR µs"}});
  for (const std::string_view format : kFormats) table_.columns.push_back({std::string(format), std::string(format)});
}

void Formats::measure(PaperBench& bench, Trial& trial, const Subject& subject) {
  const Best scalar = bench.best(trial, "csr_scalar");
  std::vector<Cell> cells = subject.cells(), speed_ups;
  Best fastest;
  for (const std::string_view format : kFormats) {
    Best best;
    for (const Kernel& kernel : kernels()) {
      if (kernel.backend != bench.backend() || kernel.format != format || kernel.name.ends_with("_cusparse")) continue;
      const Best& one = bench.best(trial, kernel);
      if (one) bench.keep(*one.result, best);
      else if (!one.refused.empty()) best.refused = one.refused;
    }
    if (best) bench.keep(*best.result, fastest);
    Cell cell = speed_up(scalar, best);
    if (!best && !best.refused.empty()) cell.text = "refused";
    speed_ups.push_back(std::move(cell));
  }
  append(cells, {Cell::word(text_advice(subject.matrix)), Cell::word(our_advice(subject.csr, trial.input().rows())),
                 fastest ? Cell::word(fastest->format) : Cell::none(), microseconds(scalar)});
  append(cells, std::move(speed_ups));
  table_.rows.push_back(std::move(cells));
}

}  // namespace shardmat::tools
