// Tiled rows: a thread block a tile. While the entries of x that the tile needs are on their way to shared memory, each warp
// already loads the first two groups of bundles of its stream. Then a group is loaded while the one before is multiplied, so
// that memory is busy from the first microsecond to the last.
#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/cuda/dot_sums.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/tiled.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kThreadsPerSm = 1024;  // with 64 registers each

template <class T>
struct Arguments {
  const TiledTile* __restrict__ tiles;
  const TiledStream* __restrict__ streams;
  const TiledSlice* __restrict__ slices;
  const std::int32_t* __restrict__ rows;
  const std::int32_t* __restrict__ columns;
  const std::uint16_t* __restrict__ local;
  const T* __restrict__ values;
  std::int64_t room;    ///< slots from one tile to the next, or 0
  std::int32_t widest;  ///< columns
  T alpha, beta;
  const T* x;
  T* __restrict__ y;
};

/// 16 bytes of values and their local columns.
template <class T>
struct Bundle;
template <>
struct Bundle<double> {
  static constexpr int V = 2;
  double value[V];
  std::uint16_t local[V];
  __device__ void load(const double* values, const std::uint16_t* columns) {
    const ushort2 c = __ldcs(reinterpret_cast<const ushort2*>(columns));
    local[0] = c.x, local[1] = c.y;
    // In a fixed order: otherwise the compiler delays loads to save registers.
    asm volatile("ld.global.cs.v2.f64 {%0, %1}, [%2];" : "=d"(value[0]), "=d"(value[1]) : "l"(values));
  }
};
template <>
struct Bundle<float> {
  static constexpr int V = 4;
  float value[V];
  std::uint16_t local[V];
  __device__ void load(const float* values, const std::uint16_t* columns) {
    const ushort4 c = __ldcs(reinterpret_cast<const ushort4*>(columns));
    local[0] = c.x, local[1] = c.y, local[2] = c.z, local[3] = c.w;
    asm volatile("ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value[0]), "=f"(value[1]), "=f"(value[2]), "=f"(value[3])
                 : "l"(values));
  }
};

/// The stream of a warp while it is multiplied.
template <class T, class Dot>
struct Sums {
  const Arguments<T>& a;
  cuda::DotSum<Dot>& dot;
  T* handed;  ///< of this warp: where the sums of a slice go that an earlier stream began
  std::uint32_t slice;
  int lane, left, lanes;
  std::int32_t row;
  bool continues;  ///< the slice began in an earlier stream
  T sum = 0;

  __device__ Sums(const Arguments<T>& arguments, cuda::DotSum<Dot>& dot_sum, T* to, const TiledStream& stream, int in_warp)
      : a(arguments), dot(dot_sum), handed(to), slice(stream.slice), lane(in_warp) {
    enter();
    continues = stream.left != left;
    left = stream.left;
  }
  __device__ void enter() {
    const TiledSlice s = a.slices[slice];
    left = s.slots, lanes = s.lanes;
    row = __ldcs(a.rows + std::int64_t{slice} * kTiledLanes + lane);
  }
  __device__ void add(T value, T of_x) {
    sum += value * of_x;
    if (--left == 0) {
      finish();
      ++slice;
      enter();
      sum = 0;
    }
  }
  /// All lanes: the slice ends, or what this stream has of it.
  __device__ void finish() {
    if (continues) {
      handed[lane] = sum;
      continues = false;
      return;
    }
    for (int offset = lanes / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(kAllLanes, sum, offset);
    if (row < 0 || lane % lanes != 0) return;
    const T product = a.alpha * sum, y = a.beta == T(0) ? product : product + a.beta * a.y[row];
    a.y[row] = y;
    dot.add(row, y);
  }
};

/// kRoomy: all tiles have equal room.
template <class T, int W, bool kRoomy, class Dot>
__global__ void __launch_bounds__(W* kTiledLanes, kThreadsPerSm / (W * kTiledLanes)) tiled(Arguments<T> a, Dot dot) {
  constexpr int V = Bundle<T>::V, U = 2, kThreads = W * kTiledLanes, kAtOnce = 6, kStep = V * kTiledLanes * W;
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ T handed[W][kTiledLanes];
  T* of_x = reinterpret_cast<T*>(shared);
  cuda::DotSum<Dot> dot_sum(dot);
  const int warp = static_cast<int>(threadIdx.x) / kTiledLanes, lane = static_cast<int>(threadIdx.x) % kTiledLanes;
  const int4 words = __ldg(reinterpret_cast<const int4*>(a.tiles + blockIdx.x));
  const int2 begin = __ldg(reinterpret_cast<const int2*>(a.streams + std::int64_t{blockIdx.x} * W + warp));
  const TiledTile& tile = reinterpret_cast<const TiledTile&>(words);
  const TiledStream& stream = reinterpret_cast<const TiledStream&>(begin);

  // With room nothing waits for the tile's header but the number of bundles.
  const std::int32_t* column = a.columns + (kRoomy ? std::int64_t{blockIdx.x} * a.widest : std::int64_t{tile.column});
  const int columns = kRoomy ? a.widest : static_cast<int>(tile.columns);
  const std::int64_t slot = kRoomy ? blockIdx.x * a.room : std::int64_t{tile.slot};
  const std::int64_t first = slot * kTiledLanes + (warp * kTiledLanes + lane) * V;
  const T* values = a.values + first;
  const std::uint16_t* local = a.local + first;
  Bundle<T> even[U], odd[U];
  const auto load = [&](Bundle<T>(&group)[U], int b, int bundles) {
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (b + u < bundles) group[u].load(values + std::int64_t{b + u} * kStep, local + std::int64_t{b + u} * kStep);
  };
  const auto of_stream = [&](std::uint32_t bundles) { return static_cast<int>(bundles_of_stream(bundles, warp, W)); };
  const int at_first = of_stream(kRoomy ? static_cast<std::uint32_t>(a.room / V) : tile.bundles);

  std::int32_t staged[kAtOnce];
  T value[kAtOnce];
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    const int i = static_cast<int>(threadIdx.x) + u * kThreads;
    staged[u] = i < columns ? __ldcs(column + i) : -1;
  }
  load(even, 0, at_first);
  const T* x = a.x;
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) value[u] = staged[u] >= 0 ? __ldg(x + staged[u]) : T(0);
  load(odd, U, at_first);
  Sums<T, Dot> sums(a, dot_sum, handed[warp], stream, lane);
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u)
    if (staged[u] >= 0) of_x[threadIdx.x + u * kThreads] = value[u];
  for (int i = static_cast<int>(threadIdx.x) + kAtOnce * kThreads; i < static_cast<int>(tile.columns); i += kThreads)
    of_x[i] = __ldg(x + __ldcs(column + i));
  if (threadIdx.x == 0) of_x[tile.columns] = T(0);  // what padding reads
  __syncthreads();

  const int bundles = of_stream(tile.bundles);
  const auto multiply = [&](const Bundle<T>(&group)[U], int b) {
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (b + u < bundles) {
        T gathered[V];
#pragma unroll
        for (int v = 0; v < V; ++v) gathered[v] = of_x[group[u].local[v]];
#pragma unroll
        for (int v = 0; v < V; ++v) sums.add(group[u].value[v], gathered[v]);
      }
  };
  for (int b = 0; b < bundles; b += 2 * U) {
    multiply(even, b);
    load(even, b + 2 * U, bundles);
    multiply(odd, b + U);
    load(odd, b + 3 * U, bundles);
  }
  // What is left is of a slice that goes on in later streams.
  if (sums.continues) sums.finish();
  __syncthreads();
  if (stream.more > 0) {
    for (int other = 1; other <= stream.more; ++other) sums.sum += handed[warp + other][lane];
    sums.finish();
  }
  cuda::leave_dot_part(dot_sum, blockIdx.x);
}

