// All results of one run as data, and their output as text for people and as JSON for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/placement.h"
#include "kernels/choose/choice.h"
#include "runtime/over_ranks.h"
#include "runtime/run/verify.h"
#include "runtime/timing/iteration_times.h"

namespace shardmat {

struct Phase {
  std::string name;
  OverRanks seconds;
};

struct MultiplyReport {
  // What was multiplied.
  std::string matrix, access, type, mode;
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t right_hand_sides = 1;
  std::int64_t column_block = 1;  ///< right-hand sides that move and are multiplied at a time
  std::string column_block_why;   ///< why these are not all; else empty
  double alpha = 1, beta = 0;
  std::string x, y0;
  // Where and how.
  std::string backend, backend_why;
  std::vector<RankPlace> ranks;
  int threads_per_rank = 1;  ///< host threads
  std::string partition_method, partition_origin, sort;
  OverRanks part_rows, part_nnz;
  double imbalance = 1;
  bool reproducible = true;                        ///< the same run gives a bit-identical y
  std::string kernel, format, policy, kernel_why;  ///< of rank 0; see kernel_of_rank
  std::vector<std::string> kernel_of_rank;  ///< of each rank: "csr_vector threads_per_row=8"; "; " between different blocks
  std::vector<Prediction> predictions;      ///< of rank 0, cheapest first
  std::vector<Measurement> measurements;    ///< of rank 0, fastest first
  std::string decision;                     ///< of rank 0: asked, only, model, measured or remembered
  OverRanks choosing;                       ///< seconds that choosing the kernel took
  double choosing_products = 0;             ///< the same time in products, on rank 0; 0 if not known
  std::string exchange, exchange_why;
  OverRanks exchange_bytes;
  OverRanks overlapped;  ///< share of a rank's nonzeros that are multiplied while x moves; 0: the product waits for x
  bool graph = false;    ///< true if iterations were replayed from a recorded graph
  // What came out.
  std::vector<Phase> phases;
  IterationTimes iteration, local, exchange_times;
  double gflops = 0;          ///< 2·nnz·right-hand sides over the median iteration
  OverRanks bandwidth;        ///< compulsory bytes a second, of the product without the exchange
  OverRanks copy_bandwidth;   ///< measured in the same run
  OverRanks device_bytes;     ///< matrix, x and y
  OverRanks host_peak_bytes;  ///< of the process, without the arrays that measured the copy bandwidth
  std::optional<VerifyResult> verification;
  std::string sums;                            ///< what sums dot products over the ranks (SumOverRanks::name())
  std::optional<double> xy, yy;                ///< --mode dots
  std::optional<double> eigenvalue, residual;  ///< --mode power
  std::string output;                          ///< the file that was written, or empty
};

std::string to_text(const MultiplyReport& report);
std::string to_json(const MultiplyReport& report);

}  // namespace shardmat
