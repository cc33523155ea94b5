// The shard file, version 1
// =========================
// An HDF5 file (metadata in the format of HDF5 1.8, which is checksummed) whose root is a Binsparse 0.1 CSR matrix:
//
//   /                        attribute `binsparse`: the JSON descriptor, a fixed-length UTF-8 string
//   /pointers_to_1           int64 [rows + 1]   first entry of each row; the last one is nnz
//   /indices_1               int32 or int64 [nnz]   columns, strictly increasing in a row; int32 if cols ≤ 2^31
//   /values                  float64 [nnz]
//
// All datasets are contiguous, little-endian and of fixed extent. Behind the HDF5 file lies its description
// (hdf5/own_description.h), which the HDF5 library does not see. Beside the matrix, ours:
//
//   /shardmat                attributes format_version (int64), rows, cols, nnz (int64), source, source_checksum, how
//                            (strings), allow_nonfinite (int64, 1 = NaN and infinity are meant), sort_local (int64,
//                            1 = ranks sort their part by row length when they load it), order (string, where there is a
//                            permutation: length, rcm or graph; length if it is missing), node_block_size (int64: unknowns
//                            of a node in the stored order, 1: none can be told; older files lack it), fingerprint (uint64)
//   /shardmat/block_rows     int64 [B + 1]   ranges of rows with a checksum each, from 0 to rows
//   /shardmat/checksums      uint64 [B, 3]   XXH64 of a block's pointers (from its first row to one past its last, as
//                            int64), of its columns (as int64, however they are stored) and of its values (as float64)
//   /shardmat/permutation    int64 [rows], only if the rows are not in their original order: the original row of each stored
//                            row. In a square matrix the columns are renumbered alike, so that column j is original
//                            column permutation[j]; in any other the columns are as they were. Attribute checksum.
//   /shardmat/permutation_checksums   uint64 [B], beside a permutation: XXH64 of each block's entries, for those who read
//                            only some (older files lack it)
//   /shardmat/unknowns       int64 [rows, 2], only if the source names them: the node and the degree of freedom of each row,
//                            in the *original* order of the rows, whatever order they are stored in. With a permutation,
//                            stored row i is unknowns[permutation[i]]. Attribute checksum (uint64: XXH64 of the numbers)
//   /shardmat/coordinates    float64 [nodes, 3], only if they are known, like the next three: where each node lies. Original
//                            row i belongs to node i / (rows / nodes)
//   /shardmat/axes           float64 [nodes, 9]: the three axes of each node's own system, one after the other
//   /shardmat/mid_edges      int64 [M, 3]: nodes in the middle of an edge, ascending, and the ends of the edge
//   /shardmat/near_null_vectors      float64 [rows, V]: vectors that the matrix maps to almost 0, by original row
//   /shardmat/<one of these four>_checksums   uint64 [⌈its rows / 65536⌉]: XXH64 of each 65536 of its rows
//   /shardmat/partitions/<method>-<P>
//                            attributes method (string), parts (int64), fingerprint (uint64: of the matrix it was made
//                            for), checksum (uint64: XXH64 of row_starts) and the fields of PartitionQuality (older files
//                            lack neighbours_max, boundary_nnz_max and sent_max)
//   /shardmat/partitions/<method>-<P>/row_starts   int64 [P + 1]
//
// The fingerprint is the XXH64 of rows, cols, nnz, the permutation's checksum (0 if there is none) and the checksums, so
// it names the content. A file without /shardmat is a plain Binsparse matrix: readable, without tables and checksums;
// integers of other widths and float32 values are converted there.
//
// A reader refuses a format_version above its own; anything that an old reader would misread gets a new version.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/number_view.h"
#include "partition/source/unknowns.h"

namespace shardmat::shard_format {

constexpr std::int64_t kVersion = 1;
constexpr const char* kBinsparseVersion = "0.1";

constexpr const char* kRoot = "/";
constexpr const char* kDescriptor = "binsparse";
constexpr const char* kPointers = "/pointers_to_1";
constexpr const char* kIndices = "/indices_1";
constexpr const char* kValues = "/values";

constexpr const char* kGroup = "/shardmat";
constexpr const char* kBlockRows = "/shardmat/block_rows";
constexpr const char* kChecksums = "/shardmat/checksums";
constexpr const char* kPermutation = "/shardmat/permutation";
constexpr const char* kPermutationChecksums = "/shardmat/permutation_checksums";
constexpr const char* kUnknowns = "/shardmat/unknowns";
constexpr const char* kCoordinates = "/shardmat/coordinates";
constexpr const char* kAxes = "/shardmat/axes";
constexpr const char* kMidEdges = "/shardmat/mid_edges";
constexpr const char* kNearNullVectors = "/shardmat/near_null_vectors";
constexpr const char* kPartitions = "/shardmat/partitions";
constexpr const char* kRowStarts = "/row_starts";

/// Most rows and nonzeros of a checksum block; a longer row is a block of its own.
constexpr std::int64_t kBlockEntries = std::int64_t{1} << 20;

/// Columns of a matrix this wide still fit int32.
constexpr std::int64_t kNarrowCols = std::int64_t{1} << 31;

/// The checksums of one block, in the order of a row of /shardmat/checksums.
struct BlockChecksums {
  std::uint64_t pointers = 0, indices = 0, values = 0;
  bool operator==(const BlockChecksums&) const = default;
};
static_assert(sizeof(BlockChecksums) == 3 * sizeof(std::uint64_t));

/// `pointers` has one entry more than the block has rows.
BlockChecksums checksums(std::span<const std::int64_t> pointers, const ColumnView& columns, const ValueView& values);

std::uint64_t checksum(std::span<const std::int64_t> numbers);

/// The list as the numbers of /shardmat/unknowns.
inline std::span<const std::int64_t> numbers_of(const UnknownList& unknowns) {
  static_assert(sizeof(NodeUnknown) == 2 * sizeof(std::int64_t));
  return {reinterpret_cast<const std::int64_t*>(unknowns.data()), 2 * unknowns.size()};
}

/// `permutation_checksum` is 0 without a permutation.
std::uint64_t fingerprint(std::int64_t rows, std::int64_t cols, std::int64_t nnz, std::uint64_t permutation_checksum,
                          std::span<const BlockChecksums> blocks);

/// Where the blocks of a matrix begin, and `rows` at the end.
std::vector<std::int64_t> block_rows(std::span<const std::int64_t> row_ptr);

/// "/shardmat/partitions/nnz-4".
std::string partition_group(const std::string& method, std::int64_t parts);

/// Calls f(name, field) for the fields of a PartitionQuality as they are stored: int64 or double attributes.
template <class Quality, class F>
void for_each_quality_field(Quality& quality, F&& f) {
  f("nnz_min", quality.nnz_min);
  f("nnz_max", quality.nnz_max);
  f("nnz_mean", quality.nnz_mean);
  f("rows_min", quality.rows_min);
  f("rows_max", quality.rows_max);
  f("rows_mean", quality.rows_mean);
  f("imbalance", quality.imbalance);
  f("halo_max", quality.halo_max);
  f("halo_total", quality.halo_total);
  f("allgather_max", quality.allgather_max);
  f("allgather_total", quality.allgather_total);
}

/// Likewise for those that files written before lack.
template <class Quality, class F>
void for_each_later_quality_field(Quality& quality, F&& f) {
  f("neighbours_max", quality.neighbours_max);
  f("boundary_nnz_max", quality.boundary_nnz_max);
  f("sent_max", quality.sent_max);
}

}  // namespace shardmat::shard_format
