#include "runtime/service/engine/columns.h"

#include <algorithm>

#include "kernels/base/parallel.h"

namespace shardmat::service {
namespace {

/// Entries that are worth a thread of their own.
constexpr std::int64_t kGrain = 1 << 14;

}  // namespace

void gather_columns(std::span<const std::byte* const> vectors, std::span<const std::int64_t> ids, ValueType type,
                    std::int64_t width, DenseStrides strides, void* to) {
  const auto count = static_cast<std::int64_t>(vectors.size());
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const x = static_cast<T*>(to);
    parallel_ranges(std::ssize(ids), std::max<std::int64_t>(1, kGrain / width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        T* const row = x + i * strides.row;
        const std::int64_t id = ids[static_cast<std::size_t>(i)];
        for (std::int64_t j = 0; j < count; ++j)
          if (const std::byte* const vector = vectors[static_cast<std::size_t>(j)])
            row[j * strides.column] = reinterpret_cast<const T*>(vector)[id];
        for (std::int64_t j = count; j < width; ++j) row[j * strides.column] = 0;
      }
    });
  });
}

}  // namespace shardmat::service
