// All results of one run as data, and their output as text for people and as JSON for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/over_ranks.h"
#include "runtime/run/product_report.h"
#include "runtime/run/verify.h"
#include "runtime/timing/iteration_times.h"

namespace shardmat {

/// Of a product with the transpose.
struct TransposeReport {
  std::string kernel;                ///< TransposedProduct::kernel()
  OverRanks map_bytes;               ///< DistributedMatrix::transpose_bytes()
  IterationTimes product_of_matrix;  ///< products with A in the same run
};

struct MultiplyReport : ProductReport {
  std::string mode;
  double alpha = 1, beta = 0;
  std::string x, y0;
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
  std::optional<TransposeReport> transpose;    ///< y = alpha·Aᵀ·x + beta·y; none: with A
  std::string output;                          ///< the file that was written, or empty
};

std::string to_text(const MultiplyReport& report);
std::string to_json(const MultiplyReport& report);

}  // namespace shardmat
