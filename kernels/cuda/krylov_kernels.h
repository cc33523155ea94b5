// Steps of Krylov methods on a GPU. A fixed grid and a fixed tree: sums do not depend on scheduling. The block that is done
// last adds the partial sums of all and calls finish(). krylov_f32.cu and krylov_f64.cu instantiate the steps of one type
// each with SHARDMAT_MAKE.
#pragma once

#include <algorithm>

#include "kernels/cuda/lane_sums.h"
#include "kernels/cuda/last_block.h"
#include "kernels/cuda/launch.h"
#include "kernels/krylov/all_steps.h"
#include "kernels/krylov/basis_products.h"
#include "kernels/krylov/passes.h"

namespace shardmat::krylov {
namespace on_device {

constexpr int kThreads = 256;
/// Blocks that a multiprocessor holds at least. With one, passes over 32 vectors took 1.5 times as long on an H200.
constexpr int kBlocksPerSm = 2;

/// Sums over the thread block in a fixed order; valid in thread 0.
template <int N>
__device__ Sums<N> sum_over_block(Sums<N> mine) {
  __shared__ double of_warp[(N > 0 ? N : 1) * (kThreads / 32)];
#pragma unroll
  for (int s = 0; s < N; ++s)
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) mine.of[s] += __shfl_down_sync(0xffffffffu, mine.of[s], offset);
  __syncthreads();  // of_warp may still be read from the call before
  if (threadIdx.x % 32 == 0)
    for (int s = 0; s < N; ++s) of_warp[s * (kThreads / 32) + threadIdx.x / 32] = mine.of[s];
  __syncthreads();
  Sums<N> all;
  if (threadIdx.x == 0)
    for (int s = 0; s < N; ++s)
      for (int w = 0; w < kThreads / 32; ++w) all.of[s] += of_warp[s * (kThreads / 32) + w];
  return all;
}

/// One column, kAbreast entries at a time; the last thread takes what is left of them. partial[s·gridDim.x + block].
template <class Step, int kAbreast>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    add_one_column(Step step, std::int64_t items, double* partial, unsigned* done) {
  cuda::after_previous();
  constexpr int N = Step::kSums;
  Sums<N> sums;
  if (const typename Step::Factors factors = step.factors(0); factors.works) {
    const auto add = [&](const Sums<N>& more) {
#pragma unroll
      for (int s = 0; s < N; ++s) sums.of[s] += more.of[s];
    };
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x,
                       threads = static_cast<std::int64_t>(gridDim.x) * kThreads, groups = items / kAbreast;
    for (std::int64_t i = thread; i < groups; i += threads) {
      const std::int64_t at = (is_backward<Step>() ? groups - 1 - i : i) * kAbreast;
      if constexpr (kAbreast == 1) add(step.entry(factors, {at, at, 0}));
      else add(step.template entries<kAbreast>(factors, {at, at, 0}));
    }
    if constexpr (kAbreast > 1)
      if (thread == threads - 1)
        for (std::int64_t at = groups * kAbreast; at < items; ++at) add(step.entry(factors, {at, at, 0}));
  }
  if constexpr (N > 0) {
    sums = sum_over_block(sums);
    if (threadIdx.x == 0)
      for (int s = 0; s < N; ++s) partial[s * gridDim.x + blockIdx.x] = sums.of[s];
  }
  if (!cuda::comes_last(done)) return;
  if constexpr (N > 0) {
    sums = {};
    for (unsigned b = threadIdx.x; b < gridDim.x; b += kThreads)
#pragma unroll
      for (int s = 0; s < N; ++s) sums.of[s] += __ldcg(partial + s * gridDim.x + b);
    sums = sum_over_block(sums);
  }
  if (threadIdx.x == 0) step.finish(0, sums);
}

/// Several columns: blocks (b, c) take columns c·kColumnsAtOnce … of some items; a thread has one column.
/// partial[(s·gridDim.x + block)·columns + column].
template <class Step>
__global__ void __launch_bounds__(kThreads)
    run_columns(Step step, std::int64_t items, int columns, double* partial, unsigned* done) {
  cuda::after_previous();
  constexpr int N = Step::kSums;
  __shared__ double shared[kThreads];
  const int first = static_cast<int>(blockIdx.y) * kColumnsAtOnce;
  const int width = min(columns - first, kColumnsAtOnce), lanes = kThreads / width,
            lane = static_cast<int>(threadIdx.x) / width, column = static_cast<int>(threadIdx.x) % width;
  const int at = first + column;
  const bool has_entries = lane < lanes;
  Sums<N> sums;
  if (const typename Step::Factors factors = step.factors(at); has_entries && factors.works)
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * lanes + lane; i < items;
         i += static_cast<std::int64_t>(gridDim.x) * lanes) {
      const std::int64_t item = is_backward<Step>() ? items - 1 - i : i;
      const Sums<N> more = step.entry(factors, {item, item * columns + at, at});
#pragma unroll
      for (int s = 0; s < N; ++s) sums.of[s] += more.of[s];
    }
#pragma unroll
  for (int s = 0; s < N; ++s) {
    __syncthreads();
    shared[threadIdx.x] = sums.of[s];
    cuda::add_lanes(shared, lanes, width, has_entries ? lane : lanes, column);
    if (lane == 0) partial[(static_cast<std::int64_t>(s) * gridDim.x + blockIdx.x) * columns + at] = shared[column];
  }
  if (!cuda::comes_last(done + 2 * blockIdx.y)) return;
  sums = {};
#pragma unroll
  for (int s = 0; s < N; ++s) {
    double sum = 0;
    if (has_entries)
      for (unsigned b = static_cast<unsigned>(lane); b < gridDim.x; b += static_cast<unsigned>(lanes))
        sum += __ldcg(partial + (static_cast<std::int64_t>(s) * gridDim.x + b) * columns + at);
    __syncthreads();
    shared[threadIdx.x] = sum;
    cuda::add_lanes(shared, lanes, width, has_entries ? lane : lanes, column);
    sums.of[s] = shared[column];
  }
  if (lane == 0) step.finish(at, sums);
}

