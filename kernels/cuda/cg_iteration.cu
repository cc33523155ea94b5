#include "kernels/krylov/cg_iteration.h"

#include <algorithm>
#include <array>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/peer_sums.h"

namespace shardmat::krylov {
namespace {

constexpr int kThreads = 1024, kAtOnce = 4;

/// The entries that a thread has at once. A thread has the same entries in all passes, so that it need not wait until it
/// sees what others wrote.
struct Chunk {
  std::int64_t first, stride, rows;
  __device__ bool has(int u) const { return first + u * stride < rows; }
  __device__ std::int64_t at(int u) const { return first + u * stride; }
};

/// Accesses to one vector; `keeps`: its lines leave the L2 cache last, so that it stays there during the product.
class Hinted {
 public:
  __device__ explicit Hinted(bool keeps) {
    std::uint64_t last, normal;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(normal));
    policy_ = keeps ? last : normal;
  }
  template <class T>
  __device__ void load(T (&to)[kAtOnce], const T* from, const Chunk& chunk) const {
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (chunk.has(u)) load(to[u], from + chunk.at(u));
  }
  __device__ void store(float* to, float value) const {
    asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" ::"l"(to), "f"(value), "l"(policy_) : "memory");
  }
  __device__ void store(double* to, double value) const {
    asm volatile("st.global.L2::cache_hint.f64 [%0], %1, %2;" ::"l"(to), "d"(value), "l"(policy_) : "memory");
  }

 private:
  __device__ void load(float& to, const float* from) const {
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(to) : "l"(from), "l"(policy_));
  }
  __device__ void load(double& to, const double* from) const {
    asm volatile("ld.global.L2::cache_hint.f64 %0, [%1], %2;" : "=d"(to) : "l"(from), "l"(policy_));
  }
  std::uint64_t policy_;
};

/// What finish() reads comes to the L1 cache early.
template <class T, Scaling kScaling>
__device__ void touch(const CgVectors<T, kScaling>& v) {
  const auto load = [](const void* p) {
    unsigned word;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(word) : "l"(p));
  };
  load(v.monitor.reason), load(v.monitor.iterations), load(v.monitor.norm);
  load(v.monitor.converged_below), load(v.monitor.diverged_above);
  load(v.scalars.pq), load(v.scalars.rz), load(v.scalars.squares), load(v.scalars.rz_before), load(v.scalars.alpha);
  load(v.scalars.turn);
}

