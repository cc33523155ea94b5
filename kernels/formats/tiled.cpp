#include "kernels/formats/tiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <span>
#include <unordered_set>

#include "kernels/base/error.h"
#include "kernels/base/narrow.h"
#include "kernels/base/parallel.h"
#include "kernels/formats/limits.h"
#include "kernels/formats/packed.h"
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

/// Collects different columns, in a table with open addressing.
class ColumnSet {
 public:
  ColumnSet() : table_(kSize, -1) {}
  void clear() {
    if (!columns_.empty()) std::fill(table_.begin(), table_.end(), -1);
    columns_.clear();
  }
  void add(std::int32_t column) {
    auto at = static_cast<std::uint32_t>(column) * 0x9e3779b9u >> kShift;
    while (table_[at] != column) {
      if (table_[at] < 0) {
        table_[at] = column;
        columns_.push_back(column);
        return;
      }
      at = (at + 1) % kSize;
    }
  }
  bool full() const { return std::ssize(columns_) > kTiledMostColumns; }
  std::vector<std::int32_t> ascending() {
    std::sort(columns_.begin(), columns_.end());
    return columns_;
  }

 private:
  static constexpr int kBits = 15, kShift = 32 - kBits;
  static constexpr std::uint32_t kSize = 1u << kBits;
  static_assert(kSize > 2 * kTiledMostColumns);
  std::vector<std::int32_t> table_, columns_;
};

/// A tile before its place is known.
struct Draft {
  std::vector<TiledSlice> slices;
  std::vector<std::int32_t> rows, columns;
  std::uint32_t bundles = 0;
};

/// The columns of a tile; false if there are too many.
bool find_columns(const Rows& rows, std::span<const std::int32_t> members, ColumnSet& set, Draft& tile) {
  set.clear();
  for (const std::int32_t row : members)
    for (std::int64_t k = rows.begin(row); k < rows.end(row); ++k) {
      set.add(static_cast<std::int32_t>(rows.column(k)));
      if (set.full()) return false;
    }
  tile.columns = set.ascending();
  return true;
}

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

/// Drafts of the rows; of halves of them if they have too many columns.
void draft(const Rows& rows, std::span<const std::int32_t> members, const TiledPattern& p, ColumnSet& set,
           std::vector<Draft>& drafts) {
  Draft tile;
  if (find_columns(rows, members, set, tile)) {
    make_slices(rows, {members.begin(), members.end()}, p, tile);
    drafts.push_back(std::move(tile));
    return;
  }
  if (members.size() == 1)
    throw Error(ErrorKind::resources,
                fmt::format("format tiled does not suit this matrix: row {} has {} nonzeros, and a row may have {} at most",
                            members[0], rows.length(members[0]), kTiledMostColumns));
  draft(rows, members.first(members.size() / 2), p, set, drafts);
  draft(rows, members.subspan(members.size() / 2), p, set, drafts);
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

/// Gives each tile the room of the largest, if that is not much more.
void space_tiles(TiledPattern& p, const std::vector<std::vector<Draft>>& drafts) {
  constexpr double kMostWaste = 0.04;
  std::int64_t tiles = 0, bundles = 0, most = 0;
  for (const std::vector<Draft>& of_tile : drafts)
    for (const Draft& tile : of_tile) {
      ++tiles, bundles += tile.bundles;
      most = std::max<std::int64_t>(most, tile.bundles);
      p.widest = std::max<std::int64_t>(p.widest, std::ssize(tile.columns));
    }
  if (static_cast<double>(most * tiles) <= (1 + kMostWaste) * static_cast<double>(bundles)) p.room = most * p.bundle;
}

std::shared_ptr<const TiledPattern> make_pattern(const CsrView& matrix, int warps, int bundle, std::int64_t nonzeros) {
  require_int32_rows(matrix.rows, "tiled");
  const Rows rows(matrix);
  auto p = std::make_shared<TiledPattern>();
  p->warps = warps, p->bundle = bundle;
  const RowTiles tiles = tile_rows(matrix, nonzeros);
  std::vector<std::vector<Draft>> drafts(static_cast<std::size_t>(tiles.count()));
  parallel_ranges(tiles.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    ColumnSet set;
    for (std::int64_t t = begin; t < end; ++t) {
      const auto i = static_cast<std::size_t>(t), first = static_cast<std::size_t>(tiles.first[i]);
      draft(rows, std::span(tiles.order).subspan(first, static_cast<std::size_t>(tiles.first[i + 1]) - first), *p, set,
            drafts[i]);
    }
  });
  space_tiles(*p, drafts);
  for (const std::vector<Draft>& of_tile : drafts)
    for (const Draft& tile : of_tile) {
      p->tiles.push_back({narrow<std::uint32_t>(p->slots, "the slots of format tiled"), tile.bundles,
                          narrow<std::uint32_t>(std::ssize(p->columns), "the columns of all tiles"),
                          static_cast<std::uint32_t>(tile.columns.size())});
      add_streams(*p, tile, p->slices.size());
      p->slices.insert(p->slices.end(), tile.slices.begin(), tile.slices.end());
      p->rows.insert(p->rows.end(), tile.rows.begin(), tile.rows.end());
      p->columns.insert(p->columns.end(), tile.columns.begin(), tile.columns.end());
      p->slots += p->room > 0 ? p->room : std::int64_t{tile.bundles} * bundle;
      if (p->room > 0) p->columns.resize(static_cast<std::size_t>(p->widest) * p->tiles.size(), -1);
    }
  p->slices.push_back({1, 1});
  p->rows.insert(p->rows.end(), kTiledLanes, -1);
  return p;
}

