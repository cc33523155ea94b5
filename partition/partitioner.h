// Contiguous row ranges, one a part, and how good they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partition/row_source.h"

namespace shardmat {

/// Row ranges of P parts: part p owns rows [row_starts[p], row_starts[p+1]). Parts may be empty.
struct Partition {
  std::string method;                    ///< "nnz" or "rows"
  std::vector<std::int64_t> row_starts;  ///< P + 1 entries, from 0 to rows, non-decreasing

  int parts() const { return static_cast<int>(row_starts.size()) - 1; }
};

/// A way to cut rows into parts: one line in the list of partitioner.cpp.
struct Partitioner {
  std::string_view name;
  std::string_view help;
  /// row_ptr has rows + 1 entries; parts ≥ 1.
  std::vector<std::int64_t> (*row_starts)(std::span<const std::int64_t> row_ptr, int parts);
};

std::span<const Partitioner> partitioners();

/// Throws Error(usage) with the nearest right name for an unknown method, or for parts < 1.
Partition make_partition(std::string_view method, std::span<const std::int64_t> row_ptr, int parts);

/// What a partition costs. Every figure is over parts.
struct PartitionQuality {
  std::int64_t nnz_min = 0, nnz_max = 0;
  std::int64_t rows_min = 0, rows_max = 0;
  double nnz_mean = 0, rows_mean = 0;
  double imbalance = 1;            ///< nnz_max / nnz_mean; 1 for a matrix without nonzeros
  std::int64_t halo_max = 0;       ///< most entries of x one part needs from other parts
  std::int64_t halo_total = 0;     ///< entries of x that must move in all
  std::int64_t allgather_max = 0;  ///< entries of x one part receives in an all-gather
  std::int64_t allgather_total = 0;
};

/// Reads the source in slices of bounded memory. For a square matrix x is split like the rows, else evenly.
PartitionQuality evaluate(const RowSource& source, const Partition& partition);

}  // namespace shardmat
