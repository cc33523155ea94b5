#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/formats/packed_spmm.h"
#include "kernels/formats/upload.h"

namespace shardmat {
namespace {

constexpr std::int64_t kChunk = 8;  ///< columns that count as one

/// The chunks of columns of every slice's shared slots: those of slice s are chunk[first[s]] … chunk[first[s + 1] - 1].
struct SliceChunks {
  std::vector<std::int64_t> first{0};
  std::vector<std::int32_t> chunk;
};

SliceChunks chunks_of(const PackedStorage& a, Stream& stream) {
  const auto slices = download<PackedSlice>(a.slice, stream);
  const auto order = download<std::uint32_t>(a.order, stream);
  const auto deltas = download<std::int32_t>(a.deltas, stream);
  SliceChunks chunks;
  for (const PackedSlice& slice : slices) {
    const auto begin = static_cast<std::ptrdiff_t>(chunks.chunk.size());
    const auto row = [&](std::uint32_t group) {
      const std::uint32_t at = slice.consecutive ? slice.groups + group : order[slice.groups + group];
      return static_cast<std::int64_t>(at) * a.shape.block - a.shape.shift;
    };
    if (!slice.csr && slice.real > 0) {
      const std::int64_t low = row(0), high = std::max(low, row(slice.real - 1U)) + a.shape.block - 1;
      for (std::uint32_t k = 0; k < slice.slots[kSharedSlot]; ++k) {
        const std::int64_t delta = deltas[slice.deltas + k];
        const std::int64_t from = std::max<std::int64_t>(low + delta, 0) / kChunk,
                           to = std::min(high + delta, a.cols - 1) / kChunk;
        for (std::int64_t c = from; c <= to && c < from + kPackedLanes; ++c)
          chunks.chunk.push_back(static_cast<std::int32_t>(c));
      }
    }
    std::sort(chunks.chunk.begin() + begin, chunks.chunk.end());
    chunks.chunk.erase(std::unique(chunks.chunk.begin() + begin, chunks.chunk.end()), chunks.chunk.end());
    chunks.first.push_back(static_cast<std::int64_t>(chunks.chunk.size()));
  }
  return chunks;
}

}  // namespace

std::vector<std::int32_t> clustered_slices(const PackedStorage& a, int cluster, Stream& stream) {
  const SliceChunks chunks = chunks_of(a, stream);
  const auto count = static_cast<std::int32_t>(a.slices);
  const auto for_chunks = [&](std::int32_t slice, const auto& body) {
    for (std::int64_t k = chunks.first[static_cast<std::size_t>(slice)];
         k < chunks.first[static_cast<std::size_t>(slice) + 1]; ++k)
      body(static_cast<std::size_t>(chunks.chunk[static_cast<std::size_t>(k)]));
  };
  // The slices of every chunk, by counting.
  std::vector<std::int64_t> first(static_cast<std::size_t>(a.cols / kChunk) + 2, 0);
  for (const std::int32_t chunk : chunks.chunk) ++first[static_cast<std::size_t>(chunk) + 1];
  for (std::size_t c = 1; c < first.size(); ++c) first[c] += first[c - 1];
  std::vector<std::int32_t> slices(chunks.chunk.size());
  std::vector<std::int64_t> place(first.begin(), first.end() - 1);
  for (std::int32_t s = 0; s < count; ++s)
    for_chunks(s, [&](std::size_t chunk) { slices[static_cast<std::size_t>(place[chunk]++)] = s; });

  std::vector<std::int32_t> order, touched, in_cluster(first.size(), -1), shared(static_cast<std::size_t>(count), 0);
  std::vector<char> taken(static_cast<std::size_t>(count), 0);
  order.reserve(static_cast<std::size_t>(count));
  std::int32_t next = 0;
  const auto first_left = [&] {
    while (next < count && taken[static_cast<std::size_t>(next)]) ++next;
    return next;
  };
  for (std::int32_t number = 0; first_left() < count; ++number) {
    touched.clear();
    std::int32_t slice = next;
    for (int member = 0; member < cluster && slice < count; ++member) {
      taken[static_cast<std::size_t>(slice)] = 1;
      order.push_back(slice);
      for_chunks(slice, [&](std::size_t chunk) {
        if (in_cluster[chunk] == number) return;
        in_cluster[chunk] = number;
        for (std::int64_t k = first[chunk]; k < first[chunk + 1]; ++k) {
          const std::int32_t other = slices[static_cast<std::size_t>(k)];
          if (taken[static_cast<std::size_t>(other)]) continue;
          if (shared[static_cast<std::size_t>(other)]++ == 0) touched.push_back(other);
        }
      });
      slice = first_left();
      double best = 0;
      for (const std::int32_t other : touched) {
        if (taken[static_cast<std::size_t>(other)]) continue;
        const auto at = static_cast<std::size_t>(other);
        const double part = shared[at] / static_cast<double>(chunks.first[at + 1] - chunks.first[at]);
        if (part > best || (part == best && other < slice)) best = part, slice = other;
      }
    }
    for (const std::int32_t other : touched) shared[static_cast<std::size_t>(other)] = 0;
  }
  return order;
}

}  // namespace shardmat
