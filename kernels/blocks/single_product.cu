#include "kernels/blocks/single_product.h"

#include <algorithm>
#include <type_traits>

#include "kernels/blocks/block_product.h"
#include "kernels/blocks/product_end.h"
#include "kernels/blocks/single_slices.h"

namespace shardmat::blocks {
namespace {

using namespace singles;

constexpr int kThreadsOfProduct = 128;
constexpr int kTogether = 2;  ///< slices of a warp

template <class V>
struct Arguments {
  const Slice* __restrict__ slice;
  const std::int32_t* __restrict__ order;
  const int2* __restrict__ column;
  const typename PairOf<V>::Type* __restrict__ value;
  const float* __restrict__ own, * __restrict__ scale;
  const float* __restrict__ x;
  std::int64_t slices;
};

/// What the end of a row reads.
struct EarlyPlain {
  float y;
};
struct EarlyStep {
  float r, inverse, x;
};
__device__ EarlyPlain early(const Plain<float>& end, std::int64_t row) { return {end.beta == 0 ? 0 : end.y[row]}; }
__device__ EarlyStep early(const Step<float>& end, std::int64_t row) {
  return {end.r[row], __ldg(end.inverse + row), end.x[row]};
}
__device__ void finish(const Plain<float>& end, const EarlyPlain& before, std::int64_t row, float, float sum) {
  end.y[row] = end.beta == 0 ? end.alpha * sum : end.alpha * sum + end.beta * before.y;
}
__device__ void finish(const Step<float>& end, const EarlyStep& before, std::int64_t row, float d, float sum) {
  const float left = before.r - sum, e = end.a * (before.inverse * left) + end.b * d;
  end.r[row] = left;
  end.e[row] = e;
  end.x[row] = before.x + (end.x_lacks_d ? d + e : e);
}

/// How the slices of a warp store their columns: one list for all, or each its own of this kind.
enum class Lists { one, of_shared, of_narrow, of_wide };

/// K slices by a warp.
template <class V, bool kSquare, int K, class Tuned, Lists kLists, class End>
__device__ void multiply_slices(const Arguments<V>& a, const Slice (&slice)[K], std::int64_t first, int lane,
                                const End& end) {
  using Pair = typename PairOf<V>::Type;
  constexpr int U = Tuned::kPairs;
  constexpr bool kShared = kLists == Lists::one || kLists == Lists::of_shared;
  constexpr int kOwn = kLists == Lists::one ? 1 : K;
  std::int32_t row[K];
  const Pair* value[K];
  const int2* column[kOwn];
  float sum[K] = {}, own[K] = {}, x_here[K] = {};
  decltype(early(end, 0)) before[K];
  int pairs = 0;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const std::int64_t place = (first + k) * kLanes + min(lane, slice[k].rows() - 1);
    row[k] = a.order == nullptr ? static_cast<std::int32_t>(place) : __ldg(a.order + place);
    value[k] = a.value + std::int64_t{slice[k].value} * kLanes + lane;
    if (k < kOwn) column[k] = a.column + slice[k].column;
    pairs = max(pairs, slice[k].pairs());
    if constexpr (kSquare) own[k] = __ldg(a.own + row[k]), x_here[k] = a.x[row[k]];
    if constexpr (Tuned::kEarly) before[k] = early(end, row[k]);
  }
  for (int p = 0; p < pairs; p += U) {
    Pair of_a[U][K];
    float2 of_x[U][K];
    int2 at[U][kOwn];
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < kOwn; ++k) {
        const bool there = p + u < slice[k].pairs();
        if constexpr (kShared) {
          at[u][k] = there ? __ldg(column[k] + p + u) : int2{0, 0};
        } else if constexpr (kLists == Lists::of_narrow) {
          const int2* const of_pair = column[k] + (p + u) * units(Columns::narrow);
          const int2 base = there ? __ldg(of_pair) : int2{0, 0};
          const ushort2 more = there ? __ldcs(reinterpret_cast<const ushort2*>(of_pair + 1) + lane) : ushort2{0, 0};
          at[u][k] = {base.x + more.x, base.y + more.y};
        } else {
          at[u][k] = there ? __ldcs(column[k] + (p + u) * units(Columns::wide) + lane) : int2{0, 0};
        }
      }
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < K; ++k)
        of_a[u][k] = p + u < slice[k].pairs() ? __ldcs(value[k] + (p + u) * kLanes) : Pair{0.f, 0.f};
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < K; ++k) {
        const int2 mine = at[u][k < kOwn ? k : 0];
        const std::int32_t from = kShared ? row[k] : 0;
        of_x[u][k] = p + u < slice[k].pairs() ? float2{a.x[from + mine.x], a.x[from + mine.y]} : float2{0, 0};
      }
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < K; ++k) {
        const float2 both = widened(of_a[u][k]);
        sum[k] = fmaf(both.y, of_x[u][k].y, fmaf(both.x, of_x[u][k].x, sum[k]));
      }
  }
