#include "kernels/formats/tiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/narrow.h"
#include "kernels/base/parallel.h"
#include "kernels/formats/limits.h"
#include "kernels/formats/packed.h"
#include "kernels/formats/tiled_build.h"
#include "kernels/formats/upload.h"
#include "kernels/matrix/row_tiles.h"
#include "kernels/matrix/rows.h"

namespace shardmat {
namespace {

constexpr int kLongRow = 128;                                          ///< nonzeros; longer rows have several lanes
constexpr std::int64_t kLeastNonzeros = 1024, kMostNonzeros = 90'000;  ///< of a tile, in the layouts worth trying

int lanes_of(std::int64_t length) {
  int lanes = 1;
  while (lanes < kTiledLanes && length > std::int64_t{lanes} * kLongRow) lanes *= 2;
  return lanes;
}

/// A tile before its place is known.
struct Draft {
  std::vector<TiledSlice> slices;
  std::vector<std::int32_t> rows;
  std::uint32_t bundles = 0;
};

/// Rows of one length lie side by side. The last slice is lengthened to whole bundles.
void make_slices(const Rows& rows, std::vector<std::int32_t> members, const TiledPattern& p, Draft& tile) {
  std::sort(members.begin(), members.end(), [&](std::int32_t a, std::int32_t b) {
    const std::int64_t of_a = rows.length(a), of_b = rows.length(b);
    return of_a != of_b ? of_a > of_b : a < b;
  });
  std::int64_t slots = 0;
  for (std::size_t next = 0; next < members.size();) {
    const int lanes = lanes_of(rows.length(members[next]));
    const std::int64_t longest = (rows.length(members[next]) + lanes - 1) / lanes;
    int lane = 0;
    for (; lane < kTiledLanes && next < members.size() && lanes_of(rows.length(members[next])) == lanes; lane += lanes)
      tile.rows.insert(tile.rows.end(), static_cast<std::size_t>(lanes), members[next++]);
    tile.rows.insert(tile.rows.end(), static_cast<std::size_t>(kTiledLanes - lane), -1);
    tile.slices.push_back({static_cast<std::uint16_t>(std::max<std::int64_t>(longest, 1)),  // an empty row is written, too
                           static_cast<std::uint16_t>(lanes)});
    slots += tile.slices.back().slots;
  }
  tile.bundles = static_cast<std::uint32_t>((slots + p.bundle - 1) / p.bundle);
  tile.slices.back().slots += static_cast<std::uint16_t>(tile.bundles * p.bundle - slots);
}

/// Cuts the slots of a tile into streams. `first`: its first slice among those of all tiles.
void add_streams(TiledPattern& p, const Draft& tile, std::size_t first) {
  const auto length = [&](int w) { return std::int64_t{bundles_of_stream(tile.bundles, w, p.warps)} * p.bundle; };
  std::size_t slice = 0;
  std::int64_t begin = 0, end = tile.slices[0].slots;  // of the slice
  std::int64_t from = 0;                               // first slot of the stream
  for (int w = 0; w < p.warps; ++w) {
    const std::int64_t to = from + length(w);
    if (from == to) {  // fewer bundles than warps
      p.streams.push_back({static_cast<std::uint32_t>(first + tile.slices.size()), 0, 0});
      continue;
    }
    TiledStream stream{static_cast<std::uint32_t>(first + slice), static_cast<std::uint16_t>(end - from), 0};
    for (; end < to; begin = end, end += tile.slices[++slice].slots) continue;
    std::int64_t next = to;
    if (begin >= from)  // the last slice begins here
      for (; next < end; next += length(w + stream.more)) ++stream.more;
    p.streams.push_back(stream);
    if (end == to && slice + 1 < tile.slices.size()) begin = end, end += tile.slices[++slice].slots;
    from = to;
  }
}

const tiled::Builder& builder_for([[maybe_unused]] const ConversionInput& input) {
#ifdef SHARDMAT_HAVE_CUDA
  if (input.stream().device().backend == Backend::cuda) return tiled::cuda_builder;
#endif
  return tiled::host_builder;
}

/// Tiles that fit; halves of those with too many columns. Returns the numbers of their columns.
std::vector<std::int32_t> count_columns(ConversionInput& input, RowTiles& tiles) {
  while (true) {
    const std::vector<std::int32_t> counts = builder_for(input).count_columns(input, tiles);
    std::vector<std::int64_t> first{0};
    for (std::size_t t = 0; t < counts.size(); ++t) {
      const std::int64_t begin = tiles.first[t], end = tiles.first[t + 1];
      if (counts[t] > kTiledMostColumns) {
        if (end - begin == 1)
          throw Error(ErrorKind::resources,
                      fmt::format("format tiled does not suit this matrix: row {} has more than {} nonzeros",
                                  tiles.order[static_cast<std::size_t>(begin)], kTiledMostColumns));
        first.push_back((begin + end) / 2);
      }
      first.push_back(end);
    }
    if (first.size() == tiles.first.size()) return counts;
    tiles.first = std::move(first);
  }
}

/// Gives each tile the room of the largest, if that is not much more.
void space_tiles(TiledPattern& p, const std::vector<Draft>& drafts) {
  constexpr double kMostWaste = 0.04;
  std::int64_t bundles = 0, most = 0;
  for (const Draft& tile : drafts) {
    bundles += tile.bundles;
    most = std::max<std::int64_t>(most, tile.bundles);
  }
  if (static_cast<double>(most * std::ssize(drafts)) <= (1 + kMostWaste) * static_cast<double>(bundles))
    p.room = most * p.bundle;
}

std::shared_ptr<const TiledPattern> make_pattern(ConversionInput& input, int warps, std::int64_t nonzeros) {
  const CsrView& matrix = input.matrix();
  require_int32_rows(matrix.rows, "tiled");
  const Rows rows(matrix);
  auto p = std::make_shared<TiledPattern>();
  p->warps = warps, p->bundle = static_cast<int>(16 / input.value_bytes());
  const auto& groups = input.remember<RowGroups>("groups of rows", [&] { return builder_for(input).group(input); });
  RowTiles tiles = tile_rows(matrix, groups, nonzeros);
  const std::vector<std::int32_t> columns = count_columns(input, tiles);
  if (!columns.empty()) p->widest = *std::max_element(columns.begin(), columns.end());

  std::vector<Draft> drafts(columns.size());
  parallel_ranges(tiles.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto t = static_cast<std::size_t>(begin); t < static_cast<std::size_t>(end); ++t)
      make_slices(rows, {tiles.order.begin() + tiles.first[t], tiles.order.begin() + tiles.first[t + 1]}, *p, drafts[t]);
  });
  space_tiles(*p, drafts);
  for (std::size_t t = 0; t < drafts.size(); ++t) {
    const Draft& tile = drafts[t];
    p->tiles.push_back({narrow<std::uint32_t>(p->slots, "the slots of format tiled"), tile.bundles,
                        narrow<std::uint32_t>(p->column_count, "the columns of all tiles"),
                        static_cast<std::uint32_t>(columns[t])});
    add_streams(*p, tile, p->slices.size());
    p->slices.insert(p->slices.end(), tile.slices.begin(), tile.slices.end());
    p->rows.insert(p->rows.end(), tile.rows.begin(), tile.rows.end());
    p->slots += p->room > 0 ? p->room : std::int64_t{tile.bundles} * p->bundle;
    p->column_count += p->room > 0 ? p->widest : columns[t];
  }
  p->slices.push_back({1, 1});
  p->rows.insert(p->rows.end(), kTiledLanes, -1);
  p->columns = Buffer(input.stream().device(), static_cast<std::size_t>(p->column_count) * sizeof(std::int32_t));
  fill_bytes(p->columns.data(), 0xff, p->columns.bytes(), input.stream());
  builder_for(input).write_columns(input, tiles, *p);
  return p;
}

