#include "kernels/formats/bcsr.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/formats/gather.h"

namespace shardmat {
namespace {

constexpr int kLargestBlock = 6;
using BlockEntries = std::array<std::int64_t, kLargestBlock * kLargestBlock>;

/// Where the entries of each row of a block row begin and end.
struct BlockRow {
  std::array<std::int64_t, kLargestBlock> next{}, last{};
};

/// Merges the b rows of a block row, whose columns ascend: column(k) of the entries from next[r] to last[r], and the nonzero
/// place(k) that each is.
template <class Column, class Place, class Visit>
void merge_rows(int b, BlockRow row, const Column& column, const Place& place, const Visit& visit) {
  auto& [next, last] = row;
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  for (;;) {
    std::int64_t block_col = kNone;
    for (std::size_t r = 0; r < static_cast<std::size_t>(b); ++r)
      if (next[r] < last[r]) block_col = std::min(block_col, column(next[r]) / b);
    if (block_col == kNone) return;
    BlockEntries entries;
    entries.fill(-1);
    for (std::size_t r = 0; r < static_cast<std::size_t>(b); ++r)
      for (; next[r] < last[r] && column(next[r]) < (block_col + 1) * b; ++next[r])
        entries[r * static_cast<std::size_t>(b) + static_cast<std::size_t>(column(next[r]) - block_col * b)] =
            place(next[r]);
    visit(block_col, entries);
  }
}

/// The rows of a matrix. Block rows whose columns do not ascend are sorted apart when they are read: sorting the matrix
/// would change the sums of other formats, and a sorted copy would take more memory than the format.
class BlockedRows {
 public:
  BlockedRows(const CsrView& matrix, bool ascends) : rows_(matrix), ascends_(ascends) {}
  explicit BlockedRows(ConversionInput& input) : BlockedRows(input.matrix(), input.ascends()) {}

  const Rows& rows() const { return rows_; }
  std::int64_t block_rows(int b) const { return (rows_.count() + b - 1) / b; }
  /// Position of the first nonzero of a block row.
  std::int64_t begin(int b, std::int64_t block_row) const { return rows_.begin(std::min(block_row * b, rows_.count())); }

  /// Calls visit(block column, entries) for each block of a block row from left to right, entries[r·b + c] the nonzero there
  /// or -1.
  template <class Visit>
  void for_each_block(int b, std::int64_t block_row, const Visit& visit) const {
    BlockRow row;
    bool ascends = true;
    for (int r = 0; r < b; ++r)
      if (const std::int64_t i = block_row * b + r; i < rows_.count()) {
        row.next[static_cast<std::size_t>(r)] = rows_.begin(i);
        row.last[static_cast<std::size_t>(r)] = rows_.end(i);
        if (!ascends_) ascends = ascends && std::is_sorted(rows_.columns() + rows_.begin(i), rows_.columns() + rows_.end(i));
      }
    if (ascends)
      return merge_rows(
          b, row, [&](std::int64_t k) { return rows_.column(k); }, [](std::int64_t k) { return k; }, visit);
    std::vector<std::pair<std::int64_t, std::int64_t>> sorted;  // column and position
    for (std::size_t r = 0; r < static_cast<std::size_t>(b); ++r) {
      const std::ptrdiff_t first = std::ssize(sorted);
      for (std::int64_t k = row.next[r]; k < row.last[r]; ++k) sorted.emplace_back(rows_.column(k), k);
      std::sort(sorted.begin() + first, sorted.end());
      row.next[r] = first, row.last[r] = std::ssize(sorted);
    }
    merge_rows(
        b, row, [&](std::int64_t k) { return sorted[static_cast<std::size_t>(k)].first; },
        [&](std::int64_t k) { return sorted[static_cast<std::size_t>(k)].second; }, visit);
  }

