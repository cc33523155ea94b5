// A matrix of the program's own rows, or of a file, on any number of ranks a device.
//
// Every rank gives and takes the entries of its own rows. With feeders (group_context.h), an owner puts together the rows of
// its group and works on them. Functions with a parameter `give` call it once per rank; its error reaches all ranks.
//
// Threads: as DistributedMatrix. All functions that do something are collective.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/ordered_product.h"
#include "runtime/matrix/ordered_transpose.h"
#include "runtime/matrix/own_rows.h"
#include "runtime/shared_gpu/group_context.h"

namespace shardmat {

struct GivenRows {
  OwnRows rows;  ///< of one range
  MatrixOptions options;
  std::string method;                ///< partitioner; empty: rows stay on the ranks that gave them, or on their owners
  bool type_of_values = false;       ///< options.type is that of the values: a rank without entries takes that of the others
  std::int64_t node_block_size = 0;  ///< unknowns of a node; 0: found in the pattern
};
struct GivenTriplets {
  OwnTriplets triplets;  ///< of one range
  MatrixOptions options;
  std::string method;
  bool type_of_values = false;
  std::int64_t node_block_size = 0;
};
/// Owners read it; feeders have no rows of it.
struct GivenFile {
  std::string name;
  LoadOptions options;
  bool transposed = false;
};
struct ZeroedRows {
  std::span<const std::int64_t> rows;  ///< global
  double diagonal = 1;
  bool with_vectors = false;  ///< on every rank that has rows, or on none
  ConstDense x;               ///< own_rows() × 1
  Dense b;
};

/// One product: with the matrix, or with its transpose. The one that it is not, and both on a feeder, are null.
struct GroupProduct {
  std::int64_t columns = 1;
  bool is_transposed = false;
  std::unique_ptr<OrderedProduct> ordered;
  std::unique_ptr<OrderedTranspose> transposed;
  std::string kernel, why, exchange;
};

struct MatrixShape {
  std::int64_t rows = 0, cols = 0;
};
/// The size of the matrix in a file, which the owners open. Collective.
MatrixShape shape_of_file(GroupContext& context, const std::function<std::string()>& give);

class GroupMatrix {
 public:
  GroupMatrix(GroupContext& context, const std::function<GivenRows()>& give);
  GroupMatrix(GroupContext& context, const std::function<GivenTriplets()>& give);
  GroupMatrix(GroupContext& context, const std::function<GivenFile()>& give);
  GroupMatrix(const GroupMatrix&) = delete;
  GroupMatrix& operator=(const GroupMatrix&) = delete;

  GroupContext& context() const { return context_; }
  std::int64_t rows() const { return facts_.rows; }
  std::int64_t cols() const { return facts_.cols; }
  std::int64_t nnz() const { return facts_.nnz; }
  ValueType type() const { return facts_.type; }
  bool updatable() const { return facts_.updatable; }
  /// Unknowns of a node; 1: the matrix has no nodes of several.
  std::int64_t node_block_size() const { return facts_.node_block_size; }
  /// Rows of y, entries of x, and values for update_values() that this rank gives and takes. x of a matrix that is not
  /// square lies in even shares: of the owners, and of the ranks of a group.
  std::int64_t own_rows() const { return own_rows_; }
  std::int64_t own_cols() const { return own_cols_; }
  std::int64_t own_values() const { return own_values_; }
  /// As asked for on this rank.
  const PlanRequest& plan() const { return plan_; }
  /// Global numbers of this rank's rows, or entries of x, in the caller's order. Throws Error(usage) for rows that a
  /// partitioner spread anew. Not collective.
  HostVector<std::int64_t> ids(VectorLayout layout) const;

  /// The matrix of the owners. Throws Error(usage) on a feeder.
  DistributedMatrix& matrix() const;

  struct Vectors {
    ConstDense x;
    Dense y;
  };
  GroupProduct product(const std::function<ProductOptions()>& give);
  /// With Aᵀ. `give` returns the number of columns.
  GroupProduct transposed_product(const std::function<std::int64_t()>& give);
  /// Y = alpha·A·X + beta·Y: own_cols() × columns and own_rows() × columns, as of OrderedProduct; of a transposed product
  /// the other way round, as of OrderedTranspose. With feeders, returns when Y is complete, and an error of `give` reaches
  /// all ranks; without feeders it reaches its own rank alone.
  void multiply(GroupProduct& with, double alpha, double beta, const std::function<Vectors()>& give, Stream& stream,
                bool wait = true);
  void multiply(GroupProduct& with, double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream,
                bool wait = true);
  /// As DistributedMatrix::update_values(). `give` returns own_values() values.
  void update_values(const std::function<ConstDense()>& give, Stream& stream);
  /// As DistributedMatrix::zero_rows_columns().
  void zero_rows_columns(const std::function<ZeroedRows()>& give);

 private:
  struct Facts {
    std::int64_t rows = 0, cols = 0, nnz = 0;
    ValueType type = ValueType::f64;
    bool updatable = false, spread = false;
    std::int64_t first_x = 0, x_entries = 0;  ///< of the owner, if the matrix is not square
    std::int64_t node_block_size = 1;
  };

  bool square() const { return facts_.rows == facts_.cols; }
  void note(const DistributedMatrix& made);
  std::string answer() const;
  void take_answer(const std::string& text);
  void share_x();
  void zero(DistributedMatrix& of, const ZeroedRows& given, std::span<const std::int64_t> rows);

  GroupContext& context_;
  std::unique_ptr<DistributedMatrix> matrix_;  ///< null on a feeder
  Facts facts_;
  PlanRequest plan_;
  RowRange own_;  ///< rows that this rank gave
  bool of_file_ = false;
  std::int64_t own_rows_ = 0, own_cols_ = 0, own_values_ = 0;
};

}  // namespace shardmat
