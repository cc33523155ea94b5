// How the two backends run a step. Internal to kernels/.
#pragma once

#include <algorithm>

#include "kernels/krylov/step.h"

namespace shardmat::krylov {

constexpr int kPartialSums = 8192;   ///< of a pass, for each column
constexpr int kMostBlocks = 1024;    ///< of entries
constexpr int kColumnsAtOnce = 256;  ///< columns that a thread block of a GPU takes

/// Blocks of entries of a pass at most.
template <class Step>
constexpr int most_blocks() {
  return Step::kSums == 0 ? kMostBlocks : std::min(kMostBlocks, kPartialSums / Step::kSums);
}

/// `partial`: kPartialSums·columns sums; then for each kColumnsAtOnce columns 8 bytes, which are 0 before and after the
/// call.
template <class Step>
void run_host(const Step& step, std::int64_t items, int columns, double* partial);
template <class Step>
void run_cuda(const Step& step, std::int64_t items, int columns, double* partial, Stream& stream);

}  // namespace shardmat::krylov
