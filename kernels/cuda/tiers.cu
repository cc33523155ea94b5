// Column tiers: one thread block a multiprocessor, with the entries of x of its tier in shared memory. Its warps take
// streams of bundles. Some of them begin with streams of the rest, whose gathers go through the L2 cache: so they overlap
// those of tiers, which only read the matrix. Sums of pieces are added to y atomically. Storing them, and adding the pieces
// of each row in a second kernel, took a third longer.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/cuda/cache_hints.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/scale.h"
#include "kernels/formats/tiers.h"
#include "kernels/formats/upload.h"

namespace shardmat {
namespace {

constexpr int kBlock = 1024, kLanes = kTierLanes;
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr std::uint32_t kBundlesOfStream = 64;  ///< bits of TierStream::ends
constexpr double kBundlesOfStaging = 256;       ///< that a block could read while it loads the entries of x of a tier

/// Slices that a warp takes together.
struct alignas(16) TierStream {
  std::int32_t slice;
  std::uint32_t bundle, bundles, slices;
  std::uint64_t ends, unused;  ///< bit b: bundle b is the last of its slice
};
static_assert(kMostOfPiece / kSlotsOfBundle <= kBundlesOfStream);
/// Streams of a tier that a block takes.
struct TierPart {
  std::int32_t tier, first, last;
};
/// The work of a block: its parts, and streams of the rest.
struct alignas(16) TierWork {
  std::int32_t first_part, last_part, first_rest, last_rest;
};

template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T first, second;
};

template <class T>
struct Arguments {
  const TierWork* __restrict__ work;
  const TierPart* __restrict__ parts;
  const TierStream* __restrict__ streams;
  const std::int64_t* __restrict__ first_column;
  const std::int32_t* __restrict__ columns;
  const std::int32_t* __restrict__ rows;
  const std::uint32_t* __restrict__ local;  ///< two places for each lane
  const uint2* __restrict__ rest_columns;
  const Pair<T>* __restrict__ values;
  std::int64_t bundles_of_tiers;
  T alpha;
  const T* __restrict__ x;
  T* __restrict__ y;
};

// Loads in a fixed order, past the L1 cache: otherwise the compiler delays them to save registers.
__device__ inline void load(std::int32_t& v, const std::int32_t* p) {
  asm volatile("ld.global.nc.L1::no_allocate.s32 %0, [%1];" : "=r"(v) : "l"(p));
}
__device__ inline void load(std::uint32_t& v, const std::uint32_t* p) {
  asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
}
__device__ inline void load(uint2& v, const uint2* p) {
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
}
__device__ inline void load(Pair<double>& v, const Pair<double>* p) {
  asm volatile("ld.global.nc.L1::no_allocate.v2.f64 {%0, %1}, [%2];" : "=d"(v.first), "=d"(v.second) : "l"(p));
}
__device__ inline void load(Pair<float>& v, const Pair<float>* p) {
  asm volatile("ld.global.nc.L1::no_allocate.v2.f32 {%0, %1}, [%2];" : "=f"(v.first), "=f"(v.second) : "l"(p));
}

/// Adds the pieces of a stream to y. A group of bundles, with the rows of slices that end in it, is loaded while the one
/// before is multiplied.
template <bool kRest, class T>
__device__ void add_stream(const Arguments<T>& a, const TierStream* at, const T* of_x, int lane) {
  constexpr int U = 2;
  using Columns = std::conditional_t<kRest, uint2, std::uint32_t>;
  struct Group {
    Columns columns[U];
    Pair<T> values[U];
    std::int32_t row[U];
  };
  const cuda::Loads<cuda::kKeepX> loads;
  const int4 head = __ldg(reinterpret_cast<const int4*>(at));
  const std::uint64_t ends = __ldg(&at->ends);
  const auto first = static_cast<std::uint32_t>(head.y), bundles = static_cast<std::uint32_t>(head.z);
  std::int64_t slice = head.x;
  const auto load_group = [&](Group& group, std::uint32_t b) {
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (b + u < bundles) {
        const std::int64_t place = (std::int64_t{first} + b + u) * kLanes + lane;
        load(group.values[u], a.values + place);
        if constexpr (kRest) load(group.columns[u], a.rest_columns + (place - a.bundles_of_tiers * kLanes));
        else load(group.columns[u], a.local + place);
        if (ends >> (b + u) & 1) load(group.row[u], a.rows + slice++ * kLanes + lane);
      } else {
        group.values[u] = {};
        group.columns[u] = {};
      }
  };
  const auto gather = [&](std::uint32_t column) {
    if constexpr (kRest) return static_cast<std::int32_t>(column) < 0 ? T(0) : loads.x(a.x + column);
    else return of_x[column];
  };
  T sum = 0;
  const auto add_group = [&](const Group& group, std::uint32_t b) {
    T gathered[U][kSlotsOfBundle];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      if constexpr (kRest) {
        gathered[u][0] = gather(group.columns[u].x);
        gathered[u][1] = gather(group.columns[u].y);
      } else {
        gathered[u][0] = gather(group.columns[u] & 0xffff);
        gathered[u][1] = gather(group.columns[u] >> 16);
      }
    }
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (b + u < bundles) {
        sum = fma(group.values[u].first, gathered[u][0], sum);
        sum = fma(group.values[u].second, gathered[u][1], sum);
        if (ends >> (b + u) & 1) {
          if (group.row[u] >= 0) atomicAdd(a.y + group.row[u], a.alpha * sum);
          sum = 0;
        }
      }
  };
  Group even, odd;
  load_group(even, 0);
  for (std::uint32_t b = 0; b < bundles; b += 2 * U) {
    load_group(odd, b + U);
    add_group(even, b);
    load_group(even, b + 2 * U);
    add_group(odd, b + U);
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock, 1) tiers(const Arguments<T> a, int rest_warps) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ int next, next_rest;
  T* of_x = reinterpret_cast<T*>(shared);
  const int warp = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  const TierWork work = a.work[blockIdx.x];
  if (threadIdx.x == 0) next_rest = work.first_rest, of_x[0] = 0;  // what padding reads
  const auto take = [&](int& counter) { return __shfl_sync(kAllLanes, lane == 0 ? atomicAdd(&counter, 1) : 0, 0); };
  for (int p = work.first_part; p < work.last_part; ++p) {
    const TierPart part = a.parts[p];
    __syncthreads();  // nobody reads the tier before
    if (threadIdx.x == 0) next = part.first;
    const std::int64_t first = a.first_column[part.tier];
    const auto columns = static_cast<int>(a.first_column[part.tier + 1] - first);
#pragma unroll 8
    for (int i = static_cast<int>(threadIdx.x); i < columns; i += kBlock)
      of_x[i + 1] = __ldg(a.x + __ldg(a.columns + first + i));
    __syncthreads();
    if (warp < rest_warps)
      while (*static_cast<volatile int*>(&next) < part.last) {
        const int stream = take(next_rest);
        if (stream >= work.last_rest) break;
        add_stream<true>(a, a.streams + stream, of_x, lane);
      }
    for (int stream = take(next); stream < part.last; stream = take(next))
      add_stream<false>(a, a.streams + stream, of_x, lane);
  }
  __syncthreads();
  for (int stream = take(next_rest); stream < work.last_rest; stream = take(next_rest))
    add_stream<true>(a, a.streams + stream, of_x, lane);
}

