// Everything one run has to say, as data; text for people and JSON for programs are two views of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/placement.h"
#include "kernels/choose/tuner.h"
#include "runtime/timing/iterate.h"
#include "runtime/over_ranks.h"
#include "runtime/run/verify.h"

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
  std::int64_t column_block = 1;  ///< so many of them move and are multiplied at a time
  std::string column_block_why;   ///< empty: all at once
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
  std::string kernel, format, policy, kernel_why;  ///< rank 0's; see kernel_of_rank
  std::vector<std::string> kernel_of_rank;  ///< "csr_vector threads_per_row=8", one a rank; "; " between blocks that differ
  std::vector<Prediction> predictions;      ///< rank 0's, cheapest first
  std::vector<Measurement> measurements;    ///< rank 0's, fastest first
  std::string decision;                     ///< asked, only, model, measured or remembered (rank 0)
  OverRanks choosing;                       ///< seconds that choosing the kernel took
  double choosing_products = 0;             ///< the same in products on rank 0; 0 if not known
  std::string exchange, exchange_why;
  OverRanks exchange_bytes;
  OverRanks overlapped;  ///< share of a rank's nonzeros that are multiplied while x moves; 0: the product waits for x
  bool graph = false;
  // What came out.
  std::vector<Phase> phases;
  IterationTimes iteration, local, exchange_times;
  double gflops = 0;          ///< 2·nnz·right-hand sides over the median iteration
  OverRanks bandwidth;        ///< bytes a second of the product alone, compulsory bytes
  OverRanks copy_bandwidth;   ///< measured in the same run
  OverRanks device_bytes;     ///< matrix, x and y
  OverRanks host_peak_bytes;  ///< of the process, without the arrays that measured the copy bandwidth
  std::optional<VerifyResult> verification;
  std::string sums;                            ///< how dot products are summed over the ranks (SumOverRanks::name())
  std::optional<double> xy, yy;                ///< --mode dots
  std::optional<double> eigenvalue, residual;  ///< --mode power
  std::string output;                          ///< file written, or empty
};

std::string to_text(const MultiplyReport& report);
std::string to_json(const MultiplyReport& report);

}  // namespace shardmat
