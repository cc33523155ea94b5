// A rank's rows of a distributed matrix in host memory, before they are stored on the device.
//
// Threads: one thread of each rank; load_part() is collective.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/base/progress.h"
#include "kernels/matrix/compact_csr.h"
#include "runtime/context/context.h"
#include "runtime/maps/row_map.h"
#include "runtime/matrix/matrix_options.h"

namespace shardmat {

struct MatrixSource;
class NodeFacts;
class ValueRoute;

/// How the rows of a matrix are split and ordered.
struct PartOptions {
  ValueType type = ValueType::f64;  ///< type of the stored values; Error(input) for values beyond its range
  std::string method = "nnz";       ///< partitioner
  LocalSort sort = LocalSort::as_file;
  Progress progress;
  std::int64_t node_block_size = 0;  ///< unknowns of a node; 0: as the file says, else found in the pattern
  /// As MatrixOptions: each rank gets the rows that y_rows gives it, in the order of the source; null: those of the
  /// partitioner.
  std::shared_ptr<const RowMap> y_rows = nullptr, x_rows = nullptr;
};

/// Seconds of the phases of loading, on this rank.
struct LoadTimes {
  double partition = 0, read = 0, exchange = 0, plan = 0;
};

/// This rank's rows. The columns of a square matrix are permuted like its rows, so that y can be used as x.
struct LoadedPart {
  std::int64_t rows = 0, cols = 0, nnz = 0;  ///< of the whole matrix
  std::string partition_origin;              ///< "stored in the file", "computed when loading" or "given"
  std::int64_t node_block_size = 1;          ///< unknowns of a node; 1: the pattern shows no nodes of several
  std::string node_block_origin;             ///< "given", "stored in the file" or "found in the pattern"
  std::shared_ptr<const NodeFacts> nodes;    ///< what the source knows of them; null: nothing
  bool nodes_are_whole = true;               ///< the rows of each node lie together on one rank, for all ranks
  LocalSort sort = LocalSort::none;          ///< how the rows of each part were sorted
  std::int64_t first_row = 0;                ///< this rank's first row, in the order of the source or of own rows
  CompactCsr csr;                            ///< this rank's rows with global columns; a row has its columns in any order
  RowMapParts y;                             ///< the rows of `csr`, in this order
  RowMapParts x;                             ///< the entries of x; not used if the matrix is square: they lie as the rows
  /// Where the values of each row of `csr` begin among this rank's values in the caller's order (update_values()); with a
  /// route, among those that it brings.
  HostVector<std::int64_t> value_starts;
  /// From the values that this rank gave to the values of `csr`; null: they are given as above.
  std::shared_ptr<const ValueRoute> route;
  /// Of symmetric storage (make_symmetric.h): the largest relative difference of a_ij and a_ji before both became their
  /// mean.
  double symmetry_difference = 0;
  /// Sum of these changes in each row, in the order of the source, from this rank's first row; empty: nothing changed.
  HostVector<double> averaged;
  LoadTimes times;

  bool square() const { return rows == cols; }
  const RowMapParts& of_x() const { return square() ? y : x; }
};

/// Collective; the same error on all ranks. Memory is checked before it is taken. Each rank reads only its own rows. If a
/// given map wants rows that the source has on other ranks, rows move between ranks as triplets, of 60 bytes a nonzero.
/// Throws Error(usage) for such a map if the source orders its rows otherwise than the original matrix.
LoadedPart load_part(const MatrixSource& source, Context& context, const PartOptions& options);

/// Collective: the unknowns of a node, by which load_part() cuts. `given`: as PartOptions::node_block_size.
std::int64_t node_block_size_of(const MatrixSource& source, Communicator& communicator, std::int64_t given);

/// Column sums of a rank's rows, for the sampled verification. Values are those that are stored, rounded to the type.
struct ColumnSums {
  HostVector<double> sum;     ///< Σ_i a_ij; empty if not kept
  HostVector<double> weight;  ///< Σ_i (nnz_i + 2)·|a_ij|, which bounds the rounding of the rows' sums
};

}  // namespace shardmat
