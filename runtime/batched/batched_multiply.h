// The whole of `shardmat batch` as one call: spreads a batch of many small matrices over the ranks, multiplies, verifies,
// times, writes and reports. (For several large matrices see several.h.) A batch that fits on the devices stays there.
// Otherwise chunks stream through the devices: while one chunk is multiplied, the next is read and the previous returned.
//
// Threads: one thread of each rank; multiply_batched() is collective.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/progress.h"
#include "kernels/batched/batched_tuner.h"
#include "partition/batched/graph_options.h"
#include "runtime/context/context.h"
#include "runtime/timing/iteration_times.h"

namespace shardmat {

struct BatchedOptions {
  std::string batch;  ///< argument of open_batch()
  EdgeValues edges;
  GraphOptions graphs;
  bool transpose = false;    ///< multiply with the transposes
  std::int64_t columns = 1;  ///< of X and Y
  ValueType type = ValueType::f32;
  BatchFormat format = BatchFormat::csr;
  BatchedRequest plan;
  double alpha = 1;
  std::string bias;          ///< added to each row of Y: ones, random or a file; empty: none
  bool relu = false;         ///< negative results become 0
  std::string x = "random";  ///< ones, zeros, random or a file with a row for each stacked column
  std::uint64_t seed = 1;
  std::string output;  ///< file for the stacked Y; empty: Y stays on the devices
  std::int64_t iterations = 10;
  bool verify = false;
  bool stream = false;           ///< multiply chunk by chunk even if the batch fits on the devices
  std::int64_t chunk_bytes = 0;  ///< bytes of a chunk with its X and Y; 0: automatic
  Progress progress;
};

struct BatchedVerification {
  bool passed = true;
  std::int64_t rows_checked = 0, wrong_rows = 0;
  std::int64_t worst_matrix = -1, worst_row = -1;  ///< worst_row: row within the matrix
  double worst_error = 0, worst_bound = 0;
};

/// Seconds of the concurrent stages of streaming, on the slowest rank.
struct BatchedStreaming {
  std::int64_t chunks = 0;
  double total = 0;                ///< from the first read to the last result
  double read = 0;                 ///< reading and packing
  double product = 0;              ///< copies and products, summed over chunks, although chunks overlap
  double deliver = 0;              ///< checking and writing
  std::int64_t other_kernels = 0;  ///< chunks that the chosen kernel could not take
};

struct BatchedReport {
  std::string batch, type, format, backend, backend_why, x, bias;
  std::vector<RankPlace> ranks;
  std::int64_t count = 0, rows = 0, cols = 0, nnz = 0, columns = 1;
  std::int64_t least_rows = 0, most_rows = 0, most_cols = 0;  ///< of one matrix
  bool transpose = false, relu = false;
  double alpha = 1;
  OverRanks rank_matrices, rank_bytes;  ///< rank_bytes: the least that a product moves
  std::string kernel, policy, why;      ///< of rank 0
  std::vector<Measurement> measurements;
  bool reproducible = true;
  std::size_t descriptor_bytes = 0;  ///< of rank 0
  OverRanks loading, choosing, device_bytes;
  IterationTimes product;  ///< of the slowest rank
  double gflops = 0;
  OverRanks bandwidth, copy_bandwidth;
  std::optional<BatchedStreaming> streaming;
  std::optional<BatchedVerification> verification;
  std::string output;
};

/// Collective; the report is the same on all ranks, except for the fields marked "of rank 0". A failed verification does not
/// throw: the report says so, and no output is written. Any other failure throws the same Error on all ranks.
BatchedReport multiply_batched(Context& context, const BatchedOptions& options);

std::string to_text(const BatchedReport& report);
std::string to_json(const BatchedReport& report);

}  // namespace shardmat