/// `kept`: of r, p and x, how many stay in the L2 cache.
template <class T, Scaling kScaling>
__global__ void __launch_bounds__(kThreads, 1) cg_iteration(__grid_constant__ const CgIteration<T, kScaling> in, int kept) {
  cuda::after_previous();
  const CgVectors<T, kScaling>& v = in.v;
  // the last warp has no entries: it writes the scalars while the others work
  const std::int64_t mine = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x,
                     stride = static_cast<std::int64_t>(gridDim.x) * kThreads - 32, step = kAtOnce * stride,
                     rows = mine < stride ? in.rows : 0, count = mine < stride ? in.count : 0;
  const unsigned round = __ldcg(in.board.rounds);
  const bool goes_on = v.monitor.goes_on(0);
  const double rz = *v.scalars.rz;
  const Hinted of_r(kept > 0), of_p(kept > 1), of_x(kept > 2), of_q(false);
  T r[kAtOnce], q[kAtOnce], p[kAtOnce], x[kAtOnce];
  Chunk chunk{mine, stride, rows};
  double curvature[1] = {0};
  if (in.parts != nullptr)
    for (std::int64_t i = mine; i < count; i += stride) curvature[0] += in.parts[i];
  else
    for (std::int64_t i = mine; i < rows; i += stride)
      curvature[0] += static_cast<double>(v.p[i]) * static_cast<double>(v.q[i]);
  of_r.load(r, v.r, chunk);  // on the way while the blocks wait for each other
  of_q.load(q, v.q, chunk);
  if (mine == stride) touch(v);
  cuda::sum_over_grid<kThreads>(in.board, round + 1, curvature);
  const double pq = curvature[0];
  const bool works = goes_on && pq > 0;
  const T alpha = static_cast<T>(rz / pq);

  double sums[2] = {0, 0};
  if (works)
    while (true) {
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (!chunk.has(u)) continue;
        r[u] -= alpha * q[u];
        of_r.store(v.r + chunk.at(u), r[u]);
        T z = r[u];
        if constexpr (kScaling == Scaling::diagonal) z *= v.scale[chunk.at(u)];
        const double rd = static_cast<double>(r[u]), zd = static_cast<double>(z);
        sums[0] += rd * zd;
        sums[1] += square(v.norm, rd, zd);
      }
      if (chunk.first + step >= rows) break;
      chunk.first += step;
      of_r.load(r, v.r, chunk);
      of_q.load(q, v.q, chunk);
    }

  of_x.load(x, v.x, chunk);
  of_p.load(p, v.p, chunk);
  cuda::sum_over_grid<kThreads>(in.board, round + 2, sums);
  if (mine == stride) {  // all blocks have read the scalars: they have summed twice
    *v.scalars.pq = pq;
    CgResidual<T, kScaling>{v}.finish(0, {{sums[0], sums[1]}});
    CgDirection<T, kScaling>{v}.finish(0, {});
    *in.board.rounds = round + 2;
  }
  const T beta = static_cast<T>(sums[0] / rz);
  if (works)
    while (true) {  // backward: the last entries are in the registers
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (!chunk.has(u)) continue;
        T z = r[u];
        if constexpr (kScaling == Scaling::diagonal) z *= v.scale[chunk.at(u)];
        of_x.store(v.x + chunk.at(u), x[u] + alpha * p[u]);
        of_p.store(v.p + chunk.at(u), z + beta * p[u]);
      }
      if (chunk.first < step) break;
      chunk.first -= step;
      of_r.load(r, v.r, chunk);
      of_x.load(x, v.x, chunk);
      of_p.load(p, v.p, chunk);
    }
}

std::int64_t l2_bytes(Device device) {
  int bytes = 0;
  SHARDMAT_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device.ordinal));
  return bytes;
}

}  // namespace

int cg_blocks(Device device) {
  if (device.backend != Backend::cuda) return 0;
  int cooperative = 0;
  SHARDMAT_CUDA_CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device.ordinal));
  return cooperative != 0 && cuda::compiled_for_9_0(cg_iteration<double, Scaling::none>, device)
             ? cuda::multiprocessors(device)
             : 0;
}

template <class T, Scaling kScaling>
void run_cg_iteration(const CgIteration<T, kScaling>& iteration, Stream& stream) {
  const DeviceGuard guard(stream.device());
  std::array<cudaLaunchAttribute, 2> attributes{};
  attributes[0].id = cudaLaunchAttributeCooperative;
  attributes[0].val.cooperative = 1;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(iteration.blocks));
  config.blockDim = dim3(kThreads);
  config.stream = stream.native();
  config.attrs = attributes.data();
  config.numAttrs = attributes.size();
  stream.let_next_begin(false);
  const std::int64_t vector_bytes = iteration.rows * static_cast<std::int64_t>(sizeof(T));
  const int kept =
      static_cast<int>(std::min<std::int64_t>(3, l2_bytes(stream.device()) / std::max<std::int64_t>(1, vector_bytes)));
  SHARDMAT_CUDA_CHECK(cudaLaunchKernelEx(&config, cg_iteration<T, kScaling>, iteration, kept));
}

#define SHARDMAT_MAKE(T, kScaling) template void run_cg_iteration(const CgIteration<T, kScaling>&, Stream&);
SHARDMAT_CG_ITERATIONS(SHARDMAT_MAKE)

}  // namespace shardmat::krylov
