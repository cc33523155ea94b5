// Cuts the rows of a matrix into contiguous parts, and measures the quality of a partition.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partition/source/row_source.h"

namespace shardmat {

/// Row ranges of P parts: part p owns rows [row_starts[p], row_starts[p+1]). Parts may be empty.
struct Partition {
  std::string method;                    ///< "nnz" or "rows"
  std::vector<std::int64_t> row_starts;  ///< P + 1 entries, from 0 to rows, non-decreasing

  int parts() const { return static_cast<int>(row_starts.size()) - 1; }
};

/// A partitioner: one line in the list in partitioner.cpp.
struct Partitioner {
  std::string_view name;
  std::string_view help;
  /// row_ptr has rows + 1 entries; parts ≥ 1.
  std::vector<std::int64_t> (*row_starts)(std::span<const std::int64_t> row_ptr, int parts);
};

std::span<const Partitioner> partitioners();

/// Throws Error(usage) for an unknown method, suggesting the nearest name, and for parts < 1. Parts begin at multiples of
/// `node_block_size` rows, the unknowns of a node: the heaviest part is that of the best cuts at such rows. Throws
/// Error(usage) as require_node_block_size().
Partition make_partition(std::string_view method, std::span<const std::int64_t> row_ptr, int parts,
                         std::int64_t node_block_size = 1);

/// Throws Error(usage) if `size` is negative, or does not divide the number of rows. 0 stands for "not known".
void require_node_block_size(std::int64_t size, std::int64_t rows);

/// Splits `count` items evenly: the first count % parts parts get one item more. Returns parts + 1 starts.
std::vector<std::int64_t> even_starts(std::int64_t count, int parts);

/// How x is split for a matrix with `cols` columns: like the rows if the matrix is square, else evenly.
std::vector<std::int64_t> column_starts(const Partition& partition, std::int64_t cols);

/// The quality of a partition. Minima, maxima and means are over the parts.
struct PartitionQuality {
  std::int64_t nnz_min = 0, nnz_max = 0;
  std::int64_t rows_min = 0, rows_max = 0;
  double nnz_mean = 0, rows_mean = 0;
  double imbalance = 1;            ///< nnz_max / nnz_mean; 1 for a matrix without nonzeros
  std::int64_t halo_max = 0;       ///< most entries of x that one part needs from other parts
  std::int64_t halo_total = 0;     ///< total entries of x that must move
  std::int64_t allgather_max = 0;  ///< entries one part receives in an all-gather: (P-1) · largest part of x
  std::int64_t allgather_total = 0;
  std::int64_t neighbours_max = 0;    ///< most other parts from which one part needs entries; -1: not known
  std::int64_t boundary_nnz_max = 0;  ///< most nonzeros of one part in rows that need entries of other parts; -1: not known
  std::int64_t sent_max = 0;          ///< most entries that one part sends to other parts; -1: not known

  bool operator==(const PartitionQuality&) const = default;
};

/// Computes the quality of a partition from rows that come one after the other, so that one pass over the matrix serves
/// several partitions. Keeps one bit for each column.
class QualityMeter {
 public:
  QualityMeter(Partition partition, std::int64_t cols);

  /// Rows in ascending order without gaps from row 0, columns sorted within a row.
  void add(const CsrView& rows);
  /// Call it after the last row.
  PartitionQuality result();

 private:
  void leave_part();
  std::size_t meet_owner(std::int64_t column);
  void mark(std::int64_t begin, std::int64_t end, const CsrView& rows);

  Partition partition_;
  std::vector<std::int64_t> column_starts_;
  std::vector<std::uint64_t> seen_;                   // one bit for each column: the current part needs it from another part
  std::int64_t touched_begin_ = 0, touched_end_ = 0;  // words of seen_ that may have bits
  std::vector<bool> met_;                             // parts from which the current part needs entries
  std::vector<std::size_t> neighbours_;               // the same parts as a list
  std::vector<std::int64_t> sent_;                    // entries that each part sends, counted over the parts so far
  std::int64_t row_ = 0, nnz_ = 0, part_nnz_ = 0, part_halo_ = 0, part_boundary_nnz_ = 0;
  int part_ = 0;
  PartitionQuality quality_;
};

/// Reads the source once, in slices of bounded memory.
PartitionQuality evaluate(const RowSource& source, const Partition& partition);

}  // namespace shardmat
