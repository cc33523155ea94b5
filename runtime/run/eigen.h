// The whole of `shardmat eigen` as one call: open, load, find eigenvalues, write, report.
//
// Threads: one thread of each rank; eigen() is collective.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "comm/placement.h"
#include "partition/nodes/given_nodes.h"
#include "partition/readers/input_choices.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/run/product_report.h"
#include "runtime/solvers/eigen/eigenpairs.h"

namespace shardmat {

class Context;

/// automatic: shift_invert with a shift, and for small pairs; lobpcg for other pairs; else lanczos.
enum class EigenMethod { automatic, power, lanczos, lobpcg, shift_invert };
std::string_view name(EigenMethod method);
std::string_view name(Which which);

struct EigenOptions {
  std::string matrix;  ///< matrix file or generator specification, see open_matrix()
  std::string mass{};  ///< the same of M in K·x = λ·M·x; "auto": the .mas beside the matrix's .sti; empty: none
  bool allow_nonfinite = false;  ///< accept NaN and infinity among its values
  InputChoices choices{};        ///< what the user says about its file
  LoadOptions load;              ///< one right-hand side
  EigenMethod method = EigenMethod::automatic;
  LanczosOptions settings;  ///< power: its tolerance, iterations and seed; count is 1, which is largest
  PairOptions pair;         ///< of lobpcg and shift_invert
  NodeFiles nodes;          ///< of lobpcg and minres: files with the nodes of the matrix, for multigrid
  BackendChoice backend = BackendChoice::automatic;
  int threads = 0;      ///< host threads of each rank; 0: its share of the cores of its host
  std::string vectors;  ///< file for the eigenvectors, rows in original order, a column each; empty = none
  EigenMonitor monitor;
  std::function<bool()> stop;  ///< see Lanczos::run()
};

/// What "auto" means for these options. Throws Error(usage) for options that do not go with the method. Not collective.
EigenMethod choose_eigen_method(const EigenOptions& options);
/// The same once the matrix is there: small pairs take shift_invert.
EigenMethod choose_eigen_method(const EigenOptions& options, const DistributedMatrix& matrix);

/// The file of M; empty: none. Throws Error(usage) for "auto" and a matrix that is no .sti of CalculiX.
std::string mass_file(const EigenOptions& options);
/// True if lobpcg or shift_invert is what these options ask for.
bool is_of_pairs(const EigenOptions& options);
/// What a tolerance is if none is given.
double default_eigen_tolerance(bool of_pairs, ValueType type);

struct EigenReport : IterativeReport {
  EigenMethod method = EigenMethod::lanczos;
  LanczosOptions settings;
  EigenResult result;
  std::string mass;  ///< the name of M; empty: none
  PairOptions options_of_pair;
  PairResult pair;                ///< of lobpcg and shift_invert; `result` has its base, too
  std::int64_t penalty_rows = 0;  ///< rows that state known values (penalty_rows.h): each makes an eigenvalue of no meaning
  double penalty_ratio = 0;       ///< the largest one of their diagonals to all else
};

/// Collective; the report is the same on all ranks. Pairs that did not converge do not throw: the report says so, and the
/// last vectors are written. Any other failure throws the same Error on all ranks.
EigenReport eigen(Communicator& communicator, const EigenOptions& options);
EigenReport eigen(Context& context, const EigenOptions& options);

std::string to_text(const EigenReport& report);
std::string to_json(const EigenReport& report);

}  // namespace shardmat