#pragma unroll
  for (int k = 0; k < K; ++k) {
    if constexpr (!std::is_same_v<V, float>) sum[k] *= slice[k].scale == 0 ? __ldg(a.scale + row[k]) : slice[k].scale;
    if constexpr (kSquare) sum[k] = fmaf(own[k], x_here[k], sum[k]);
    if constexpr (!Tuned::kEarly) before[k] = early(end, row[k]);
    if (lane < slice[k].rows()) finish(end, before[k], row[k], x_here[k], sum[k]);
  }
}

template <class V, bool kSquare, int K, class Tuned, class End>
__device__ void multiply_unlike(const Arguments<V>& a, const Slice (&slice)[K], std::int64_t first, int lane,
                                const End& end) {
  switch (slice[0].kind()) {
    case Columns::shared:
      return multiply_slices<V, kSquare, K, Tuned, Lists::of_shared>(a, slice, first, lane, end);
    case Columns::narrow:
      return multiply_slices<V, kSquare, K, Tuned, Lists::of_narrow>(a, slice, first, lane, end);
    case Columns::wide:
      return multiply_slices<V, kSquare, K, Tuned, Lists::of_wide>(a, slice, first, lane, end);
  }
}

/// What kernels of a kind do at once, measured on an H200.
template <class V, class End, bool kStencil, bool kShort>
struct Tuning {
  static constexpr bool kHalfStep = !std::is_same_v<V, float> && std::is_same_v<End, Step<float>>;
  static constexpr bool kLong = kStencil && !kShort;
  static constexpr int kPairs = !kLong ? kFewPairs : kHalfStep ? 5 : 4;
  static constexpr bool kEarly = !kLong || kHalfStep;  ///< what the end reads is on its way during the product
  static constexpr int kBlocks = kLong ? 8 : 1;        ///< on a multiprocessor, at least
};

/// Stencils take two slices at once where these share their columns, and few registers where they do not.
template <class V, bool kSquare, bool kStencil, bool kShort, class End>
__global__ void __launch_bounds__(kThreadsOfProduct, Tuning<V, End, kStencil, kShort>::kBlocks)
    multiply_singles(Arguments<V> a, End end) {
  using Tuned = Tuning<V, End, kStencil, kShort>;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreadsOfProduct + threadIdx.x,
                     first = thread / kLanes * kTogether;
  if (first >= a.slices) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  Slice slice[kTogether];
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
    const std::int64_t here = first + k < a.slices ? first + k : first;
    *reinterpret_cast<uint4*>(&slice[k]) = __ldg(reinterpret_cast<const uint4*>(a.slice + here));
  }
  cuda::after_previous();
  const bool two = first + 1 < a.slices && slice[0].kind() == slice[1].kind();
  if constexpr (kStencil) {
    if (two && slice[0].kind() == Columns::shared && slice[0].column == slice[1].column &&
        slice[0].pairs() == slice[1].pairs())
      return multiply_slices<V, kSquare, kTogether, Tuned, Lists::one>(a, slice, first, lane, end);
  } else {
    if (two) return multiply_unlike<V, kSquare, kTogether, Tuned>(a, slice, first, lane, end);
  }
#pragma unroll 1
  for (int k = 0; k < kTogether && first + k < a.slices; ++k) {
    const Slice one[1] = {k == 0 ? slice[0] : slice[1]};
    multiply_unlike<V, kSquare, 1, Tuned>(a, one, first + k, lane, end);
  }
}

}  // namespace

template <class End>
void SingleProduct::run(const void* x, const End& end, Stream& stream) const {
  const auto launch = [&]<class V, bool kSquare>(V, std::bool_constant<kSquare>) {
    const Arguments<V> a{
        slice_.as<Slice>(), order_.as<std::int32_t>(), column_.as<int2>(),           value_.as<typename PairOf<V>::Type>(),
        own_.as<float>(),   scale_.as<float>(),        static_cast<const float*>(x), slices_};
    constexpr int kSlices = kThreadsOfProduct / kLanes * kTogether;
    const auto take = [&]<bool kStencil>(std::bool_constant<kStencil>) {
      return is_short_ ? multiply_singles<V, kSquare, kStencil, true, End>
                       : multiply_singles<V, kSquare, kStencil, false, End>;
    };
    const auto kernel = is_stencil_ ? take(std::true_type()) : take(std::false_type());
    cuda::launch_grid_early(kernel, (slices_ + kSlices - 1) / kSlices, 1, dim3(kThreadsOfProduct), 0, stream, a, end);
  };
  if (type_ == ValueType::f16) launch(__half(), std::true_type());
  else if (is_square_) launch(0.f, std::true_type());
  else launch(0.f, std::false_type());
}

void SingleProduct::multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const {
  run(x, plain_end<float>(alpha, beta, y), stream);
}

void SingleProduct::multiply(const void* d, const SmootherStep& step, Stream& stream) const {
  run(d, step_end<float>(step), stream);
}

}  // namespace shardmat::blocks
