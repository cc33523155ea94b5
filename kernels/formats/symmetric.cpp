#include "kernels/formats/symmetric.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/formats/bcsr.h"
#include "kernels/formats/gather.h"

namespace shardmat {
namespace {

constexpr int kLargestBlock = 6;
constexpr std::int64_t kGrain = 1 << 10;  // block rows

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// Rows with ascending columns, and a mark for each nonzero that is on the diagonal or has an equal mirror image.
class MirroredRows {
 public:
  explicit MirroredRows(const CsrView& matrix) : first_column_(matrix.diagonal), rows_(matrix) {
    mirrored_.resize(static_cast<std::size_t>(matrix.nnz()));
    std::fill(mirrored_.begin(), mirrored_.end(), std::uint8_t{0});
    parallel_ranges(rows_.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) mark(i);
    });
  }

  const Rows& rows() const { return rows_; }
  std::int64_t first_column() const { return first_column_; }
  bool is_mirrored(std::int64_t k) const { return mirrored_[static_cast<std::size_t>(k)] != 0; }
  /// Calls visit(block column, entries) for the blocks of a block row of the lower triangle, from left to right. entries[r·b
  /// + c]: the nonzero there or -1.
  template <class Visit>
  void for_each_block(int b, std::int64_t block_row, const Visit& visit) const;

 private:
  /// Marks the entry of row i on the diagonal, and those below it with their mirror images.
  void mark(std::int64_t i) {
    const ColumnPointer columns = rows_.columns();
    const ValuePointer values = rows_.values();
    const ColumnPointer first = columns + rows_.begin(i), last = columns + rows_.end(i);
    for (auto k = std::lower_bound(first, last, first_column_) - columns; k < rows_.end(i); ++k) {
      const std::int64_t j = columns[k] - first_column_;
      if (j > i) return;
      if (j == i) {
        mirrored_[static_cast<std::size_t>(k)] = 1;
        continue;
      }
      const ColumnPointer end = columns + rows_.end(j);
      const ColumnPointer found = std::lower_bound(columns + rows_.begin(j), end, first_column_ + i);
      if (found == end || *found != first_column_ + i || !same_bits(values[found - columns], values[k])) continue;
      mirrored_[static_cast<std::size_t>(k)] = mirrored_[static_cast<std::size_t>(found - columns)] = 1;
    }
  }

  std::int64_t first_column_;
  Rows rows_;
  HostVector<std::uint8_t> mirrored_;  // each place is written by one thread
};

template <class Visit>
void MirroredRows::for_each_block(int b, std::int64_t block_row, const Visit& visit) const {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  struct Cursor {
    std::int64_t next = 0, last = 0;
  };
  std::array<Cursor, kLargestBlock> cursors{};
  const auto row_cursors = std::span(cursors).first(static_cast<std::size_t>(b));
  const auto column = [&](const Cursor& at) { return rows_.column(at.next) - first_column_; };
  const auto skip = [&](Cursor& at) {  // to the next entry of the triangle
    while (at.next < at.last && !is_mirrored(at.next)) ++at.next;
    if (at.next < at.last && column(at) >= (block_row + 1) * b) at.next = at.last;
  };
  for (std::int64_t r = 0; r < b && block_row * b + r < rows_.count(); ++r) {
    Cursor& at = cursors[static_cast<std::size_t>(r)];
    at = {rows_.begin(block_row * b + r), rows_.end(block_row * b + r)};
    skip(at);
  }
  for (;;) {
    std::int64_t block_col = kNone;
    for (const Cursor& at : row_cursors)
      if (at.next < at.last) block_col = std::min(block_col, column(at) / b);
    if (block_col == kNone) return;
    std::array<std::int64_t, kLargestBlock * kLargestBlock> entries;
    entries.fill(-1);
    std::size_t row = 0;
    for (Cursor& at : row_cursors) {
      for (; at.next < at.last && column(at) < (block_col + 1) * b; ++at.next, skip(at))
        entries[row + static_cast<std::size_t>(column(at) - block_col * b)] = at.next;
      row += static_cast<std::size_t>(b);
    }
    visit(block_col, entries);
  }
}

int block_of(const Policy& layout) {
  const int b = layout.at("block");
  if (b < 1 || b > kLargestBlock) throw Error(ErrorKind::usage, "symmetric: block must be 1, 2, 3, 4, 5 or 6");
  return b;
}

const MirroredRows& mirrored_rows(ConversionInput& input) {
  return *input.remember<std::shared_ptr<const MirroredRows>>(
      "symmetric", [&] { return std::make_shared<const MirroredRows>(input.ascending()); });
}

using Offsets = std::shared_ptr<const HostVector<std::int64_t>>;

template <class Count>
Offsets count_offsets(std::int64_t parts, const Count& count) {
  auto offsets = std::make_shared<HostVector<std::int64_t>>(static_cast<std::size_t>(parts) + 1);
  parallel_ranges(parts, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) (*offsets)[static_cast<std::size_t>(i) + 1] = count(i);
  });
  accumulate_offsets(*offsets);
  return offsets;
}

const HostVector<std::int64_t>& block_offsets(ConversionInput& input, const Policy& layout) {
  const int b = block_of(layout);
  return *input.remember<Offsets>("symmetric " + layout.text(), [&] {
    const MirroredRows& rows = mirrored_rows(input);
    return count_offsets((rows.rows().count() + b - 1) / b, [&](std::int64_t i) {
      std::int64_t count = 0;
      rows.for_each_block(b, i, [&](std::int64_t, const auto&) { ++count; });
      return count;
    });
  });
}