template <class Step>
void run_one_column(const Step& step, std::int64_t items, double* partial, unsigned* done, Stream& stream) {
  if constexpr (requires { step.basis_products(); }) {
    run_basis_products(step.basis_products(), items, partial, kPartialSums, done, stream);
  } else {
    const auto launch = [&](auto kernel, std::int64_t groups) {
      const std::int64_t blocks = std::clamp<std::int64_t>((groups + kThreads - 1) / kThreads, 1, most_blocks<Step>());
      cuda::launch_grid_early(kernel, blocks, 1, dim3(kThreads), 0, stream, step, items, partial, done);
    };
    constexpr int kAbreast = abreast<Step>();
    if constexpr (kAbreast > 1)
      if (step.aligned()) return launch(add_one_column<Step, kAbreast>, items / kAbreast);
    launch(add_one_column<Step, 1>, items);
  }
}

}  // namespace on_device

template <class Step>
void run_cuda(const Step& step, std::int64_t items, int columns, double* partial, Stream& stream) {
  using namespace on_device;
  auto* const done = reinterpret_cast<unsigned*>(partial + std::int64_t{kPartialSums} * columns);
  if (columns == 1) return run_one_column(step, items, partial, done, stream);
  const int lanes = kThreads / std::min(columns, kColumnsAtOnce);
  const std::int64_t blocks = std::clamp<std::int64_t>((items + lanes - 1) / lanes, 1, most_blocks<Step>()),
                     across = (columns + kColumnsAtOnce - 1) / kColumnsAtOnce;
  cuda::launch_grid_early(run_columns<Step>, blocks, across, dim3(kThreads), 0, stream, step, items, columns, partial, done);
}

#define SHARDMAT_MAKE(...) template void run_cuda(const __VA_ARGS__&, std::int64_t, int, double*, Stream&);

}  // namespace shardmat::krylov
