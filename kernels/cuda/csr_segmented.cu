// CSR as one long sequence of nonzeros with a flag where a row begins: a warp takes a stretch of it whatever rows lie there,
// each lane adds its own few products up to the flags, and sums over the lanes join what rows share (after the
// bit flags of Yan, Li, Zhang and Zhou, "yaSpMV", PPoPP'14, and of Liu and Vinter, "CSR5", ICS'15, but on the CSR arrays as
// they are). Row offsets are not read at all; empty rows are a list of their own.
//
// With hub_kb > 0 the columns that most nonzeros share are copied from x to shared memory once a block, and the plan keeps a
// copy of the column indices in which a hub is the complement of its place there: in power-law matrices some ten thousand
// columns take about half of all gathers, which otherwise compete for L1 with everything else.
#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/cuda/cache_hints.h"
#include "kernels/cuda/hubs.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/segment_sums.h"
#include "kernels/cuda/segments.h"
#include "kernels/formats/csr.h"

namespace shardmat {
namespace {

constexpr int kPlainBlock = 256, kPlainBlocksPerSm = 4;
constexpr int kHubBlock = 1024;  // one an SM, so that an SM holds the hubs once

/// One flag for each of a lane's nonzeros.
template <int kItems>
using Flags = std::conditional_t<kItems == 8, std::uint8_t, std::uint16_t>;

/// The matrix as the kernel sees it. A step is 32·kItems nonzeros, a chunk some steps that one warp takes.
struct Sequence {
  std::int64_t nnz, chunks;
  int steps, hubs;
  const void* flags;            ///< Flags a lane and step; whole steps, 0 behind the last nonzero
  const std::int32_t* begun;    ///< rows that begin before each chunk
  const std::int32_t* rows;     ///< the rows that are not empty
  const std::int32_t* col_idx;  ///< a hub as the complement of its place in hub_columns
  const std::int32_t* hub_columns;
};

/// Products of one step in shared memory, kItems a lane and a place between lanes against bank conflicts; 0 behind the end.
template <int kItems, int kHint, bool kHubs, class T>
__device__ void multiply_step(int lane, int count, const std::int32_t* __restrict__ col_idx, const T* __restrict__ values,
                              const T* __restrict__ x, const T* hub_values, T* products) {
  const cuda::Loads<kHint> loads;
  std::int32_t column[kItems];
  T value[kItems];
#pragma unroll
  for (int u = 0; u < kItems; ++u) {
    const bool inside = u * 32 + lane < count;
    column[u] = inside ? loads.matrix(col_idx + u * 32 + lane) : 0;
    value[u] = inside ? loads.matrix(values + u * 32 + lane) : T(0);
  }
#pragma unroll
  for (int u = 0; u < kItems; ++u) {
    if (u * 32 + lane >= count) continue;
    if (kHubs && column[u] < 0) value[u] *= hub_values[~column[u]];
    else value[u] *= loads.x(x + column[u]);
  }
#pragma unroll
  for (int u = 0; u < kItems; ++u) products[u * 32 + lane + (u * 32 + lane) / kItems] = value[u];
}

/// Rows that end in one chunk, head[chunk] and tail[chunk]. A row is finished by the chunk in which the next one begins.
template <int kItems, int kHint, bool kHubs, class T>
__device__ void add_chunk(const Sequence& a, std::int64_t chunk, const T* __restrict__ values, T alpha,
                          const T* __restrict__ x, T beta, T* __restrict__ y, T* __restrict__ head, T* __restrict__ tail,
                          const T* hub_values, T* products) {
  constexpr int kStep = 32 * kItems;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto write = [&](int row_number, T sum) {
    const std::int32_t row = a.rows[row_number];
    y[row] = beta == T(0) ? alpha * sum : fma(beta, y[row], alpha * sum);
  };
  const int first = a.begun[chunk];
  int begun = first;
  T open = 0;  // sum so far of the row that is open between steps
  for (int s = 0; s < a.steps; ++s) {
    const std::int64_t step = chunk * a.steps + s, begin = step * kStep;
    if (begin >= a.nnz) break;
    const unsigned flags = static_cast<const Flags<kItems>*>(a.flags)[step * 32 + lane];
    multiply_step<kItems, kHint, kHubs>(lane, static_cast<int>(min(a.nnz - begin, std::int64_t{kStep})), a.col_idx + begin,
                                        values + begin, x, hub_values, products);
    const int begun_here = begun + cuda::scan(lane, __popc(flags)), entered = begun_here - __popc(flags);
    __syncwarp();
    int row = entered;
    using Sums = cuda::LaneSums<T>;
    Sums sums, joined;  // joined: the part that belongs to the row open when this lane was entered
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      if (flags >> u & 1) {
        if (row == entered) joined = sums;
        else write(row - 1, sums.behind(T(0)));
        ++row;
        sums = {};
      }
      sums.of[u / (kItems / Sums::kSegments)] += products[lane * (kItems + 1) + u];
    }
    __syncwarp();
    const cuda::Open<T> before = cuda::join_lanes(lane, flags != 0, sums, open);
    if (flags != 0) {
      T of_row = joined.behind(before.in_lanes);
      if (before.began_before_group) of_row += before.in_groups;
      if (entered == first) head[chunk] = of_row;
      else write(entered - 1, of_row);
    }
    open = before.behind;
    begun = __shfl_sync(cuda::kAllLanes, begun_here, 31);
  }
  if (lane == 0) tail[chunk] = open;
}

template <class T, int kItems, int kHint, bool kHubs>
__global__ void __launch_bounds__(kHubs ? kHubBlock : kPlainBlock, kHubs ? 1 : kPlainBlocksPerSm)
    csr_segmented(Sequence a, const T* __restrict__ values, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y,
                  T* __restrict__ head, T* __restrict__ tail) {
  extern __shared__ __align__(16) unsigned char shared[];
  T* hub_values = reinterpret_cast<T*>(shared);
  if constexpr (kHubs) {
    for (int i = static_cast<int>(threadIdx.x); i < a.hubs; i += kHubBlock) hub_values[i] = x[a.hub_columns[i]];
    __syncthreads();
  }
  const int warps = static_cast<int>(blockDim.x) / 32, warp = static_cast<int>(threadIdx.x) / 32;
  T* products = hub_values + a.hubs + warp * 32 * (kItems + 1);
  for (std::int64_t chunk = static_cast<std::int64_t>(blockIdx.x) * warps + warp; chunk < a.chunks;
       chunk += static_cast<std::int64_t>(gridDim.x) * warps)
    add_chunk<kItems, kHint, kHubs>(a, chunk, values, alpha, x, beta, y, head, tail, hub_values, products);
}

template <class T>
using Instance = decltype(&csr_segmented<T, 8, 0, false>);

template <class T, bool kHubs>
Instance<T> instance(int items, int hint) {
  if (hint == cuda::kNoHint && items == 8) return csr_segmented<T, 8, cuda::kNoHint, kHubs>;
  if (hint == cuda::kNoHint && items == 16) return csr_segmented<T, 16, cuda::kNoHint, kHubs>;
  if (hint == cuda::kKeepX && items == 8) return csr_segmented<T, 8, cuda::kKeepX, kHubs>;
  if (hint == cuda::kKeepX && items == 16) return csr_segmented<T, 16, cuda::kKeepX, kHubs>;
  return nullptr;
}

struct Tunables {
  int items, steps, hint, hub_kb;
  bool has_hubs() const { return hub_kb > 0; }
};

/// The instance for a policy, or null.
template <class T>
Instance<T> instance(const Tunables& t) {
  return t.has_hubs() ? instance<T, true>(t.items, t.hint) : instance<T, false>(t.items, t.hint);
}

class CsrSegmentedPlan final : public Plan {
 public:
  CsrSegmentedPlan(std::shared_ptr<CsrStorage> a, Tunables tunables, Stream& stream)
      : Plan(a), a_(std::move(a)), t_(tunables), block_size_(t_.has_hubs() ? kHubBlock : kPlainBlock) {
    if (a_->rows == 0) return;
    segments_ = cuda::find_segments(*a_, t_.items, t_.steps, 1, stream);
    const auto value = size_of(a_->type);
    const auto products = static_cast<std::size_t>(block_size_ * (t_.items + 1)) * value;
    if (t_.has_hubs()) {
      const std::size_t most = cuda::most_shared_memory(a_->device);
      if (products >= most)
        throw Error(ErrorKind::usage, "csr_segmented: this GPU lacks the shared memory for hubs; set hub_kb=0");
      const std::size_t room = std::min(static_cast<std::size_t>(t_.hub_kb) * 1024, most - products);
      hubs_ = cuda::find_hubs(*a_, room / value, stream);
    }
    shared_bytes_ = products + static_cast<std::size_t>(hubs_.count) * value;
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      cuda::allow_shared_memory(instance<T>(t_), shared_bytes_, a_->device);
    });
    const std::int64_t warps = block_size_ / 32;
    blocks_ = (segments_.chunks + warps - 1) / warps;
    if (t_.has_hubs()) blocks_ = std::min<std::int64_t>(blocks_, properties(a_->device).multiprocessors);
  }

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    if (a_->rows == 0) return;
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const cuda::SplitRows& split = segments_.split;
      const Sequence sequence{a_->nnz,
                              segments_.chunks,
                              t_.steps,
                              hubs_.count,
                              segments_.flags.data(),
                              segments_.begun.as<std::int32_t>(),
                              segments_.rows.as<std::int32_t>(),
                              (hubs_.count > 0 ? hubs_.coded : a_->col_idx).as<std::int32_t>(),
                              hubs_.columns.as<std::int32_t>()};
      cuda::launch_blocks(instance<T>(t_), blocks_, block_size_, shared_bytes_, stream, sequence, a_->values.as<T>(),
                          static_cast<T>(alpha), static_cast<const T*>(x), static_cast<T>(beta), static_cast<T*>(y),
                          split.head.as<T>(), split.tail.as<T>());
      cuda::finish_rows<T>(split, segments_.empty.as<std::int32_t>(), segments_.empty_count, static_cast<T>(alpha),
                           static_cast<T>(beta), static_cast<T*>(y), stream);
    });
  }

  std::int64_t extra_bytes() const override { return segments_.bytes() + hubs_.bytes(); }

 private:
  std::shared_ptr<CsrStorage> a_;
  Tunables t_;
  int block_size_;
  std::size_t shared_bytes_ = 0;
  std::int64_t blocks_ = 0;
  cuda::Segments segments_;
  cuda::Hubs hubs_;
};

}  // namespace

bool csr_segmented_supports(const Storage& storage) { return storage.rows < std::numeric_limits<std::int32_t>::max(); }

std::unique_ptr<Plan> make_csr_segmented(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream) {
  const Tunables t{policy.at("items"), policy.at("steps"), policy.at("hint"), policy.at("hub_kb")};
  if (instance<float>(t) == nullptr)
    throw Error(ErrorKind::usage, "csr_segmented: items must be 8 or 16, hint 0 (none) or 2 (keep x in the caches)");
  if (t.steps < 1 || t.steps > 64) throw Error(ErrorKind::usage, "csr_segmented: steps must be from 1 to 64");
  if (t.hub_kb < 0 || t.hub_kb > 1024) throw Error(ErrorKind::usage, "csr_segmented: hub_kb must be from 0 to 1024");
  return std::make_unique<CsrSegmentedPlan>(std::static_pointer_cast<CsrStorage>(std::move(storage)), t, stream);
}

}  // namespace shardmat
