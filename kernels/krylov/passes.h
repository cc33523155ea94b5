// How the two backends run a step. Internal to kernels/.
#pragma once

#include "kernels/krylov/step.h"

namespace shardmat::krylov {

constexpr int kBlocks = 1024;        ///< partial sums of a pass at most
constexpr int kColumnsAtOnce = 256;  ///< columns that a thread block of a GPU takes

/// `partial`: kMostSums·kBlocks·columns sums; then for each kColumnsAtOnce columns 8 bytes, which are 0 before and after the
/// call.
template <class Step>
void run_host(const Step& step, std::int64_t items, int columns, double* partial);
template <class Step>
void run_cuda(const Step& step, std::int64_t items, int columns, double* partial, Stream& stream);

}  // namespace shardmat::krylov
