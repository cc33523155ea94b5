#include "kernels/formats/bcsr.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/formats/gather.h"

namespace shardmat {
namespace {

constexpr int kLargestBlock = 6;
using BlockEntries = std::array<std::int64_t, kLargestBlock * kLargestBlock>;

/// Merges the b rows of a block row: visit(block column, entries) for each block from left to right, entries[r·b + c] the
/// nonzero there or -1.
template <class Visit>
void for_each_block(const Rows& rows, int b, std::int64_t block_row, const Visit& visit) {
  std::array<std::int64_t, kLargestBlock> next{}, last{};
  for (int r = 0; r < b; ++r)
    if (const std::int64_t row = block_row * b + r; row < rows.count()) {
      next[static_cast<std::size_t>(r)] = rows.begin(row);
      last[static_cast<std::size_t>(r)] = rows.end(row);
    }
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  for (;;) {
    std::int64_t block_col = kNone;
    for (std::size_t r = 0; r < static_cast<std::size_t>(b); ++r)
      if (next[r] < last[r]) block_col = std::min(block_col, rows.column(next[r]) / b);
    if (block_col == kNone) return;
    BlockEntries entries;
    entries.fill(-1);
    for (std::size_t r = 0; r < static_cast<std::size_t>(b); ++r)
      for (; next[r] < last[r] && rows.column(next[r]) < (block_col + 1) * b; ++next[r])
        entries[r * static_cast<std::size_t>(b) + static_cast<std::size_t>(rows.column(next[r]) - block_col * b)] = next[r];
    visit(block_col, entries);
  }
}

using BlockPointers = std::shared_ptr<const HostVector<std::int64_t>>;

BlockPointers count_blocks(const CsrView& matrix, int b) {
  const Rows rows(matrix);
  auto block_ptr = std::make_shared<HostVector<std::int64_t>>(static_cast<std::size_t>((rows.count() + b - 1) / b) + 1);
  parallel_ranges(static_cast<std::int64_t>(block_ptr->size()) - 1, 1 << 10, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t& count = (*block_ptr)[static_cast<std::size_t>(i) + 1] = 0;
      for_each_block(rows, b, i, [&](std::int64_t, const BlockEntries&) { ++count; });
    }
  });
  accumulate_offsets(*block_ptr);
  return block_ptr;
}

int block_of(const Policy& layout) {
  const int b = layout.at("block");
  if (b < 2 || b > kLargestBlock) throw Error(ErrorKind::usage, "bcsr: block must be 2, 3, 4, 5 or 6");
  return b;
}

BlockPointers block_pointers(ConversionInput& input, const Policy& layout) {
  const int b = block_of(layout);
  return input.remember<BlockPointers>("bcsr " + layout.text(), [&] { return count_blocks(input.ascending(), b); });
}

/// The block column of each block, from begin on, to out.
void block_columns(const HostVector<std::int64_t>& block_ptr, const Rows& rows, int b, std::int64_t begin, std::int64_t end,
                   std::int32_t* out) {
  if (begin == end) return;
  for (auto i = part_of(block_ptr, begin); block_ptr[static_cast<std::size_t>(i)] < end; ++i) {
    std::int64_t block = block_ptr[static_cast<std::size_t>(i)];
    for_each_block(rows, b, i, [&](std::int64_t block_col, const BlockEntries&) {
      if (block >= begin && block < end) out[block - begin] = static_cast<std::int32_t>(block_col);
      ++block;
    });
  }
}

/// Where the values come from; positions are counted in values.
auto source(const HostVector<std::int64_t>& block_ptr, const Rows& rows, int b) {
  return [&block_ptr, rows, b](std::int64_t begin, std::int64_t end, auto put) {
    if (begin == end) return;
    const std::int64_t area = b * b;
    for (auto i = part_of(block_ptr, begin / area); block_ptr[static_cast<std::size_t>(i)] * area < end; ++i) {
      std::int64_t position = block_ptr[static_cast<std::size_t>(i)] * area;
      for_each_block(rows, b, i, [&](std::int64_t, const BlockEntries& entries) {
        for (std::size_t e = 0; e < static_cast<std::size_t>(area); ++e, ++position)
          if (position >= begin && position < end) put(entries[e]);
      });
    }
  };
}

/// Nonzeros and blocks of each size in a sample of the rows.
struct Sample {
  std::int64_t nnz = 0;
  std::array<std::int64_t, kLargestBlock + 1> blocks{};
};