std::shared_ptr<const TiledPattern> pattern_of(ConversionInput& input, const Policy& layout) {
  const int warps = layout.at("warps"), nonzeros = layout.at("nonzeros");
  if (warps != 16 && warps != 32) throw Error(ErrorKind::usage, "tiled: warps must be 16 or 32");
  if (nonzeros < 1) throw Error(ErrorKind::usage, "tiled: nonzeros must be at least 1");
  return input.remember<std::shared_ptr<const TiledPattern>>("tiled " + layout.text(),
                                                             [&] { return make_pattern(input, warps, nonzeros); });
}

/// Nonzeros for each different column in small tiles, by a sample of tiles grown breadth first. REQUIRES: no row has
/// more than kTiledMostColumns nonzeros.
double sampled_reuse(const CsrView& matrix) {
  constexpr std::int64_t kTiles = 4, kNonzeros = 20'000;
  constexpr std::uint32_t kBits = 16, kPlaces = 1u << kBits;
  static_assert(kPlaces > kNonzeros + kTiledMostColumns);
  const Rows rows(matrix);
  std::int64_t held = 0, columns = 0;
  std::vector<std::int64_t> table, queue;
  const auto is_new = [&](std::int64_t column) {
    std::uint32_t place = static_cast<std::uint32_t>(column) * 0x9e3779b9u >> (32 - kBits);
    while (table[place] >= 0 && table[place] != column) place = (place + 1) % kPlaces;
    return std::exchange(table[place], column) < 0;
  };
  for (std::int64_t tile = 0; tile < kTiles && rows.count() > 0; ++tile) {
    table.assign(kPlaces, -1);
    queue.assign(1, rows.count() * (2 * tile + 1) / (2 * kTiles));
    std::int64_t of_tile = 0;
    for (std::size_t next = 0; next < queue.size() && of_tile < kNonzeros; ++next) {
      const std::int64_t row = queue[next];
      of_tile += rows.length(row);
      for (std::int64_t k = rows.begin(row); k < rows.end(row); ++k) {
        if (!is_new(rows.column(k))) continue;
        ++columns;
        const std::int64_t vertex = rows.column(k) - matrix.diagonal;
        if (vertex >= 0 && vertex < rows.count() && vertex != queue.front()) queue.push_back(vertex);
      }
    }
    held += of_tile;
  }
  return columns == 0 ? 0 : static_cast<double>(held) / static_cast<double>(columns);
}

}  // namespace

