// New values through a map: one pass in the order of the places, so that the map is read and values are written in whole
// cache lines. What neighbouring places gather lies in few lines, which stay in L1 while the block works.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

#include "kernels/cuda/launch.h"
#include "kernels/value_map_backends.h"

namespace shardmat::values {
namespace {

constexpr int kThreads = 256;
constexpr int kPlaces = 4;  ///< of a thread: so many gathers are under way at once

__device__ double widened(double v) { return v; }
__device__ double widened(float v) { return v; }
__device__ double widened(F16 v) { return __half2float(__ushort_as_half(v.bits)); }
__device__ double widened(Bf16 v) { return __uint_as_float(static_cast<unsigned>(v.bits) << 16); }

/// As a conversion on the host rounds.
__device__ void round_to(double& to, double v) { to = v; }
__device__ void round_to(double& to, float v) { to = v; }
__device__ void round_to(float& to, double v) { to = __double2float_rn(v); }
__device__ void round_to(float& to, float v) { to = v; }
__device__ void round_to(F16& to, double v) { to.bits = __half_as_ushort(__double2half(v)); }
__device__ void round_to(F16& to, float v) { to.bits = __half_as_ushort(__float2half_rn(v)); }
__device__ void round_to(Bf16& to, double v) { to.bits = __bfloat16_as_ushort(__double2bfloat16(v)); }
__device__ void round_to(Bf16& to, float v) { to.bits = __bfloat16_as_ushort(__float2bfloat16_rn(v)); }

template <class T, class Source>
__global__ void add_digit(std::int64_t count, const T* __restrict__ values, Source* __restrict__ sources, int shift) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) sources[i] = with_digit(sources[i], widened(values[i]), shift);
}

/// counts: filled, beyond, out of place.
template <class Source>
__global__ void count_sources(std::int64_t count, const Source* __restrict__ sources, std::uint64_t entries,
                              unsigned long long* counts) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const bool inside = i < count;
  const std::uint64_t source = inside ? sources[i] : 0;
  const int filled = __syncthreads_count(source != 0), beyond = __syncthreads_count(source > entries),
            out_of_place = __syncthreads_count(inside && source != static_cast<std::uint64_t>(i) + 1);
  if (threadIdx.x != 0) return;
  if (filled != 0) atomicAdd(counts, static_cast<unsigned long long>(filled));
  if (beyond != 0) atomicAdd(counts + 1, static_cast<unsigned long long>(beyond));
  if (out_of_place != 0) atomicAdd(counts + 2, static_cast<unsigned long long>(out_of_place));
}

/// A list that is read once, past the entries that it leads to.
template <class Source>
struct Listed {
  const Source* sources;
  using Number = Source;
  __device__ Source operator()(std::int64_t place) const { return __ldcs(sources + place); }
};
struct InPlace {
  using Number = std::uint64_t;
  __device__ std::uint64_t operator()(std::int64_t place) const { return static_cast<std::uint64_t>(place) + 1; }
};

/// A block takes kThreads·kPlaces places; neighbouring threads take neighbouring places.
template <class To, class From, class SourceOf>
__global__ void __launch_bounds__(kThreads)
    put_values(std::int64_t count, SourceOf source_of, const From* __restrict__ from, To* __restrict__ to) {
  constexpr int kTile = kThreads * kPlaces;
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * kTile, first = tile + threadIdx.x;
  if (tile + kTile <= count) {
    typename SourceOf::Number source[kPlaces];
    From value[kPlaces];
#pragma unroll
    for (int j = 0; j < kPlaces; ++j) source[j] = source_of(first + j * kThreads);
#pragma unroll
    for (int j = 0; j < kPlaces; ++j) value[j] = source[j] != 0 ? __ldg(from + (source[j] - 1)) : From(0);
#pragma unroll
    for (int j = 0; j < kPlaces; ++j) round_to(to[first + j * kThreads], value[j]);
    return;
  }
  for (std::int64_t place = first; place < count; place += kThreads) {
    const auto source = source_of(place);
    round_to(to[place], source != 0 ? __ldg(from + (source - 1)) : From(0));
  }
}

/// As put_values(), in the other direction.
template <class From, class SourceOf>
__global__ void __launch_bounds__(kThreads)
    write_values_back(std::int64_t count, SourceOf source_of, const From* __restrict__ from, double* __restrict__ to) {
  constexpr int kTile = kThreads * kPlaces;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kTile + threadIdx.x;
#pragma unroll
  for (int j = 0; j < kPlaces; ++j) {
    const std::int64_t place = first + j * kThreads;
    const std::int64_t entry = place < count ? static_cast<std::int64_t>(source_of(place)) - 1 : -1;
    if (entry >= 0) to[entry] = widened(from[place]);
  }
}

template <class Source>
__global__ void put_back(std::int64_t count, const Source* __restrict__ sources, const std::int32_t* __restrict__ of_places,
                         std::int32_t* __restrict__ to) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const Source source = __ldcs(sources + i);
  if (source != 0) to[source - 1] = __ldcs(of_places + i);
}

