// Products of a vector w with the vectors of a basis. The warps of a team share the vectors: each has a few of them, reads
// 16 bytes of each at a time, and keeps their sums in registers. If w changes first, the warps add up what each subtracts in
// shared memory, and multiply with the entries that they still hold, so every entry leaves memory once. The block that is
// done last adds the sums of all.
#include "kernels/krylov/basis_products.h"

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/cuda/last_block.h"
#include "kernels/cuda/launch.h"
#include "kernels/krylov/step.h"

namespace shardmat::krylov {
namespace {

constexpr int kWarp = 32, kThreads = 512, kWarps = kThreads / kWarp;
constexpr int kBlocksPerSm = 2;
constexpr unsigned kAll = 0xffffffffu;

template <class T>
using Some = Abreast<T, 16 / static_cast<int>(sizeof(T))>;  ///< entries that a lane reads at once

/// Entries of a vector from `at` on; zeros behind the last row.
template <class T>
__device__ Some<T> load(const T* vector, std::int64_t at, std::int64_t rows) {
  constexpr int N = sizeof(Some<T>) / sizeof(T);
  if (at + N <= rows) return Some<T>::load(vector + at);
  Some<T> some{};
#pragma unroll
  for (int n = 0; n < N; ++n)
    if (at + n < rows) some.of[n] = vector[at + n];
  return some;
}
template <class T>
__device__ void store(const Some<T>& some, T* vector, std::int64_t at, std::int64_t rows) {
  constexpr int N = sizeof(Some<T>) / sizeof(T);
  if (at + N <= rows) return some.store(vector + at);
#pragma unroll
  for (int n = 0; n < N; ++n)
    if (at + n < rows) vector[at + n] = some.of[n];
}

/// Waits for the warps of a team.
template <int kTeam>
__device__ void wait_for_team(int team) {
  asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(kTeam * kWarp) : "memory");
}

__device__ double sum_over_warp(double sum) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(kAll, sum, offset);
  return sum;
}

/// kTeam: warps that share the vectors; warp m has the products m, m + kTeam, … K·kTeam at most.
/// partial[product·gridDim.x + block].
template <class T, int kTeam, int K, bool kSubtracts>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    multiply_basis(const BasisProducts<T> p, std::int64_t rows, double* partial, unsigned* done) {
  constexpr int N = sizeof(Some<T>) / sizeof(T), kTeams = kWarps / kTeam;
  __shared__ Some<T> shares[kSubtracts ? 2 : 1][kSubtracts ? kThreads : 1];  // by turns, so that one barrier is enough
  __shared__ double of_warp[K][kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int member = warp % kTeam, team = warp / kTeam;
  cuda::after_previous();
  if (p.wanted != nullptr && *p.wanted == 0) return;
  T h[K];
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int i = member + k * kTeam;
    h[k] = kSubtracts && i < p.count ? static_cast<T>(p.h[i]) : T(0);
  }
  double sums[K] = {};
  int turn = 0;
  const std::int64_t stretches = (rows + kWarp * N - 1) / (kWarp * N), teams = std::int64_t{gridDim.x} * kTeams;
  for (std::int64_t s = std::int64_t{blockIdx.x} * kTeams + team; s < stretches; s += teams) {
    const std::int64_t at = ((p.backward ? stretches - 1 - s : s) * kWarp + lane) * N;
    Some<T> value[K], w{};
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const int i = member + k * kTeam;
      value[k] = {};
      if (i < p.count) value[k] = load(p.v + i * p.apart, at, rows);
    }
    if (!kSubtracts || member == 0) w = load<T>(p.w, at, rows);
    if constexpr (kSubtracts) {
      Some<T>* const share = shares[turn] + team * kTeam * kWarp;
#pragma unroll
      for (int k = 0; k < K; ++k)
#pragma unroll
        for (int n = 0; n < N; ++n) w.of[n] -= h[k] * value[k].of[n];
      share[member * kWarp + lane] = w;
      wait_for_team<kTeam>(team);
      w = share[lane];
#pragma unroll
      for (int m = 1; m < kTeam; ++m)
#pragma unroll
        for (int n = 0; n < N; ++n) w.of[n] += share[m * kWarp + lane].of[n];
      if (member == 0) store(w, p.w, at, rows);
      turn ^= 1;
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
      Some<T> with = value[k];
      if (member + k * kTeam == p.count) with = w;
#pragma unroll
      for (int n = 0; n < N; ++n) sums[k] += static_cast<double>(w.of[n]) * static_cast<double>(with.of[n]);
    }
  }
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const double sum = sum_over_warp(sums[k]);
    if (lane == 0) of_warp[k][warp] = sum;
  }
  __syncthreads();
  const int products = p.count + (p.self ? 1 : 0);
  for (int i = static_cast<int>(threadIdx.x); i < products; i += kThreads) {
    double sum = 0;
    for (int t = 0; t < kTeams; ++t) sum += of_warp[i / kTeam][t * kTeam + i % kTeam];
    partial[static_cast<std::int64_t>(i) * gridDim.x + blockIdx.x] = sum;
  }
  if (!cuda::comes_last(done)) return;
  for (int i = warp; i < products; i += kWarps) {
    double sum = 0;
    for (unsigned b = static_cast<unsigned>(lane); b < gridDim.x; b += kWarp)
      sum += __ldcg(partial + static_cast<std::int64_t>(i) * gridDim.x + b);
    sum = sum_over_warp(sum);
    if (lane == 0) p.to[i] = sum;
  }
}

