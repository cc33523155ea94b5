// Tiled rows, for meshes with one unknown a node: sets of rows that read few different columns of x. A thread block takes a
// tile. It copies these entries of x to shared memory, once each, and then multiplies with 16-bit local columns. Kernels
// that gather x from memory load a line of the L1 cache for almost every nonzero of such a matrix, and this limits them.
//
//   tile    rows that are neighbours in the graph of the pattern (matrix/row_tiles.h), with its columns, ascending
//   slice   32 / L rows of similar length, L neighbouring lanes for each; L > 1 if rows are long
//   slot    a nonzero (or padding) for each lane of a slice
//   bundle  V = 16 bytes / value slots, which a lane loads at once
//   stream  the slots of a tile, slice after slice, are cut into a stream for each of the W warps of the block, all as long
//           but for one bundle. So all warps finish together. A warp that begins inside a slice hands its part of the sums
//           to an earlier one. Bundle b of stream w is bundle b·W + w of the tile.
//
// Padding reads a zero in shared memory instead of x. If tiles are about as large, each has the room of the largest: a block
// then knows where its tile lies before it has read anything.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/host_device.h"
#include "kernels/base/host_vector.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

constexpr int kTiledLanes = 32;                     ///< lanes of a warp
constexpr std::int64_t kTiledMostColumns = 12'000;  ///< of a tile: 96 KB of f64 in shared memory, with the zero

/// 16 bytes, read at once.
struct alignas(16) TiledTile {
  std::uint32_t slot;     ///< first slot
  std::uint32_t bundles;  ///< of all streams
  std::uint32_t column;   ///< position of the first column
  std::uint32_t columns;  ///< how many
};
/// Where the stream of a warp begins.
struct alignas(8) TiledStream {
  std::uint32_t slice;  ///< the slice of its first slot
  std::uint16_t left;   ///< slots of this slice that are left; less than the slice has: an earlier stream began it
  std::uint16_t more;   ///< streams after this one that go on with its last slice
};
struct TiledSlice {
  std::uint16_t slots;
  std::uint16_t lanes;  ///< L, a power of two up to 32
};

/// Number of bundles of stream w.
SHARDMAT_HOST_DEVICE constexpr std::uint32_t bundles_of_stream(std::uint32_t bundles, int w, int W) {
  return (bundles + static_cast<std::uint32_t>(W - 1 - w)) / static_cast<std::uint32_t>(W);
}

/// Everything but local columns and values. All but the columns is kept on the host, too.
struct TiledPattern {
  int warps = 0, bundle = 0;  ///< W, V
  std::int64_t slots = 0;     ///< of all tiles, with room between them
  std::int64_t room = 0;      ///< slots from one tile to the next, if always as many; else 0
  std::int64_t widest = 0;    ///< columns of the tile with the most
  std::vector<TiledTile> tiles;
  std::vector<TiledStream> streams;  ///< W for each tile
  std::vector<TiledSlice> slices;    ///< and one behind the last, which kernels load and do not multiply
  std::vector<std::int32_t> rows;    ///< 32 for each slice, L equal ones for each row; -1: no row
  std::int64_t column_count = 0;
  Buffer columns;  ///< int32; with `room`: `widest` for each tile, the last -1

  std::int64_t bytes(std::int64_t value_bytes) const;
};

struct TiledStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&values}; }

  std::shared_ptr<const TiledPattern> pattern;
  Buffer tiles, streams, slices, rows;  ///< as in the pattern
  Buffer local;                         ///< uint16: place in the tile's columns; their number where padding is
  Buffer values;
};

std::vector<Policy> tiled_layouts(ConversionInput& input);
std::int64_t tiled_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_tiled(ConversionInput& input, const Policy& layout);
void update_tiled(Storage& storage, ConversionInput& input);

/// The cost of the kernel (cost_model.h); infinite unless a sample of tiles uses every column several times.
double tiled_cost(ConversionInput& input, const Policy& layout);
bool tiled_supports(const Storage& storage);
std::unique_ptr<Plan> make_tiled(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

/// A stream of a tile from its first slot to its last: visit(position of lane 0, slice, slot within the slice). Lane l is
/// V·l places further.
template <class Visit>
SHARDMAT_HOST_DEVICE void walk_stream(const TiledTile& tile, const TiledStream& stream, const TiledSlice* slices, int w,
                                      int W, int V, const Visit& visit) {
  std::uint32_t slice = stream.slice, left = stream.left;
  std::uint64_t position = (std::uint64_t{tile.slot} + static_cast<std::uint32_t>(w * V)) * kTiledLanes;
  for (std::uint32_t b = 0; b < bundles_of_stream(tile.bundles, w, W); ++b) {
    for (int v = 0; v < V; ++v) {
      visit(position + static_cast<std::uint32_t>(v), slice, slices[slice].slots - left);
      if (--left == 0) left = slices[++slice].slots;
    }
    position += static_cast<std::uint32_t>(W * V) * kTiledLanes;
  }
}

/// Which of the `length` nonzeros of a row the lane has in this slot; -1 is padding.
SHARDMAT_HOST_DEVICE inline std::int64_t tiled_entry(std::int64_t length, int lanes, int lane, std::uint32_t slot) {
  const std::int64_t of_lane = (length + lanes - 1) / lanes, entry = lane % lanes * of_lane + slot;
  return slot < of_lane && entry < length ? entry : -1;
}

}  // namespace shardmat
