// Tiled rows on the host: tiles are a partition of the rows, and every nonzero has one place, with its column.
#include "kernels/formats/tiled.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/formats/upload.h"
#include "kernels/matrix/row_tiles.h"
#include "kernels/matrix/rows.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/nonzeros.h"
#include "tests/support/stencil27.h"

namespace shardmat {
namespace {

using test::Nonzero;
using test::nonzeros_of;

/// What a kernel would multiply. Also checks that padding is zero and reads the zero behind the columns of its tile.
std::vector<Nonzero> nonzeros_of(const TiledStorage& a) {
  const TiledPattern& p = *a.pattern;
  std::vector<Nonzero> all;
  std::int64_t places = 0, expected = 0;
  for (const TiledTile& tile : p.tiles) expected += std::int64_t{tile.bundles} * p.bundle * kTiledLanes;
  for (std::size_t t = 0; t < p.tiles.size(); ++t)
    for (int w = 0; w < p.warps; ++w) {
      const TiledTile& tile = p.tiles[t];
      const auto stream = static_cast<std::size_t>(p.warps) * t + static_cast<std::size_t>(w);
      walk_stream(tile, p.streams[stream], p.slices.data(), w, p.warps, p.bundle,
                  [&](std::uint64_t position, std::uint32_t slice, std::uint32_t) {
                    for (std::uint32_t lane = 0; lane < kTiledLanes; ++lane, ++places) {
                      const std::uint64_t at = position + lane * static_cast<std::uint32_t>(p.bundle);
                      const std::uint32_t local = a.local.as<std::uint16_t>()[at];
                      const double value = a.values.as<double>()[at];
                      if (local < tile.columns)
                        all.emplace_back(p.rows[slice * kTiledLanes + lane],
                                         p.columns.as<std::int32_t>()[tile.column + local], value);
                      else EXPECT_TRUE(local == tile.columns && value == 0);
                    }
                  });
    }
  EXPECT_EQ(places, expected);
  std::sort(all.begin(), all.end());
  return all;
}

/// The stream in which a slice begins adds what the `more` streams after it have of the slice: together all its slots.
void expect_whole_slices(const TiledPattern& p) {
  for (std::size_t t = 0; t < p.tiles.size(); ++t) {
    std::vector<std::uint32_t> begun(static_cast<std::size_t>(p.warps), 0), handed = begun, open = begun;
    for (int w = 0; w < p.warps; ++w) {
      const auto i = static_cast<std::size_t>(w);
      const TiledStream& stream = p.streams[static_cast<std::size_t>(p.warps) * t + i];
      bool continues = stream.left != p.slices[stream.slice].slots;
      std::uint32_t slots = 0;
      walk_stream(p.tiles[t], stream, p.slices.data(), w, p.warps, p.bundle,
                  [&](std::uint64_t, std::uint32_t slice, std::uint32_t slot) {
                    ++slots, open[i] = p.slices[slice].slots;
                    if (slot + 1 < p.slices[slice].slots) return;
                    if (continues) handed[i] = slots;
                    else EXPECT_EQ(slots, p.slices[slice].slots);
                    slots = 0, continues = false;
                  });
      (continues ? handed : begun)[i] = slots;
    }
    for (std::size_t w = 0; w < begun.size(); ++w) {
      const std::uint32_t more = p.streams[static_cast<std::size_t>(p.warps) * t + w].more;
      EXPECT_EQ(begun[w] > 0, more > 0);
      for (std::size_t other = w + 1; other <= w + more; ++other) begun[w] += handed.at(other);
      if (more > 0) {
        EXPECT_EQ(begun[w], open[w]);
      }
    }
  }
}

TEST(Tiled, EveryNonzeroHasOnePlace) {
  Stream stream({Backend::host, 0});
  for (const test::NamedMatrix& zoo : test::matrix_zoo()) {
    SCOPED_TRACE(zoo.name);
    ConversionInput input(zoo.matrix.view(), ValueType::f64, stream);
    for (const int warps : {16, 32})
      for (const int nonzeros : {1, 300, 100'000}) {
        const Policy layout{{"warps", warps}, {"nonzeros", nonzeros}};
        if (nonzeros == 1 && zoo.matrix.rows > 200) continue;  // a tile a row
        const auto storage = convert_tiled(input, layout);
        EXPECT_EQ(storage->bytes, tiled_bytes(input, layout));
        EXPECT_EQ(nonzeros_of(static_cast<const TiledStorage&>(*storage)), nonzeros_of(zoo.matrix));
        expect_whole_slices(*static_cast<const TiledStorage&>(*storage).pattern);
      }
  }
}

TEST(GpuTiled, ConvertsAsTheHostDoes) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream host({Backend::host, 0}), gpu({Backend::cuda, 0});
  for (const test::NamedMatrix& zoo : test::matrix_zoo())
    for (const ValueType type : {ValueType::f32, ValueType::f64}) {
      SCOPED_TRACE(zoo.name);
      ConversionInput on_host(zoo.matrix.view(), type, host), on_gpu(zoo.matrix.view(), type, gpu);
      const Policy layout{{"warps", 16}, {"nonzeros", 400}};
      const auto expected = convert_tiled(on_host, layout), found = convert_tiled(on_gpu, layout);
      const auto &a = static_cast<const TiledStorage&>(*expected), &b = static_cast<const TiledStorage&>(*found);
      EXPECT_EQ(download<std::int32_t>(a.pattern->columns, host), download<std::int32_t>(b.pattern->columns, gpu));
      EXPECT_EQ(download<std::int32_t>(a.rows, host), download<std::int32_t>(b.rows, gpu));
      EXPECT_EQ(download<std::uint16_t>(a.local, host), download<std::uint16_t>(b.local, gpu));
      EXPECT_EQ(download<std::byte>(a.values, host), download<std::byte>(b.values, gpu));
    }
}

TEST(Tiled, TilesHaveEqualNonzerosAndFewColumns) {
  const HostCsr matrix = test::stencil27(20, 20);
  const RowTiles tiles = tile_rows(matrix.view(), group_rows(matrix.view()), 27 * 512);
  auto rows = tiles.order;
  std::sort(rows.begin(), rows.end());
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], static_cast<std::int32_t>(i));
  const Rows of(matrix.view());
  std::int64_t columns = 0;
  for (std::int64_t t = 0; t < tiles.count(); ++t) {
    std::vector<std::int64_t> touched;
    std::int64_t nonzeros = 0;
    for (std::int64_t at = tiles.first[static_cast<std::size_t>(t)]; at < tiles.first[static_cast<std::size_t>(t) + 1];
         ++at) {
      const std::int64_t row = tiles.order[static_cast<std::size_t>(at)];
      nonzeros += of.length(row);
      for (std::int64_t k = of.begin(row); k < of.end(row); ++k) touched.push_back(of.column(k));
    }
    if (t + 1 < tiles.count()) {
      EXPECT_LT(std::abs(nonzeros - 27 * 512), 27);
    }
    std::sort(touched.begin(), touched.end());
    columns += std::unique(touched.begin(), touched.end()) - touched.begin();
  }
  // A cube of 8³ rows has 10³ columns, twice its rows. Rows in their natural order, 1.3 planes of 20² a tile, have 2.7 as
  // many.
  EXPECT_LT(columns, 2.6 * static_cast<double>(matrix.rows));
}

TEST(Tiled, RefusesARowWithTooManyColumns) {
  Stream stream({Backend::host, 0});
  HostCsr matrix;
  matrix.rows = 1, matrix.cols = kTiledMostColumns + 1, matrix.row_ptr = {0, matrix.cols};
  for (std::int64_t j = 0; j < matrix.cols; ++j) matrix.col_idx.push_back(j), matrix.values.push_back(1);
  ConversionInput input(matrix.view(), ValueType::f64, stream);
  EXPECT_THROW(tiled_bytes(input, {{"warps", 32}, {"nonzeros", 1000}}), Error);
}

}  // namespace
}  // namespace shardmat
