// Conversion to tiled rows on the host.
#include <algorithm>
#include <span>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/formats/tiled_build.h"
#include "kernels/matrix/rows.h"
#include "kernels/typed_plan.h"

namespace shardmat::tiled {
namespace {

/// The different columns of a tile, ascending.
void find_columns(const Rows& rows, const RowTiles& tiles, std::size_t tile, std::vector<std::int32_t>& columns) {
  columns.clear();
  for (std::int64_t i = tiles.first[tile]; i < tiles.first[tile + 1]; ++i) {
    const std::int64_t row = tiles.order[static_cast<std::size_t>(i)];
    for (std::int64_t k = rows.begin(row); k < rows.end(row); ++k)
      columns.push_back(static_cast<std::int32_t>(rows.column(k)));
  }
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
}

std::vector<std::int32_t> count_columns(ConversionInput& input, const RowTiles& tiles) {
  const Rows rows(input.matrix());
  std::vector<std::int32_t> counts(static_cast<std::size_t>(tiles.count()));
  parallel_ranges(tiles.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> columns;
    for (auto t = static_cast<std::size_t>(begin); t < static_cast<std::size_t>(end); ++t) {
      find_columns(rows, tiles, t, columns);
      counts[t] = static_cast<std::int32_t>(std::min<std::int64_t>(std::ssize(columns), kTiledMostColumns + 1));
    }
  });
  return counts;
}

void write_columns(ConversionInput& input, const RowTiles& tiles, TiledPattern& p) {
  const Rows rows(input.matrix());
  parallel_ranges(tiles.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> columns;
    for (auto t = static_cast<std::size_t>(begin); t < static_cast<std::size_t>(end); ++t) {
      find_columns(rows, tiles, t, columns);
      std::copy(columns.begin(), columns.end(), p.columns.as<std::int32_t>() + p.tiles[t].column);
    }
  });
}

template <class T>
void fill_tile(const TiledStorage& a, const Rows& rows, std::size_t t, bool structure) {
  const TiledPattern& p = *a.pattern;
  const TiledTile& tile = p.tiles[t];
  const std::span columns(p.columns.as<std::int32_t>() + tile.column, tile.columns);
  const auto write = [&](std::uint64_t position, std::uint32_t slice, std::uint32_t slot) {
    for (int lane = 0; lane < kTiledLanes; ++lane) {
      const std::int32_t row = p.rows[std::size_t{slice} * kTiledLanes + static_cast<std::size_t>(lane)];
      const std::int64_t entry = row < 0 ? -1 : tiled_entry(rows.length(row), p.slices[slice].lanes, lane, slot);
      const std::int64_t k = entry < 0 ? -1 : rows.begin(row) + entry;
      const std::uint64_t to = position + static_cast<std::uint64_t>(lane * p.bundle);
      a.values.as<T>()[to] = k < 0 ? T(0) : static_cast<T>(rows.values()[k]);
      if (!structure) continue;
      const auto place = k < 0 ? columns.end() : std::lower_bound(columns.begin(), columns.end(), rows.column(k));
      a.local.as<std::uint16_t>()[to] = static_cast<std::uint16_t>(place - columns.begin());
    }
  };
  for (int w = 0; w < p.warps; ++w) {
    const TiledStream& stream = p.streams[t * static_cast<std::size_t>(p.warps) + static_cast<std::size_t>(w)];
    walk_stream(tile, stream, p.slices.data(), w, p.warps, p.bundle, write);
  }
}

void fill(TiledStorage& a, ConversionInput& input, bool structure) {
  const Rows rows(input.matrix());
  dispatch(a.type, [&](auto tag) {
    parallel_tasks(std::ssize(a.pattern->tiles), [&](std::int64_t t) {
      fill_tile<typename decltype(tag)::type>(a, rows, static_cast<std::size_t>(t), structure);
    });
  });
}

}  // namespace

const Builder host_builder{[](ConversionInput& input) { return group_rows(input.matrix()); }, count_columns, write_columns,
                           fill};

}  // namespace shardmat::tiled
