// The rows of a matrix by fields, as velocity and pressure: blocks [F G; D C] of a saddle point.
//
// Threads: one thread of each rank. Collective functions say so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/at.h"
#include "kernels/base/host_vector.h"
#include "runtime/solvers/loop/null_vectors.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::fields {

/// Which of two fields each row of a rank belongs to, in the order of the source.
class Split {
 public:
  /// Collective.
  Split(HostVector<char> field_of_row, Communicator& ranks);

  int field(std::int64_t row) const { return field_[at(row)]; }
  /// Number of a row among this rank's rows of its field.
  std::int64_t place(std::int64_t row) const { return place_[at(row)]; }
  std::int64_t own(int field) const { return own_[field]; }
  std::int64_t all(int field) const { return starts_[field].back(); }  ///< on all ranks
  const std::vector<std::int64_t>& starts(int field) const { return starts_[field]; }

 private:
  HostVector<char> field_;
  HostVector<std::int64_t> place_;
  std::int64_t own_[2] = {};
  std::vector<std::int64_t> starts_[2];
};

/// "auto": field 1 has the rows whose diagonal is negative, or at most a thousandth of the row's largest entry, as in saddle
/// points and constraints. Else a digit for each unknown of a node: "001" for u, v, p. `a`: rows of single entries.
/// Collective. Throws Error(usage) if a field is empty, or the digits do not divide the rows.
Split split_rows(const multigrid::NodeRows& a, const std::string& fields);

/// 1 in the second field, 0 in the first. Not collective.
NullVectors constant_of_second(const Split& split);

/// The same if `a` maps it to 0 and has two fields, as of a flow whose velocities are known all around; else no vectors.
/// Collective.
NullVectors free_constant(const multigrid::NodeRows& a);

/// The rows of field i with the columns of field j. Collective.
multigrid::NodeRows block(const multigrid::NodeRows& a, const Split& split, int i, int j);

/// The same matrix by nodes: of 3 or 2 rows that lie together and have their entries in the same columns' nodes, else of
/// one. `a`: square, of single entries. Collective.
multigrid::NodeRows by_nodes(multigrid::NodeRows a);

/// C − D·diag(F)⁻¹·G. Collective. Throws Error(input) if F has a 0 on its diagonal.
multigrid::NodeRows schur_complement(const multigrid::NodeRows& f, const multigrid::NodeRows& g,
                                     const multigrid::NodeRows& d, const multigrid::NodeRows& c);

/// Sums of the entries of each row, and of their magnitudes. Not collective.
struct RowSums {
  HostVector<double> sum, magnitude;
};
RowSums row_sums(const multigrid::NodeRows& a);
/// No row has more left than rounding errors. Collective.
bool are_zero(const RowSums& sums, Communicator& ranks);

}  // namespace shardmat::fields
