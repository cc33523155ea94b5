#include "kernels/random_entries.h"

#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

/// CounterRandom::symmetric().
__device__ double random_entry(std::uint64_t key, std::int64_t index) {
  std::uint64_t x = key + (static_cast<std::uint64_t>(index) + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return 2 * (static_cast<double>(x >> 11) * 0x1p-53) - 1;
}

template <class T>
__global__ void fill_random_rows(std::uint64_t key, std::int64_t first, std::int64_t values, std::int64_t columns,
                                 bool fractions, const T* times, T* to) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= values) return;
  const double entry = random_entry(key, first + at / columns), size = fractions ? 0.5 + fabs(entry) / 2 : 1;
  to[at] = static_cast<T>(copysign(size, entry)) * (times == nullptr ? T(1) : times[at]);
}

}  // namespace

void fill_random_entries(ValueType type, std::uint64_t key, std::int64_t first, std::int64_t count, std::int64_t columns,
                         bool fractions, const void* times, void* to, Stream& stream) {
  dispatch(type, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    cuda::launch(fill_random_rows<T>, count * columns, 256, stream, key, first, count * columns, columns, fractions,
                 static_cast<const T*>(times), static_cast<T*>(to));
  });
}

}  // namespace shardmat