std::size_t shared_bytes(const TiersStorage& a) {
  return static_cast<std::size_t>(a.pattern->widest() + 1) * size_of(a.type);
}
constexpr std::size_t kStaticBytes = 2 * sizeof(int);

class TiersPlan final : public Plan {
 public:
  TiersPlan(std::shared_ptr<TiersStorage> a, int rest_warps, Stream& stream)
      : Plan(a), a_(std::move(a)), rest_warps_(rest_warps), shared_bytes_(shared_bytes(*a_)) {
    const TiersPattern& p = *a_->pattern;
    divide(p, stream);
    first_column_ = upload(p.first_column, stream);
    dispatch(a_->type,
             [&](auto tag) { cuda::allow_shared_memory(tiers<typename decltype(tag)::type>, shared_bytes_, a_->device); });
    stream.synchronize();
  }

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const TiersPattern& p = *a_->pattern;
      cuda::scale(a_->rows, static_cast<T>(beta), static_cast<T*>(y), stream);
      cuda::launch_blocks(
          tiers<T>, blocks_, kBlock, shared_bytes_, stream,
          Arguments<T>{work_.as<TierWork>(), parts_.as<TierPart>(), streams_.as<TierStream>(),
                       first_column_.as<std::int64_t>(), p.columns.as<std::int32_t>(), a_->slot_rows.as<std::int32_t>(),
                       a_->local.as<std::uint32_t>(), a_->rest_columns.as<uint2>(), a_->values.as<Pair<T>>(),
                       p.bundles_of_tiers(), static_cast<T>(alpha), static_cast<const T*>(x), static_cast<T*>(y)},
          rest_warps_);
    });
  }

  bool reproducible() const override { return false; }

  std::int64_t extra_bytes() const override {
    std::int64_t bytes = 0;
    for (const Buffer* buffer : {&work_, &parts_, &streams_, &first_column_})
      bytes += static_cast<std::int64_t>(buffer->bytes());
    return bytes;
  }

 private:
  /// Streams, and the share of each block: equal numbers of bundles and slices of tiers, with the cost of staging, and of
  /// bundles of the rest.
  void divide(const TiersPattern& p, Stream& stream) {
    std::vector<TierStream> streams;
    std::vector<std::int64_t> first_stream;  // of each tier, of the rest, and their number
    for (std::size_t t = 0; t + 1 < p.first_slice.size(); ++t) {
      first_stream.push_back(std::ssize(streams));
      for (auto s = static_cast<std::size_t>(p.first_slice[t]); s < static_cast<std::size_t>(p.first_slice[t + 1]);) {
        TierStream one{static_cast<std::int32_t>(s), p.first_bundle[s], 0, 0, 0, 0};
        do {
          one.bundles = p.first_bundle[++s] - one.bundle;
          one.ends |= std::uint64_t{1} << (one.bundles - 1);
          ++one.slices;
        } while (s < static_cast<std::size_t>(p.first_slice[t + 1]) &&
                 p.first_bundle[s + 1] - one.bundle <= kBundlesOfStream);
        streams.push_back(one);
      }
    }
    first_stream.push_back(std::ssize(streams));
    blocks_ = std::min<std::int64_t>(properties(a_->device).multiprocessors, std::ssize(streams));

    std::vector<TierPart> parts;
    std::vector<TierWork> work;
    const auto blocks = static_cast<double>(blocks_);
    const double of_tiers = static_cast<double>(p.bundles_of_tiers() + p.first_slice[static_cast<std::size_t>(p.tiers())]);
    const double share = (of_tiers + kBundlesOfStaging * (blocks + p.tiers())) / blocks;
    const double share_of_rest = static_cast<double>(p.bundles() - p.bundles_of_tiers()) / blocks;
    double spent = 0;
    int tier = 0;
    std::int64_t at = 0, at_rest = first_stream[static_cast<std::size_t>(p.tiers())];
    const std::int64_t rest = at_rest;
    for (std::int64_t b = 1; b <= blocks_; ++b) {
      TierWork one{static_cast<std::int32_t>(parts.size()), 0, static_cast<std::int32_t>(at_rest), 0};
      while (at < rest && (b == blocks_ || spent + kBundlesOfStaging < share * static_cast<double>(b))) {
        while (at == first_stream[static_cast<std::size_t>(tier) + 1]) ++tier;
        const std::int64_t first = at, end = first_stream[static_cast<std::size_t>(tier) + 1];
        spent += kBundlesOfStaging;
        while (at < end && (b == blocks_ || spent < share * static_cast<double>(b)))
          spent += streams[static_cast<std::size_t>(at)].bundles + streams[static_cast<std::size_t>(at)].slices, ++at;
        parts.push_back({tier, static_cast<std::int32_t>(first), static_cast<std::int32_t>(at)});
      }
      while (at_rest < std::ssize(streams) &&
             (b == blocks_ || static_cast<double>(streams[static_cast<std::size_t>(at_rest)].bundle) -
                                      static_cast<double>(p.bundles_of_tiers()) <
                                  share_of_rest * static_cast<double>(b)))
        ++at_rest;
      one.last_part = static_cast<std::int32_t>(parts.size());
      one.last_rest = static_cast<std::int32_t>(at_rest);
      work.push_back(one);
    }
    streams_ = upload(streams, stream);
    parts_ = upload(parts, stream);
    work_ = upload(work, stream);
  }

  std::shared_ptr<TiersStorage> a_;
  int rest_warps_;
  std::size_t shared_bytes_;
  std::int64_t blocks_ = 0;
  Buffer work_, parts_, streams_, first_column_;
};

}  // namespace

int tiers_most_columns(Device device, std::size_t value_bytes) {
  return static_cast<int>(
      std::min((cuda::most_shared_memory(device) - kStaticBytes) / value_bytes - 1, std::size_t{kMostOfTier}));
}

bool tiers_supports(const Storage& storage) {
  return shared_bytes(static_cast<const TiersStorage&>(storage)) + kStaticBytes <= cuda::most_shared_memory(storage.device);
}

std::unique_ptr<Plan> make_tiers(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream) {
  const int rest_warps = policy.at("rest_warps");
  if (rest_warps < 0 || rest_warps > kBlock / kLanes)
    throw Error(ErrorKind::usage, "tiers: rest_warps must be from 0 to 32");
  return std::make_unique<TiersPlan>(std::static_pointer_cast<TiersStorage>(std::move(storage)), rest_warps, stream);
}

}  // namespace shardmat
