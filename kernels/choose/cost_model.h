// What a product is expected to cost, before anything is converted: the first choice among kernels, and which are worth
// measuring. One unit for everything: the bytes that a copy on the device would move in the same time. A kernel costs the
// most of three terms,
//   streams   what it must move (the stored matrix, x and y once) over the share of the copy rate that it reaches
//   gathers   the sectors of x that its column sequence pulls through the L2 cache
//   longest   the longest row, where a limited number of threads walks along it
// so that matrices that stream are judged by bytes, and power laws by balance. Percentages of GPU kernels are round
// figures near the shares that `shardmat bench kernels` finds on an NVIDIA H200 for matrices that stream, not a fit; f32
// and short rows reach less.
#pragma once

#include "kernels/conversion.h"

namespace shardmat {

/// What a kernel is like; see the terms above.
struct KernelCost {
  double efficiency = 1;      ///< share of the copy rate at which it streams
  double threads_on_row = 0;  ///< that share one row; 0: as many as there are, so that no row is too long
  double unevenness = 0;      ///< how much slower for each standard deviation of the row length, in means, up to 4
};

/// The cost of a product that stores `stored_bytes`.
double effective_bytes(ConversionInput& input, double stored_bytes, const KernelCost& cost);

/// Nonzeros in a row before the next lies in another 128-byte line of x (the spatial locality of Tomimori, Tanabe, Takata
/// and Joe), from a sample spread over the matrix; at least 1. Remembered by the input.
double sampled_locality(ConversionInput& input);

/// An estimate for the registry: the format's own count or estimate of bytes, streamed at kPercent of the copy rate.
template <std::int64_t (*kBytes)(ConversionInput&, const Policy&), int kPercent, int kThreadsOnRow = 0,
          int kUnevennessPercent = 0>
double estimate(ConversionInput& input, const Policy& layout) {
  return effective_bytes(input, static_cast<double>(kBytes(input, layout)),
                         {kPercent / 100.0, static_cast<double>(kThreadsOnRow), kUnevennessPercent / 100.0});
}

}  // namespace shardmat