struct Beyond {
  double limit;
  __device__ bool operator()(double value) const { return fabs(value) >= limit && isfinite(value); }
};
struct NotFinite {
  __device__ bool operator()(double value) const { return !isfinite(value); }
};

template <class T, class Is>
__global__ void find_first(Is is, std::int64_t count, const T* __restrict__ values, unsigned long long* first) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count && is(static_cast<double>(values[i]))) atomicMin(first, static_cast<unsigned long long>(i));
}

void add_digits(ValueType type, const void* values, const Sources& sources, int shift, Stream& stream) {
  dispatch_operands(type, [&](auto tag, auto) {
    dispatch_source(sources.wide, [&](auto source_tag) {
      using T = typename decltype(tag)::type;
      using Source = typename decltype(source_tag)::type;
      cuda::launch(add_digit<T, Source>, sources.count, kThreads, stream, sources.count, static_cast<const T*>(values),
                   static_cast<Source*>(sources.data), shift);
    });
  });
}

Counts count(const Sources& sources, std::uint64_t entries, Stream& stream) {
  const Buffer counts(stream.device(), 3 * sizeof(unsigned long long));
  fill_bytes(counts.data(), 0, counts.bytes(), stream);
  dispatch_source(sources.wide, [&](auto tag) {
    using Source = typename decltype(tag)::type;
    cuda::launch(count_sources<Source>, sources.count, kThreads, stream, sources.count,
                 static_cast<const Source*>(sources.data), entries, counts.as<unsigned long long>());
  });
  unsigned long long found[3];
  copy_to_host(found, counts.data(), sizeof found, stream);
  return {found[0], found[1], found[2]};
}

template <class To, class From>
void put(const Sources& sources, const Update& update, Stream& stream) {
  const auto launch = [&](auto source_of) {
    cuda::launch(put_values<To, From, decltype(source_of)>, (sources.count + kPlaces - 1) / kPlaces, kThreads, stream,
                 sources.count, source_of, static_cast<const From*>(update.from), static_cast<To*>(update.to));
  };
  if (sources.data == nullptr) return launch(InPlace{});
  dispatch_source(sources.wide, [&](auto tag) {
    using Source = typename decltype(tag)::type;
    launch(Listed<Source>{static_cast<const Source*>(sources.data)});
  });
}

void update_cuda(const Sources& sources, const Update& update, Stream& stream) {
  dispatch_operands(update.to_type, [&](auto to, auto) {
    dispatch(update.from_type,
             [&](auto from) { put<typename decltype(to)::type, typename decltype(from)::type>(sources, update, stream); });
  });
}

void write_back_cuda(const Sources& sources, const void* from, ValueType from_type, double* to, Stream& stream) {
  dispatch_operands(from_type, [&](auto tag, auto) {
    using From = typename decltype(tag)::type;
    const auto launch = [&](auto source_of) {
      cuda::launch(write_values_back<From, decltype(source_of)>, (sources.count + kPlaces - 1) / kPlaces, kThreads, stream,
                   sources.count, source_of, static_cast<const From*>(from), to);
    };
    if (sources.data == nullptr) return launch(InPlace{});
    dispatch_source(sources.wide, [&](auto source_tag) {
      using Source = typename decltype(source_tag)::type;
      launch(Listed<Source>{static_cast<const Source*>(sources.data)});
    });
  });
}

void put_back_cuda(const Sources& sources, const std::int32_t* of_places, std::int32_t* to, Stream& stream) {
  if (sources.data == nullptr)
    return copy_on_device(to, of_places, static_cast<std::size_t>(sources.count) * sizeof *to, stream);
  dispatch_source(sources.wide, [&](auto tag) {
    using Source = typename decltype(tag)::type;
    cuda::launch(put_back<Source>, sources.count, kThreads, stream, sources.count, static_cast<const Source*>(sources.data),
                 of_places, to);
  });
}

template <class Is>
std::int64_t first_that(Is is, const void* values, std::int64_t count, ValueType values_type, Stream& stream) {
  const Buffer first(stream.device(), sizeof(unsigned long long));
  const auto none = static_cast<unsigned long long>(count);
  copy_to_device(first.data(), &none, sizeof none, stream);
  dispatch(values_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cuda::launch(find_first<T, Is>, count, kThreads, stream, is, count, static_cast<const T*>(values),
                 first.as<unsigned long long>());
  });
  unsigned long long found = none;
  copy_to_host(&found, first.data(), sizeof found, stream);
  return static_cast<std::int64_t>(found);
}

std::int64_t first_beyond(double limit, const void* values, std::int64_t count, ValueType values_type, Stream& stream) {
  return first_that(Beyond{limit}, values, count, values_type, stream);
}

std::int64_t first_not_finite(const void* values, std::int64_t count, ValueType values_type, Stream& stream) {
  return first_that(NotFinite{}, values, count, values_type, stream);
}

}  // namespace

const ValueMapBackend cuda_backend{add_digits,    count,        update_cuda,     write_back_cuda,
                                   put_back_cuda, first_beyond, first_not_finite};

}  // namespace shardmat::values