std::shared_ptr<const TiledPattern> pattern_of(ConversionInput& input, const Policy& layout) {
  const int warps = layout.at("warps"), nonzeros = layout.at("nonzeros");
  if (warps != 16 && warps != 32) throw Error(ErrorKind::usage, "tiled: warps must be 16 or 32");
  if (nonzeros < 1) throw Error(ErrorKind::usage, "tiled: nonzeros must be at least 1");
  return input.remember<std::shared_ptr<const TiledPattern>>("tiled " + layout.text(), [&] {
    return make_pattern(input.matrix(), warps, static_cast<int>(16 / input.value_bytes()), nonzeros);
  });
}

void fill_on_host(TiledStorage& tiled, const ConversionInput& input, bool structure) {
  const TiledPattern& p = *tiled.pattern;
  const Rows rows(input.matrix());
  dispatch(tiled.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_tasks(std::ssize(p.tiles), [&](std::int64_t t) {
      const TiledTile& tile = p.tiles[static_cast<std::size_t>(t)];
      const auto columns = std::span(p.columns).subspan(tile.column, tile.columns);
      const auto write = [&](std::uint64_t position, std::uint32_t slice, std::uint32_t slot) {
        for (int lane = 0; lane < kTiledLanes; ++lane) {
          const std::int32_t row = p.rows[std::size_t{slice} * kTiledLanes + static_cast<std::size_t>(lane)];
          const std::int64_t entry = row < 0 ? -1 : tiled_entry(rows.length(row), p.slices[slice].lanes, lane, slot);
          const std::int64_t k = entry < 0 ? -1 : rows.begin(row) + entry;
          const std::uint64_t to = position + static_cast<std::uint64_t>(lane * p.bundle);
          tiled.values.as<T>()[to] = k < 0 ? T(0) : static_cast<T>(rows.values()[k]);
          if (structure)
            tiled.local.as<std::uint16_t>()[to] = static_cast<std::uint16_t>(
                k < 0 ? tile.columns : std::lower_bound(columns.begin(), columns.end(), rows.column(k)) - columns.begin());
        }
      };
      for (int w = 0; w < p.warps; ++w)
        walk_stream(tile, p.streams[static_cast<std::size_t>(t * p.warps + w)], p.slices.data(), w, p.warps, p.bundle,
                    write);
    });
  });
}

