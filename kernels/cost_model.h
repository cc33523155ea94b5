// Predicts the cost of a product before anything is converted. The prediction gives a first choice among kernels, and the
// kernels worth measuring. The unit of cost is bytes: a device copy of this many bytes would take the same time. The cost of
// a kernel is the maximum of three terms:
//   streams   bytes that it must move (the stored matrix, x and y once), divided by its share of the copy rate
//   gathers   sectors of x that its sequence of columns loads through the L2 cache
//   longest   the longest row, if only a limited number of threads works on it
// So matrices that stream are judged by bytes, and power-law matrices by balance. The shares of the copy rate of GPU kernels
// are round numbers near those that `shardmat bench kernels` measures on an NVIDIA H200 for matrices that stream, not a fit;
// f32 and short rows reach less.
#pragma once

#include "kernels/conversion.h"

namespace shardmat {

/// Properties of a kernel for the three terms above.
struct KernelCost {
  double efficiency = 1;      ///< share of the copy rate at which it streams
  double threads_on_row = 0;  ///< threads that share one row; 0: unlimited, so no row is too long
  double unevenness = 0;      ///< relative slowdown for each unit of stddev / mean of the row lengths, up to 4 units
};

/// The cost of a product that stores `stored_bytes`.
double effective_bytes(ConversionInput& input, double stored_bytes, const KernelCost& cost);

/// Mean number of consecutive nonzeros that read the same 128-byte line of x (the spatial locality of Tomimori, Tanabe,
/// Takata and Joe), at least 1. Taken from a sample spread over the matrix and remembered by the input.
double sampled_locality(ConversionInput& input);

/// An estimate for the registry: kBytes counts or estimates the format's bytes, which stream at kPercent of the copy rate.
template <std::int64_t (*kBytes)(ConversionInput&, const Policy&), int kPercent, int kThreadsOnRow = 0,
          int kUnevennessPercent = 0>
double estimate(ConversionInput& input, const Policy& layout) {
  return effective_bytes(input, static_cast<double>(kBytes(input, layout)),
                         {kPercent / 100.0, static_cast<double>(kThreadsOnRow), kUnevennessPercent / 100.0});
}

}  // namespace shardmat