const HostVector<std::int64_t>& rest_offsets(ConversionInput& input) {
  return *input.remember<Offsets>("symmetric rest", [&] {
    const MirroredRows& mirrored = mirrored_rows(input);
    const Rows& rows = mirrored.rows();
    return count_offsets(rows.count(), [&](std::int64_t i) {
      std::int64_t count = 0;
      for (std::int64_t k = rows.begin(i); k < rows.end(i); ++k) count += mirrored.is_mirrored(k) ? 0 : 1;
      return count;
    });
  });
}

/// Entries of the CSR rest, in memory of the host.
struct Rest {
  HostVector<std::int64_t> columns;
  HostVector<double> values;
};

Rest rest_of(ConversionInput& input) {
  const MirroredRows& mirrored = mirrored_rows(input);
  const HostVector<std::int64_t>& offsets = rest_offsets(input);
  const Rows& rows = mirrored.rows();
  Rest rest{HostVector<std::int64_t>(static_cast<std::size_t>(offsets.back())),
            HostVector<double>(static_cast<std::size_t>(offsets.back()))};
  parallel_ranges(rows.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    auto to = static_cast<std::size_t>(offsets[static_cast<std::size_t>(begin)]);
    for (std::int64_t k = rows.begin(begin); k < rows.begin(end); ++k)
      if (!mirrored.is_mirrored(k)) rest.columns[to] = rows.column(k), rest.values[to++] = rows.values()[k];
  });
  return rest;
}

std::shared_ptr<CsrStorage> store_rest(ConversionInput& input) {
  const Rest rest = rest_of(input);
  const CsrView& matrix = input.matrix();
  ConversionInput of_rest({matrix.rows, matrix.cols, rest_offsets(input), rest.columns, rest.values}, input.type(),
                          input.stream());
  return std::static_pointer_cast<CsrStorage>(convert_csr(of_rest, {}));
}

/// Writes columns and values of all blocks.
template <class T>
void fill_blocks(const MirroredRows& mirrored, const HostVector<std::int64_t>& offsets, int b, SymmetricStorage& to) {
  auto* block_col = to.block_col.as<std::int32_t>();
  T* values = to.values.as<T>();
  const ValuePointer from = mirrored.rows().values();
  const std::size_t area = static_cast<std::size_t>(b) * static_cast<std::size_t>(b);
  parallel_ranges(to.block_rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      auto block = static_cast<std::size_t>(offsets[static_cast<std::size_t>(i)]);
      mirrored.for_each_block(b, i, [&](std::int64_t column, const auto& entries) {
        block_col[block] = static_cast<std::int32_t>(column);
        for (std::size_t e = 0; e < area; ++e)
          values[block * area + e] = entries[e] < 0 ? T(0) : static_cast<T>(from[entries[e]]);
        ++block;
      });
    }
  });
}

}  // namespace

std::vector<Policy> symmetric_layouts(ConversionInput& input) {
  const Policy best = bcsr_layouts(input).front();
  const int full = bcsr_is_full(input, best) ? best.at("block") : 1;
  std::vector<Policy> all{Policy{{"block", full}}};
  for (int b = 1; b <= kLargestBlock; ++b)
    if (b != full) all.push_back(Policy{{"block", b}});
  return all;
}

std::int64_t symmetric_bytes(ConversionInput& input, const Policy& layout) {
  const std::int64_t b = block_of(layout), entry = 4 + input.value_bytes();
  const HostVector<std::int64_t>&blocks = block_offsets(input, layout), &rest = rest_offsets(input);
  const auto offset_bytes = [](const HostVector<std::int64_t>& offsets) {
    return (needs_wide_offsets(offsets.back() + 256) ? 8 : 4) * std::ssize(offsets);
  };
  return offset_bytes(blocks) + (4 + b * b * input.value_bytes()) * blocks.back() + offset_bytes(rest) + entry * rest.back();
}

std::shared_ptr<Storage> convert_symmetric(ConversionInput& input, const Policy& layout) {
  Stream& stream = input.stream();
  if (stream.device().backend != Backend::host)
    throw Error(ErrorKind::usage, "symmetric storage is for the host; on a GPU, store the whole matrix");
  const int b = block_of(layout);
  const HostVector<std::int64_t>& offsets = block_offsets(input, layout);
  auto symmetric = std::make_shared<SymmetricStorage>();
  symmetric->describe(input, symmetric_bytes(input, layout));
  symmetric->layout = layout;
  symmetric->first_column = input.matrix().diagonal;
  symmetric->block_rows = std::ssize(offsets) - 1;
  symmetric->wide_offsets = needs_wide_offsets(offsets.back() + 256);
  symmetric->block_ptr = upload_offsets(offsets, symmetric->wide_offsets, stream);
  symmetric->block_col = Buffer(symmetric->device, static_cast<std::size_t>(offsets.back()) * sizeof(std::int32_t));
  symmetric->values = Buffer(symmetric->device, static_cast<std::size_t>(offsets.back() * b * b) * size_of(symmetric->type));
  require_in_range(symmetric->type, input.matrix().values, "the matrix's values");
  dispatch(symmetric->type,
           [&](auto tag) { fill_blocks<typename decltype(tag)::type>(mirrored_rows(input), offsets, b, *symmetric); });
  symmetric->rest = store_rest(input);
  return symmetric;
}

}  // namespace shardmat