 private:
  Rows rows_;
  bool ascends_;
};

using BlockPointers = std::shared_ptr<const HostVector<std::int64_t>>;

BlockPointers count_blocks(const BlockedRows& rows, int b) {
  auto block_ptr = std::make_shared<HostVector<std::int64_t>>(static_cast<std::size_t>(rows.block_rows(b)) + 1);
  parallel_ranges(static_cast<std::int64_t>(block_ptr->size()) - 1, 1 << 10, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t& count = (*block_ptr)[static_cast<std::size_t>(i) + 1] = 0;
      rows.for_each_block(b, i, [&](std::int64_t, const BlockEntries&) { ++count; });
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
  return input.remember<BlockPointers>("bcsr " + layout.text(), [&] { return count_blocks(BlockedRows(input), b); });
}

/// The block column of each block, from begin on, to out.
void block_columns(const HostVector<std::int64_t>& block_ptr, const BlockedRows& rows, int b, std::int64_t begin,
                   std::int64_t end, std::int32_t* out) {
  if (begin == end) return;
  for (auto i = part_of(block_ptr, begin); block_ptr[static_cast<std::size_t>(i)] < end; ++i) {
    std::int64_t block = block_ptr[static_cast<std::size_t>(i)];
    rows.for_each_block(b, i, [&](std::int64_t block_col, const BlockEntries&) {
      if (block >= begin && block < end) out[block - begin] = static_cast<std::int32_t>(block_col);
      ++block;
    });
  }
}

/// Where the values come from; positions are counted in values.
auto source(const HostVector<std::int64_t>& block_ptr, const BlockedRows& rows, int b) {
  return [&block_ptr, &rows, b](std::int64_t begin, std::int64_t end, auto put) {
    if (begin == end) return;
    const std::int64_t area = b * b;
    for (auto i = part_of(block_ptr, begin / area); block_ptr[static_cast<std::size_t>(i)] * area < end; ++i) {
      std::int64_t position = block_ptr[static_cast<std::size_t>(i)] * area;
      rows.for_each_block(b, i, [&](std::int64_t, const BlockEntries& entries) {
        for (std::size_t e = 0; e < static_cast<std::size_t>(area); ++e, ++position)
          if (position >= begin && position < end) put(entries[e]);
      });
    }
  };
}

/// Writes the values on the host and releases the rows. A thread takes whole block rows, so that it alone reads their rows.
template <class T>
void fill_on_host(const BcsrStorage& bcsr, const BlockedRows& rows, const ConversionInput& input) {
  const HostVector<std::int64_t>& block_ptr = *bcsr.host_block_ptr;
  const ValuePointer from = input.matrix().values.data();
  const int b = bcsr.block();
  const auto first_row_from = [&](std::int64_t block) {
    return std::lower_bound(block_ptr.begin(), block_ptr.end(), block) - block_ptr.begin();
  };
  parallel_ranges(bcsr.blocks(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = first_row_from(begin), last = first_row_from(end);
    T* out = bcsr.values.as<T>() + block_ptr[static_cast<std::size_t>(first)] * b * b;
    for (std::int64_t i = first; i < last; ++i) {
      rows.for_each_block(b, i, [&](std::int64_t, const BlockEntries& entries) {
        for (std::size_t e = 0; e < static_cast<std::size_t>(b * b); ++e)
          *out++ = entries[e] < 0 ? T(0) : static_cast<T>(from[entries[e]]);
      });
      input.release(rows.begin(b, i), rows.begin(b, i + 1));
    }
  });
}

/// Nonzeros and blocks of each size in a sample of the rows.
struct Sample {
  std::int64_t nnz = 0;
  std::array<std::int64_t, kLargestBlock + 1> blocks{};
};

Sample sample_of(const CsrView& matrix) {
  constexpr std::int64_t kChunks = 64, kRowsOfChunk = 60;  // 60: whole block rows of every size
  const BlockedRows blocked(matrix, false);
  const Rows& rows = blocked.rows();
  const std::int64_t chunks = std::min(kChunks, (rows.count() + kRowsOfChunk - 1) / kRowsOfChunk);
  std::vector<Sample> of_chunk(static_cast<std::size_t>(chunks));
  parallel_tasks(chunks, [&](std::int64_t chunk) {
    Sample& sample = of_chunk[static_cast<std::size_t>(chunk)];
    const std::int64_t begin = rows.count() / kRowsOfChunk * chunk / chunks * kRowsOfChunk,
                       end = std::min(rows.count(), begin + kRowsOfChunk);
    sample.nnz = rows.begin(end) - rows.begin(begin);
    for (int b = 2; b <= kLargestBlock; ++b)
      for (std::int64_t i = begin / b; i * b < end; ++i)
        blocked.for_each_block(b, i,
                               [&](std::int64_t, const BlockEntries&) { ++sample.blocks[static_cast<std::size_t>(b)]; });
  });
  Sample all;
  for (const Sample& one : of_chunk) {
    all.nnz += one.nnz;
    for (std::size_t b = 0; b < all.blocks.size(); ++b) all.blocks[b] += one.blocks[b];
  }
  return all;
}

/// Blocks of b·b values, told by the sample.
double estimated_blocks(ConversionInput& input, int b) {
  const auto& sample = input.remember<Sample>("bcsr sample", [&] { return sample_of(input.matrix()); });
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
  const BlockedRows rows(input);
  bcsr->block_col = Buffer(bcsr->device, static_cast<std::size_t>(bcsr->blocks()) * sizeof(std::int32_t));
  fill_ranges<std::int32_t>(
      bcsr->block_col, bcsr->blocks(), stream,
      [&](std::int64_t begin, std::int64_t end, std::int32_t* out) { block_columns(block_ptr, rows, b, begin, end, out); });
  bcsr->values = Buffer(bcsr->device, static_cast<std::size_t>(bcsr->blocks() * b * b) * size_of(bcsr->type));
  if (bcsr->device.backend == Backend::host)
    dispatch(bcsr->type, [&](auto tag) { fill_on_host<typename decltype(tag)::type>(*bcsr, rows, input); });
  else
    gather_values(bcsr->values, bcsr->type, bcsr->blocks() * b * b, stream, source(block_ptr, rows, b),
                  input.matrix().values.data());
  return bcsr;
}

void update_bcsr(Storage& storage, ConversionInput& input) {
  const auto& bcsr = static_cast<BcsrStorage&>(storage);
  const int b = bcsr.block();
  const BlockedRows rows(input);
  gather_values(bcsr.values, bcsr.type, bcsr.blocks() * b * b, input.stream(), source(*bcsr.host_block_ptr, rows, b),
                input.matrix().values.data());
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