void fill(TiledStorage& tiled, ConversionInput& input, bool structure) {
#ifdef SHARDMAT_HAVE_CUDA
  if (tiled.device.backend == Backend::cuda) return fill_tiled_on_device(tiled, *input.csr(), structure, input.stream());
#endif
  fill_on_host(tiled, input, structure);
}

/// Nonzeros for each different column in tiles of `nonzeros`, by a sample of tiles grown breadth first.
double sampled_reuse(const CsrView& matrix, std::int64_t nonzeros) {
  constexpr std::int64_t kTiles = 8;
  const Rows rows(matrix);
  std::int64_t held = 0, columns = 0;
  for (std::int64_t tile = 0; tile < kTiles && rows.count() > 0; ++tile) {
    std::deque<std::int64_t> queue{rows.count() * (2 * tile + 1) / (2 * kTiles)};
    std::unordered_set<std::int64_t> seen{queue.front() + matrix.diagonal}, touched;
    for (std::int64_t of_tile = 0; !queue.empty() && of_tile < nonzeros; queue.pop_front()) {
      const std::int64_t row = queue.front();
      of_tile += rows.length(row), held += rows.length(row);
      for (std::int64_t k = rows.begin(row); k < std::min(rows.end(row), rows.begin(row) + nonzeros); ++k) {
        const std::int64_t column = rows.column(k), vertex = column - matrix.diagonal;
        columns += touched.insert(column).second ? 1 : 0;
        if (vertex >= 0 && vertex < rows.count() && seen.insert(column).second) queue.push_back(vertex);
      }
    }
  }
  return columns == 0 ? 0 : static_cast<double>(held) / static_cast<double>(columns);
}

}  // namespace

std::int64_t TiledPattern::bytes(std::int64_t value_bytes) const {
  return static_cast<std::int64_t>(tiles.size() * sizeof(TiledTile) + streams.size() * sizeof(TiledStream) +
                                   slices.size() * sizeof(TiledSlice) + 4 * (rows.size() + columns.size())) +
         slots * kTiledLanes * (2 + value_bytes);
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

double tiled_cost(ConversionInput& input, const Policy& layout) {
  constexpr double kNever = std::numeric_limits<double>::infinity(), kEfficiency = 0.9, kPadding = 1.04;
  constexpr double kLeastReuse = 5, kMostUneven = 2;
  constexpr std::int64_t kLeast = 2'000'000;  // nonzeros; tiles of less are done before their columns have arrived
  const RowStatistics& rows = input.rows();
  if (rows.nnz < kLeast || rows.max_row > kTiledMostColumns || rows.stddev_row > kMostUneven * rows.mean_row) return kNever;
  const Policy packed = packed_layouts(input).front();
  if (packed.at("block") > 1 || packed_stencil_cost(input, packed) < kNever) return kNever;
  const double reuse = input.remember<double>(
      "tiled reuse", [&] { return sampled_reuse(input.matrix(), std::min(layout.at("nonzeros"), 40'000)); });
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
  tiled->columns = upload(p.columns, stream);
  const auto places = static_cast<std::size_t>(p.slots * kTiledLanes);
  tiled->local = Buffer(tiled->device, places * sizeof(std::uint16_t));
  tiled->values = Buffer(tiled->device, places * size_of(tiled->type));
  fill_bytes(tiled->local.data(), 0, tiled->local.bytes(), stream);  // the room between tiles
  fill_bytes(tiled->values.data(), 0, tiled->values.bytes(), stream);
  fill(*tiled, input, true);
  return tiled;
}

void update_tiled(Storage& storage, ConversionInput& input) { fill(static_cast<TiledStorage&>(storage), input, false); }

}  // namespace shardmat