std::int64_t TiledPattern::bytes(std::int64_t value_bytes) const {
  return static_cast<std::int64_t>(tiles.size() * sizeof(TiledTile) + streams.size() * sizeof(TiledStream) +
                                   slices.size() * sizeof(TiledSlice) + 4 * rows.size()) +
         4 * column_count + slots * kTiledLanes * (2 + value_bytes);
}

std::vector<Policy> tiled_layouts(ConversionInput& input) {
  // One tile for each multiprocessor, or a few of equal size, so that all are done at once; or two smaller tiles.
  constexpr double kUsual = 132;  // multiprocessors, for the host
  const Device device = input.stream().device();
  const double multiprocessors = device.backend == Backend::cuda ? properties(device).multiprocessors : kUsual;
  const auto nnz = static_cast<double>(input.matrix().nnz());
  const double rounds = std::max(1.0, std::ceil(nnz / (multiprocessors * kMostNonzeros)));
  const auto layout = [&](int warps, double tiles) {
    const auto nonzeros = std::max(kLeastNonzeros, static_cast<std::int64_t>(std::ceil(nnz / tiles)));
    return Policy{{"warps", warps}, {"nonzeros", static_cast<int>(nonzeros)}};
  };
  return {layout(32, multiprocessors * rounds), layout(16, 2 * multiprocessors * rounds)};
}

std::int64_t tiled_bytes(ConversionInput& input, const Policy& layout) {
  return pattern_of(input, layout)->bytes(input.value_bytes());
}

double tiled_cost(ConversionInput& input, const Policy&) {
  constexpr double kNever = std::numeric_limits<double>::infinity(), kEfficiency = 0.9, kPadding = 1.04;
  constexpr double kLeastReuse = 5, kMostUneven = 2;
  constexpr std::int64_t kLeast = 2'000'000;  // nonzeros; tiles of less are done before their columns have arrived
  const RowStatistics& rows = input.rows();
  if (rows.nnz < kLeast || rows.max_row > kTiledMostColumns || rows.stddev_row > kMostUneven * rows.mean_row) return kNever;
  const Policy packed = packed_layouts(input).front();
  if (packed.at("block") > 1 || packed_stencil_cost(input, packed) < kNever) return kNever;
  const double reuse = input.remember<double>("reuse in tiles", [&] { return sampled_reuse(input.matrix()); });
  if (reuse < kLeastReuse) return kNever;
  const auto value = static_cast<double>(input.value_bytes());
  const auto nnz = static_cast<double>(rows.nnz), vectors = static_cast<double>(input.matrix().rows + input.matrix().cols);
  return (kPadding * nnz * (value + 2) + nnz / reuse * (value + 4) + vectors * value) / kEfficiency;
}

std::shared_ptr<Storage> convert_tiled(ConversionInput& input, const Policy& layout) {
  Stream& stream = input.stream();
  auto tiled = std::make_shared<TiledStorage>();
  tiled->describe(input, tiled_bytes(input, layout));
  tiled->pattern = pattern_of(input, layout);
  const TiledPattern& p = *tiled->pattern;
  tiled->tiles = upload(p.tiles, stream);
  tiled->streams = upload(p.streams, stream);
  tiled->slices = upload(p.slices, stream);
  tiled->rows = upload(p.rows, stream);
  const auto places = static_cast<std::size_t>(p.slots * kTiledLanes);
  tiled->local = Buffer(tiled->device, places * sizeof(std::uint16_t));
  tiled->values = Buffer(tiled->device, places * size_of(tiled->type));
  fill_bytes(tiled->local.data(), 0, tiled->local.bytes(), stream);  // the room between tiles
  fill_bytes(tiled->values.data(), 0, tiled->values.bytes(), stream);
  builder_for(input).fill(*tiled, input, true);
  return tiled;
}

void update_tiled(Storage& storage, ConversionInput& input) {
  builder_for(input).fill(static_cast<TiledStorage&>(storage), input, false);
}

}  // namespace shardmat
