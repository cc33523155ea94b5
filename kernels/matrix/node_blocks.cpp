#include "kernels/matrix/node_blocks.h"

#include <algorithm>
#include <utility>

namespace shardmat {
namespace {

constexpr std::int64_t kRanges = 16, kRangeRows = 300, kMultiple = 60;

// Measured on grids with zeros dropped. Elasticity (triangles, tetrahedra, squares, cubes) fills 68 to 87 % of its blocks,
// each place in 49 % of them, and shifted blocks two thirds as well. Scalar problems fill 55 % at most, shifted blocks 85 %
// as well; lines of three or four points fill up to 78 %, but leave places empty, or fill shifted blocks 80 % as well.
// Blocks that are full are full nowhere else, but nearly so where nodes couple with many others on a line: 91 % with twenty.
constexpr double kFull = 0.75, kFill = 0.6, kPlace = 0.25, kDiagonals = 0.95;
constexpr double kContrast = 0.75, kContrastOfFull = 0.98, kAsGood = 0.85;

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
double fill(const BlockTally& tally) { return ratio(tally.nonzeros, tally.room); }
bool is_full(const BlockTally& tally) { return ratio(tally.full, tally.nonzeros) >= kFull; }

/// In a scalar problem, blocks made of neighbours on a line have a band in them: some places are never filled.
bool fills_all_places(const BlockTally& tally, std::int64_t size) {
  return std::all_of(tally.places.begin(), tally.places.begin() + size * size,
                     [&](std::int64_t count) { return ratio(count, tally.blocks) >= kPlace; });
}

bool may_be(const BlockTally& tally, std::int64_t size) {
  return tally.groups > 0 && ratio(tally.diagonals, tally.groups) >= kDiagonals &&
         (is_full(tally) || (fill(tally) >= kFill && fills_all_places(tally, size)));
}

}  // namespace

std::array<std::int64_t, BlockTally::kCount> BlockTally::numbers() const {
  std::array<std::int64_t, kCount> all{groups, diagonals, nonzeros, room, full, blocks};
  std::copy(places.begin(), places.end(), all.end() - std::ssize(places));
  return all;
}

void BlockTally::set_numbers(std::span<const std::int64_t> numbers) {
  groups = numbers[0], diagonals = numbers[1], nonzeros = numbers[2];
  room = numbers[3], full = numbers[4], blocks = numbers[5];
  std::copy_n(numbers.begin() + 6, places.size(), places.begin());
}

std::vector<RowInterval> node_block_samples(std::int64_t rows) {
  std::vector<RowInterval> ranges;
  if (rows <= kRanges * kRangeRows) {
    for (std::int64_t begin = 0; begin < rows; begin += kRangeRows)
      ranges.push_back({begin, std::min(rows, begin + kRangeRows)});
    return ranges;
  }
  const std::int64_t step = (rows - kRangeRows) / (kRanges - 1);
  for (std::int64_t i = 0; i < kRanges; ++i) {
    const std::int64_t begin = i * step / kMultiple * kMultiple;
    ranges.push_back({begin, begin + kRangeRows});
  }
  return ranges;
}

void NodeBlockSample::add(std::int64_t first_row, const CsrView& rows) {
  Run run;
  run.first_row = first_row;
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const auto begin = rows.row_ptr[static_cast<std::size_t>(i)] - rows.row_ptr[0],
               end = rows.row_ptr[static_cast<std::size_t>(i) + 1] - rows.row_ptr[0];
    const auto first = rows.col_idx.begin() + begin, last = rows.col_idx.begin() + end;
    const bool out = end - begin > kLongestSampledRow || std::find(first, last, std::int64_t{-1}) != last;
    run.left_out.push_back(out);
    if (!out) run.columns.insert(run.columns.end(), first, last);
    run.starts.push_back(std::ssize(run.columns));
  }
  runs_.push_back(std::move(run));
}

void NodeBlockSample::add_group(const Run& run, std::size_t row, const BlockGrouping& grouping,
                                std::vector<std::int64_t>& blocks, BlockTally& tally) const {
  const std::int64_t size = grouping.size, before = (size - grouping.shift) % size;
  const auto rows = static_cast<std::size_t>(size);
  if (std::find(run.left_out.begin() + static_cast<std::ptrdiff_t>(row),
                run.left_out.begin() + static_cast<std::ptrdiff_t>(row + rows),
                true) != run.left_out.begin() + static_cast<std::ptrdiff_t>(row + rows))
    return;
  blocks.clear();
  const std::int64_t whole_end = (rows_ + before) / size;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::int64_t k = run.starts[row + i]; k < run.starts[row + i + 1]; ++k) {
      const std::int64_t column = run.columns[static_cast<std::size_t>(k)] + before, block = column / size;
      blocks.push_back(block);
      if (block * size >= before && block < whole_end) ++tally.places[i * rows + static_cast<std::size_t>(column % size)];
    }
  const std::int64_t nonzeros = std::ssize(blocks);
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  std::int64_t room = 0;
  for (const std::int64_t block : blocks) {
    const std::int64_t begin = std::max<std::int64_t>(0, block * size - before),
                       end = std::min(rows_, (block + 1) * size - before);
    room += size * (end - begin);
    tally.blocks += end - begin == size ? 1 : 0;
  }
  const std::int64_t own = (run.first_row + static_cast<std::int64_t>(row) + before) / size;
  ++tally.groups;
  tally.diagonals += std::binary_search(blocks.begin(), blocks.end(), own) ? 1 : 0;
  tally.nonzeros += nonzeros;
  tally.room += room;
  tally.full += nonzeros == room ? nonzeros : 0;
}

BlockTally NodeBlockSample::tally(const BlockGrouping& grouping) const {
  BlockTally sums;
  std::vector<std::int64_t> blocks;
  for (const Run& run : runs_) {
    const std::int64_t size = grouping.size, count = std::ssize(run.left_out);
    std::int64_t row = (grouping.shift - run.first_row) % size;
    if (row < 0) row += size;
    for (; row + size <= count; row += size) add_group(run, static_cast<std::size_t>(row), grouping, blocks, sums);
  }
  return sums;
}

std::int64_t node_block_size(std::int64_t rows,
                             const std::function<std::vector<BlockTally>(const std::vector<BlockGrouping>&)>& tallies) {
  std::vector<BlockGrouping> sizes;
  for (std::int64_t size = kMostNodeBlock; size > 1; --size)
    if (rows % size == 0 && rows >= 2 * size) sizes.push_back({size, 0});
  const std::vector<BlockTally> found = tallies(sizes);
  std::vector<BlockGrouping> shifted;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (may_be(found[i], sizes[i].size))
      for (std::int64_t shift = 1; shift < sizes[i].size; ++shift) shifted.push_back({sizes[i].size, shift});
  const std::vector<BlockTally> others = tallies(shifted);
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!may_be(found[i], sizes[i].size)) continue;
    const double most = (is_full(found[i]) ? kContrastOfFull : kContrast) * fill(found[i]);
    bool stands_out = true;
    for (std::size_t k = 0; k < shifted.size(); ++k)
      if (shifted[k].size == sizes[i].size) stands_out = stands_out && others[k].groups > 0 && fill(others[k]) <= most;
    if (stands_out) left.push_back(i);
  }
  double best = 0;
  for (const std::size_t i : left) best = std::max(best, fill(found[i]));
  for (const std::size_t i : left)
    if (fill(found[i]) >= kAsGood * best) return sizes[i].size;
  return 1;
}

}  // namespace shardmat