template <class T>
using Instance = decltype(&multiply_basis<T, 2, 1, false>);
/// The instance for a number of products. Of a large team, few products would leave most warps idle.
template <class T, bool kSubtracts>
Instance<T> instance(int products) {
  constexpr int kSmall = 2, kLarge = 8;  // teams
  if (products <= 4 * kSmall) {
    switch ((products + kSmall - 1) / kSmall) {
      case 1:
        return multiply_basis<T, kSmall, 1, kSubtracts>;
      case 2:
        return multiply_basis<T, kSmall, 2, kSubtracts>;
      case 3:
        return multiply_basis<T, kSmall, 3, kSubtracts>;
      case 4:
        return multiply_basis<T, kSmall, 4, kSubtracts>;
    }
  }
  switch ((products + kLarge - 1) / kLarge) {
    case 2:
      return multiply_basis<T, kLarge, 2, kSubtracts>;
    case 3:
      return multiply_basis<T, kLarge, 3, kSubtracts>;
    case 4:
      return multiply_basis<T, kLarge, 4, kSubtracts>;
    default:
      throw Error(ErrorKind::internal, "a pass over too many vectors of a basis");
  }
}

}  // namespace

template <class T>
void run_basis_products(const BasisProducts<T>& p, std::int64_t rows, double* partial, std::int64_t room, unsigned* done,
                        Stream& stream) {
  if (!Some<T>::is_aligned(p.w) || !Some<T>::is_aligned(p.v) || p.apart % (sizeof(Some<T>) / sizeof(T)) != 0)
    throw Error(ErrorKind::internal, "vectors of a basis do not begin at multiples of 16 bytes");
  const int products = p.count + (p.self ? 1 : 0);
  const Instance<T> kernel = p.h != nullptr ? instance<T, true>(products) : instance<T, false>(products);
  const std::int64_t most = std::min<std::int64_t>(room / products, kBlocksPerSm * cuda::multiprocessors(stream.device()));
  constexpr std::int64_t kEntriesOfBlock = kThreads * (sizeof(Some<T>) / sizeof(T));  // if each warp were a team
  const std::int64_t blocks = std::clamp<std::int64_t>((rows + kEntriesOfBlock - 1) / kEntriesOfBlock, 1, most);
  cuda::launch_grid_early(kernel, blocks, 1, dim3(kThreads), 0, stream, p, rows, partial, done);
}

template void run_basis_products(const BasisProducts<float>&, std::int64_t, double*, std::int64_t, unsigned*, Stream&);
template void run_basis_products(const BasisProducts<double>&, std::int64_t, double*, std::int64_t, unsigned*, Stream&);

}  // namespace shardmat::krylov
