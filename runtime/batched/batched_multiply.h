// The whole of `shardmat batch` as one call (several large matrices in turn are batch.h): a batch of many small matrices
// spread over the ranks, multiplied, verified, timed, written, reported. What fits the devices stays there; else chunks
// stream through them, and a chunk is read while the one before is multiplied and the one before that is returned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/progress.h"
#include "kernels/batched/batched_tuner.h"
#include "partition/batched/graph_options.h"
#include "runtime/context.h"
#include "runtime/timing/iterate.h"

namespace shardmat {

struct BatchedOptions {
  std::string batch;  ///< what open_batch() takes
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
  std::string output;  ///< file for the stacked Y; empty: results are left in place
  std::int64_t iterations = 10;
  bool verify = false;
  bool stream = false;           ///< chunk by chunk even if the batch fits the devices
  std::int64_t chunk_bytes = 0;  ///< of a chunk with its X and Y; 0: chosen
  Progress progress;
};

struct BatchedVerification {
  bool passed = true;
  std::int64_t rows_checked = 0, wrong_rows = 0;
  std::int64_t worst_matrix = -1, worst_row = -1;  ///< row within the matrix
  double worst_error = 0, worst_bound = 0;
};

/// Seconds of what streaming does at once, on the slowest rank.
struct BatchedStreaming {
  std::int64_t chunks = 0;
  double total = 0;                ///< from the first read to the last result
  double read = 0;                 ///< reading and packing
  double product = 0;              ///< copies and products, from one's begin to its end; chunks overlap
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
  OverRanks rank_matrices, rank_bytes;  ///< bytes that a product moves at least
  std::string kernel, policy, why;      ///< rank 0's
  std::vector<Measurement> measurements;
  bool reproducible = true;
  std::size_t descriptor_bytes = 0;  ///< rank 0's
  OverRanks loading, choosing, device_bytes;
  IterationTimes product;  ///< of the slowest rank
  double gflops = 0;
  OverRanks bandwidth, copy_bandwidth;
  std::optional<BatchedStreaming> streaming;
  std::optional<BatchedVerification> verification;
  std::string output;
};

/// Collective; the report is the same on all ranks but for what is said to be rank 0's. A failed verification is in the
/// report, not thrown; then nothing is written. Everything else that goes wrong throws the same Error on all ranks.
BatchedReport multiply_batched(Context& context, const BatchedOptions& options);

std::string to_text(const BatchedReport& report);
std::string to_json(const BatchedReport& report);

}  // namespace shardmat