Sample sample_of(const CsrView& matrix) {
  constexpr std::int64_t kChunks = 64, kRowsOfChunk = 60;  // 60: whole block rows of every size
  const Rows rows(matrix);
  Sample sample;
  const std::int64_t chunks = std::min(kChunks, (rows.count() + kRowsOfChunk - 1) / kRowsOfChunk);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t begin = rows.count() / kRowsOfChunk * chunk / chunks * kRowsOfChunk,
                       end = std::min(rows.count(), begin + kRowsOfChunk);
    sample.nnz += rows.begin(end) - rows.begin(begin);
    for (int b = 2; b <= kLargestBlock; ++b)
      for (std::int64_t i = begin / b; i * b < end; ++i)
        for_each_block(rows, b, i, [&](std::int64_t, const BlockEntries&) { ++sample.blocks[static_cast<std::size_t>(b)]; });
  }
  return sample;
}

/// Blocks of b·b values, told by the sample.
double estimated_blocks(ConversionInput& input, int b) {
  const auto& sample = input.remember<Sample>("bcsr sample", [&] { return sample_of(input.ascending()); });
  if (sample.nnz == 0) return 0;
  return static_cast<double>(sample.blocks[static_cast<std::size_t>(b)]) / static_cast<double>(sample.nnz) *
         static_cast<double>(input.rows().nnz);
}

}  // namespace

std::int64_t bcsr_estimate(ConversionInput& input, const Policy& layout) {
  const int b = block_of(layout);
  return static_cast<std::int64_t>(estimated_blocks(input, b) * static_cast<double>(4 + b * b * input.value_bytes())) +
         4 * (input.matrix().rows / b + 1);
}

bool bcsr_is_full(ConversionInput& input, const Policy& layout) {
  constexpr double kMostFill = 1.15;
  const int b = block_of(layout);
  return estimated_blocks(input, b) * b * b <= kMostFill * static_cast<double>(input.rows().nnz);
}

std::vector<Policy> bcsr_layouts(ConversionInput& input) {
  std::vector<Policy> all{{{"block", 2}}, {{"block", 3}}, {{"block", 4}}, {{"block", 5}}, {{"block", 6}}};
  std::stable_sort(all.begin(), all.end(),
                   [&](const Policy& a, const Policy& b) { return bcsr_estimate(input, a) < bcsr_estimate(input, b); });
  return all;
}

std::int64_t bcsr_bytes(ConversionInput& input, const Policy& layout) {
  const std::int64_t b = block_of(layout);
  const HostVector<std::int64_t>& block_ptr = *block_pointers(input, layout);
  return (needs_wide_offsets(block_ptr.back()) ? 8 : 4) * static_cast<std::int64_t>(block_ptr.size()) +
         (4 + b * b * input.value_bytes()) * block_ptr.back();
}

std::shared_ptr<Storage> convert_bcsr(ConversionInput& input, const Policy& layout) {
  Stream& stream = input.stream();
  const int b = block_of(layout);
  auto bcsr = std::make_shared<BcsrStorage>();
  bcsr->describe(input, bcsr_bytes(input, layout));
  bcsr->layout = layout;
  bcsr->host_block_ptr = block_pointers(input, layout);
  const HostVector<std::int64_t>& block_ptr = *bcsr->host_block_ptr;
  bcsr->block_rows = static_cast<std::int64_t>(block_ptr.size()) - 1;
  bcsr->block_cols = (bcsr->cols + b - 1) / b;
  bcsr->wide_offsets = needs_wide_offsets(bcsr->blocks());
  bcsr->block_ptr = upload_offsets(block_ptr, bcsr->wide_offsets, stream);
  const Rows rows(input.ascending());
  bcsr->block_col = Buffer(bcsr->device, static_cast<std::size_t>(bcsr->blocks()) * sizeof(std::int32_t));
  fill_ranges<std::int32_t>(
      bcsr->block_col, bcsr->blocks(), stream,
      [&](std::int64_t begin, std::int64_t end, std::int32_t* out) { block_columns(block_ptr, rows, b, begin, end, out); });
  bcsr->values = upload_values(bcsr->type, bcsr->blocks() * b * b, stream, source(block_ptr, rows, b), rows.values());
  return bcsr;
}

void update_bcsr(Storage& storage, ConversionInput& input) {
  const auto& bcsr = static_cast<BcsrStorage&>(storage);
  const int b = bcsr.block();
  const Rows rows(input.ascending());
  gather_values(bcsr.values, bcsr.type, bcsr.blocks() * b * b, input.stream(), source(*bcsr.host_block_ptr, rows, b),
                rows.values());
}

std::vector<Policy> bcsr_policies(const RowStatistics& rows) {
  const auto policy = [](int threads) { return Policy{{"threads_per_block_row", threads}, {"block_size", 256}}; };
  const int first = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::clamp(rows.mean_row, 8.0, 32.0))));
  std::vector<Policy> all{policy(first)};
  for (const int threads : {8, 16, 32})
    if (threads != first) all.push_back(policy(threads));
  return all;
}

bool bcsr_cusparse_supports(const Storage& storage) {
  const auto& a = static_cast<const BcsrStorage&>(storage);
  return a.rows % a.block() == 0 && a.cols % a.block() == 0 && !a.wide_offsets;
}

}  // namespace shardmat