std::size_t shared_bytes(const TiledStorage& a) { return (a.pattern->widest + 1) * size_of(a.type); }

}  // namespace

/// Static shared memory is for sums that streams hand on, and of dot products.
bool tiled_supports(const Storage& storage) {
  constexpr std::size_t kStatic = 32 * kTiledLanes * sizeof(double) + 32 * sizeof(double);
  return shared_bytes(static_cast<const TiledStorage&>(storage)) + kStatic <= cuda::most_shared_memory(storage.device);
}

std::unique_ptr<Plan> make_tiled(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  const auto& tiles = static_cast<const TiledStorage&>(*storage);
  const auto with_kernel = []<class T, class Dot>(const TiledStorage& a, TypeTag<T>, TypeTag<Dot>, const auto& f) {
    if (a.pattern->room > 0) return a.pattern->warps == 16 ? f(tiled<T, 16, true, Dot>) : f(tiled<T, 32, true, Dot>);
    return a.pattern->warps == 16 ? f(tiled<T, 16, false, Dot>) : f(tiled<T, 32, false, Dot>);
  };
  dispatch(tiles.type, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const auto allow = [&](auto kernel) { cuda::allow_shared_memory(kernel, shared_bytes(tiles), tiles.device); };
    with_kernel(tiles, TypeTag<T>{}, TypeTag<NoDot>{}, allow);
    with_kernel(tiles, TypeTag<T>{}, TypeTag<DotInto<T>>{}, allow);
  });
  return typed_dot_plan<TiledStorage>(
      std::move(storage), [](const TiledStorage& a) { return std::ssize(a.pattern->tiles); },
      [with_kernel]<class T, class Dot>(const TiledStorage& a, const Operands<T>& v, Dot dot, Stream& stream) {
        with_kernel(a, TypeTag<T>{}, TypeTag<Dot>{}, [&](auto kernel) {
          cuda::launch_grid(kernel, std::ssize(a.pattern->tiles), 1, a.pattern->warps * kTiledLanes, shared_bytes(a), stream,
                            Arguments<T>{a.tiles.as<TiledTile>(), a.streams.as<TiledStream>(), a.slices.as<TiledSlice>(),
                                         a.rows.as<std::int32_t>(), a.pattern->columns.as<std::int32_t>(),
                                         a.local.as<std::uint16_t>(), a.values.as<T>(), a.pattern->room,
                                         static_cast<std::int32_t>(a.pattern->widest), v.alpha, v.beta, v.x, v.y},
                            dot);
        });
      });
}

}  // namespace shardmat
