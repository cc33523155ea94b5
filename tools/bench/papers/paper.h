// What the tables of all papers share: the matrix that is measured, the fastest policy of a kernel, and the interface of a
// paper. To add an experiment: a file here, a line in papers.h and in make_paper() of papers.cpp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/bench/machine.h"
#include "tools/bench/matrices.h"
#include "tools/bench/result_table.h"
#include "tools/bench/trial.h"

namespace shardmat::tools {

/// What a table measures, for its title.
inline constexpr std::string_view kWhole = "whole matrices",
                                  kTriangles =
                                      "lower triangles of the matrices that equal their transpose, else whole matrices";

/// The matrix that all rows of a table begin with.
struct Subject {
  const NamedMatrix& matrix;
  CsrView csr;
  ValueType type;
  std::int64_t whole_nnz = 0;  ///< of the matrix whose stored triangle `csr` is; csr.nnz() if it is not a triangle

  /// The cells of subject_columns().
  std::vector<Cell> cells() const;
};

/// matrix, source (not in text), type, rows, nnz; then `more`.
std::vector<Column> subject_columns(std::vector<Column> more);
void append(std::vector<Cell>& cells, std::vector<Cell> more);

/// The kernel of that name; on the host NAME_host, and csr_host for csr_scalar. Null if there is none.
const Kernel* find_paper_kernel(std::string_view name, Backend backend);

/// The fastest of the right results of a kernel, or why there is none.
struct Best {
  std::optional<KernelResult> result;
  std::string refused;

  explicit operator bool() const { return result.has_value(); }
  const KernelResult* operator->() const { return &*result; }
  double seconds() const { return result->timing.median; }
};

/// Microseconds; "refused" where the format or the kernel does not take the matrix.
Cell microseconds(const Best& best);
/// Time of `base` over that of `best`.
Cell speed_up(const Best& base, const Best& best);

/// Measures on one matrix, and remembers what was wrong.
class PaperBench {
 public:
  PaperBench(const Machine& machine, const TrialOptions& options, Stream& stream)
      : backend_(machine.device.backend), options_(options), stream_(stream) {}

  Backend backend() const { return backend_; }
  Stream& stream() { return stream_; }
  const TrialOptions& options() const { return options_; }
  Trial trial(const CsrView& matrix, ValueType type) { return {matrix, type, stream_, options_}; }
  const std::set<std::string>& wrong() const { return wrong_; }
  /// Names asked for of which there is no kernel.
  const std::set<std::string>& missing() const { return missing_; }

  const Kernel* find_or_note(std::string_view kernel);
  /// The kernel's policies; of kernels of the literature each with all block sizes from 64 to 512 threads.
  static std::vector<Policy> policies(const Kernel& kernel, const RowStatistics& rows);

  /// Forgets what best() found for the matrix before.
  void start() { known_.clear(); }

  /// The fastest layout and policy of a kernel. Measured once per matrix and type, for all tables.
  const Best& best(Trial& trial, const Kernel& kernel);
  const Best& best(Trial& trial, std::string_view kernel);

  void keep(const KernelResult& result, Best& best);

 private:
  Backend backend_;
  TrialOptions options_;
  Stream& stream_;
  std::map<std::string, Best, std::less<>> known_;
  std::set<std::string> wrong_, missing_;
};

/// One of the papers: adds rows to its tables, matrix by matrix.
class Paper {
 public:
  using Tables = std::vector<std::pair<std::string, ResultTable>>;

  virtual ~Paper() = default;
  virtual void measure(PaperBench& bench, Trial& trial, const Subject& subject) = 0;
  /// The rows so far, and the names of the tables in JSON.
  virtual Tables tables() const = 0;
};

/// Seconds of a copy of so many bytes from the host to the device; 0 on the host.
double copy_seconds(std::int64_t bytes, Stream& stream);

}  // namespace shardmat::tools
