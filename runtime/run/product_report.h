// What every command that multiplies says about its matrix and its product: the parts, the ranks, the kernels, the exchange.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/placement.h"
#include "kernels/choose/choice.h"
#include "runtime/base/over_ranks.h"

namespace shardmat {

class Product;
struct LoadOptions;
struct LoadTimes;
struct MatrixSource;

struct Phase {
  std::string name;
  OverRanks seconds;
};

struct ProductReport {
  std::string matrix, access, type;
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t right_hand_sides = 1;
  std::int64_t column_block = 1;  ///< right-hand sides that move and are multiplied at a time
  std::string column_block_why;   ///< why these are not all; else empty
  // Where and how.
  std::string backend, backend_why;
  std::vector<RankPlace> ranks;
  int threads_per_rank = 1;  ///< host threads
  std::string partition_method, partition_origin, sort;
  std::int64_t node_block_size = 1;  ///< unknowns of a node
  std::string node_block_origin;     ///< DistributedMatrix::node_block_origin()
  bool nodes_are_whole = true;       ///< no rank has only some rows of a node
  OverRanks part_rows, part_nnz;
  double imbalance = 1;
  double symmetry_difference = 0;                  ///< DistributedMatrix::symmetry_difference()
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
  OverRanks bytes_to_other_hosts, messages_to_other_hosts;  ///< that ranks send in an iteration
  OverRanks overlapped;       ///< share of a rank's nonzeros that are multiplied while x moves; 0: the product waits for x
  std::string why_rows_wait;  ///< Product::why_rows_wait, of the first rank that has one
  bool graph = false;         ///< true if iterations were replayed from a recorded graph
  std::vector<Phase> phases;
};

/// Of a run that multiplies until it converges.
struct IterativeReport : ProductReport {
  std::string sums;                 ///< what sums over the ranks (SumOverRanks::name())
  double seconds_an_iteration = 0;  ///< of the whole run; 0 without iterations
  double product_seconds = 0;       ///< of one product without its exchange, measured after the run; slowest rank
  double exchange_seconds = 0;      ///< of one exchange
  OverRanks device_bytes, host_peak_bytes;
  std::string output;  ///< the file that was written, or empty
};

/// Fills in all but `graph` and `phases`. Collective; the same on all ranks.
void describe_product(const Product& product, const MatrixSource& source, const LoadOptions& options, ProductReport& report);

/// Adds the phases from partitioning to choosing the kernel. Collective.
void add_load_phases(const LoadTimes& times, Communicator& communicator, std::vector<Phase>& phases);

}  // namespace shardmat
