// Conversion to packed rows on host threads; the same pieces, slots and arrays as on the device, to the byte.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "kernels/base/host_vector.h"
#include "kernels/base/parallel.h"
#include "kernels/formats/packed_build.h"
#include "kernels/formats/packed_pieces.h"

namespace shardmat::packed {
namespace {

using Matrix = Source<std::int64_t>;

Matrix source_of(const CsrView& m) {
  return {m.rows, m.cols, nullptr, m.row_ptr.data(), m.col_idx.data(), m.rows == 0 ? 0 : m.row_ptr[0]};
}

template <int P>
struct Slot {
  PackedSlotKind kind;
  std::int64_t base;      ///< smallest first column
  std::int64_t delta[P];  ///< first column less first row, of the first group
};

/// First columns of the pieces of a slot, or -1: P of each group.
template <int P>
using Starts = std::array<std::array<std::int64_t, P>, kPackedLanes>;
using Rows = std::vector<std::int64_t>;  ///< first row of each group of a slice

template <int P>
Slot<P> classify(const Starts<P>& start, const Rows& row) {
  Slot<P> slot{kSharedSlot, std::numeric_limits<std::int64_t>::max(), {}};
  std::int64_t high = -1;
  bool shared = true;
  for (std::size_t p = 0; p < P; ++p) slot.delta[p] = start[0][p] - row[0];
  for (std::size_t g = 0; g < row.size(); ++g)
    for (std::size_t p = 0; p < P; ++p) {
      if (start[g][p] >= 0) slot.base = std::min(slot.base, start[g][p]), high = std::max(high, start[g][p]);
      shared = shared && start[g][p] >= 0 && start[g][p] - row[g] == slot.delta[p];
    }
  if (!shared) slot.kind = high - slot.base <= 0xffff ? kNarrowSlot : kFullSlot;
  return slot;
}

/// Visits the slots of one width of a slice: visit(slot, starts, readers) with the readers before the slot's first pieces, free to take them.
template <int B, int W, int L, bool Singles, class Visit>
void for_each_slot(const Matrix& a, const Rows& row, const Visit& visit) {
  constexpr int kWidth = Singles ? 1 : W, P = Slots<B, kWidth, L>::kPieces;
  std::vector<PieceReader<B, W, std::int64_t>> readers;
  for (const std::int64_t first : row) readers.emplace_back(a, first);
  auto ahead = readers;
  while (true) {
    ahead = readers;
    Starts<P> start;
    bool any = false;
    for (std::size_t g = 0; g < row.size(); ++g)
      for (std::int64_t& piece : start[g]) {
        piece = Singles ? ahead[g].find_single() : ahead[g].find_piece();
        if (piece >= 0) ahead[g].template skip<kWidth>(piece), any = true;
      }
    if (!any) return;
    visit(classify<P>(start, row), start, readers);
    readers.swap(ahead);
  }
}

/// Counts the slots of a slice and hashes its deltas.
template <int B, int W, int L>
SliceCounts<B, W, L> count_slots(const Matrix& a, const Rows& row, std::uint64_t (&hash)[2]) {
  SliceCounts<B, W, L> counts;
  const auto count_into = [&](SlotCounts& slots) {
    return [&](const auto& slot, const auto&, const auto&) {
      ++slots.of[slot.kind];
      if (slot.kind == kSharedSlot)
        for (const std::int64_t delta : slot.delta) fold_delta(hash, static_cast<std::int32_t>(delta));
    };
  };
  for_each_slot<B, W, L, false>(a, row, count_into(counts.pieces));
  fold_delta(hash, -1);
  if constexpr (B == 1 && W > 1) for_each_slot<B, W, L, true>(a, row, count_into(counts.singles));
  return counts;
}

HostVector<std::uint32_t> order_groups(const Matrix& a, const PackedShape& shape, std::int64_t groups) {
  HostVector<std::uint64_t> keys(static_cast<std::size_t>(groups));
  HostVector<std::uint32_t> order(static_cast<std::size_t>(groups));
  with_shape(shape, [&](auto tag) {
    constexpr int B = tag.B, W = tag.W;
    parallel_ranges(groups, 1024, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t g = begin; g < end; ++g) {
        const std::int64_t row = g * B - shape.shift;
        std::uint64_t pieces = 0, singles = 0;
        PieceReader<B, W, std::int64_t> reader(a, row);
        for (std::int64_t start; (start = reader.find_piece()) >= 0; ++pieces) reader.template skip<W>(start);
        if (B == 1 && W > 1) singles = static_cast<std::uint64_t>(a.offset(row + 1) - a.offset(row)) - pieces * W;
        keys[static_cast<std::size_t>(g)] = sort_key(g, shape.window, pieces, singles);
        order[static_cast<std::size_t>(g)] = static_cast<std::uint32_t>(g);
      }
    });
  });
  if (shape.window > 1)
    parallel_tasks((groups + shape.window - 1) / shape.window, [&](std::int64_t w) {
      const auto begin = order.begin() + w * shape.window;
      const auto end = order.begin() + std::min(groups, (w + 1) * shape.window);
      std::stable_sort(begin, end, [&](std::uint32_t g, std::uint32_t h) { return keys[g] < keys[h]; });
    });
  return order;
}

/// First rows of the groups of a slice, which `group` lists.
Rows rows_of(const PackedShape& shape, const std::uint32_t* group, std::int64_t real) {
  Rows row;
  for (std::int64_t g = 0; g < real; ++g) row.push_back(static_cast<std::int64_t>(group[g]) * shape.rows - shape.shift);
  return row;
}

template <int B, int W, int L>
SliceSizes analyse_slice(const Matrix& a, int value_bytes, const Rows& row, const std::uint32_t* group, PackedSlice& slice) {
  std::uint64_t hash[2] = {1, 2}, nnz = 0;
  const SliceCounts<B, W, L> counts = count_slots<B, W, L>(a, row, hash);
  bool consecutive = true;
  for (std::size_t g = 0; g < row.size(); ++g) {
    nnz += static_cast<std::uint64_t>(a.offset(std::min(row[g] + B, a.rows)) - a.offset(std::max<std::int64_t>(row[g], 0)));
    consecutive = consecutive && group[g] == group[0] + g;
  }
  const SliceSizes size = slice_sizes(counts, value_bytes, nnz, consecutive, hash);
  slice = {};
  for (int k = 0; k < kPackedSlotKinds && !size.csr; ++k) {
    slice.pieces[k] = static_cast<std::uint16_t>(counts.pieces.of[k]);
    slice.singles[k] = static_cast<std::uint16_t>(counts.singles.of[k]);
  }
  slice.real = static_cast<std::uint8_t>(row.size()), slice.consecutive = consecutive, slice.csr = size.csr, slice.groups = group[0];
  return size;
}

/// Puts the slices in the order in which they run and gives each its place in the arrays; slices with equal deltas share them.
void place(PackedStorage& packed, const ConversionInput& input, const std::vector<SliceSizes>& sizes,
           const std::vector<PackedSlice>& drafts, const HostVector<std::uint32_t>& order) {
  std::vector<std::size_t> origin(sizes.size());
  std::iota(origin.begin(), origin.end(), std::size_t{0});
  std::stable_sort(origin.begin(), origin.end(),
                   [&](std::size_t s, std::size_t t) { return sizes[s].value_units > sizes[t].value_units; });
  auto* slice = packed.slice.as<PackedSlice>();
  std::uint64_t values = 0, indices = 0, deltas = 0, listed = 0;
  std::unordered_map<std::uint64_t, std::size_t> first_with;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const SliceSizes& size = sizes[origin[i]];
    slice[i] = drafts[origin[i]];
    slice[i].values = static_cast<std::uint32_t>(values), slice[i].indices = static_cast<std::uint32_t>(indices);
    std::size_t owner = i;
    if (size.hash[0] != 0) {
      const std::size_t first = first_with.emplace(size.hash[0], i).first->second;
      if (sizes[origin[first]].hash[1] == size.hash[1]) owner = first;
    }
    slice[i].deltas = owner == i ? static_cast<std::uint32_t>(deltas) : slice[owner].deltas;
    if (owner == i) deltas += size.deltas;
    if (size.order > 0) slice[i].groups = static_cast<std::uint32_t>(listed);
    values += size.value_units, indices += size.index_units, listed += size.order;
  }
  packed.set_sizes(input, values, indices, deltas, listed);
  packed.order = Buffer(packed.device, static_cast<std::size_t>(packed.order_bytes));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t count = sizes[origin[i]].order;
    for (std::size_t g = 0; g < count; ++g)
      packed.order.as<std::uint32_t>()[slice[i].groups + g] = order[std::min(origin[i] * count + g, order.size() - 1)];
  }
}

std::shared_ptr<PackedStorage> analyse(ConversionInput& input, const PackedShape& shape) {
  const Matrix a = source_of(input.matrix());
  auto packed = std::make_shared<PackedStorage>();
  packed->shape = shape;
  const std::int64_t groups = shape.groups(a.rows), count = packed->slices = shape.slices(a.rows);
  const HostVector<std::uint32_t> order = order_groups(a, shape, groups);
  packed->slice = Buffer(input.stream().device(), static_cast<std::size_t>(count) * sizeof(PackedSlice));
  std::vector<SliceSizes> sizes(static_cast<std::size_t>(count));
  std::vector<PackedSlice> drafts(sizes.size());
  with_shape(shape, [&](auto tag) {
    parallel_ranges(count, 32, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t s = begin; s < end; ++s) {
        const std::uint32_t* group = order.data() + s * shape.groups_of_slice();
        sizes[static_cast<std::size_t>(s)] = analyse_slice<tag.B, tag.W, tag.L>(
            a, static_cast<int>(input.value_bytes()), rows_of(shape, group, std::min<std::int64_t>(shape.groups_of_slice(), groups - s * shape.groups_of_slice())), group, drafts[static_cast<std::size_t>(s)]);
      }
    });
  });
  place(*packed, input, sizes, drafts, order);
  return packed;
}

/// Copies the rows of a CSR slice.
template <class T>
void fill_rows(const Matrix& a, const double* from, const Rows& row, const PackedSlice& slice, PackedStorage& to) {
  auto* columns = reinterpret_cast<std::int32_t*>(to.indices.as<char>() + std::uint64_t{slice.indices} * kPackedUnit);
  T* values = reinterpret_cast<T*>(to.values.as<char>() + std::uint64_t{slice.values} * kPackedUnit);
  std::int32_t* offsets = to.deltas.as<std::int32_t>() + slice.deltas;
  std::int32_t out = 0;
  const int rows = to.shape.rows, all = to.shape.groups_of_slice() * rows;
  for (int i = 0; i < all; ++i) {
    offsets[i] = out;
    const std::int64_t r = static_cast<std::size_t>(i / rows) < row.size() ? row[static_cast<std::size_t>(i / rows)] + i % rows : -1;
    if (r < 0 || r >= a.rows) continue;
    for (std::int64_t k = a.offset(r); k < a.offset(r + 1); ++k, ++out) {
      values[out] = static_cast<T>(from[k]);
      columns[out] = static_cast<std::int32_t>(a.col_idx[k]);
    }
  }
  offsets[all] = out;
}

template <class T, int B, int W, int L, bool Singles>
void fill_slots(const Matrix& a, const double* from, const Rows& row, const SlotCounts& slots, std::int32_t* deltas, char* indices,
                T* values) {
  constexpr int kWidth = Singles ? 1 : W;
  using S = Slots<B, kWidth, L>;
  std::uint32_t filled[kPackedSlotKinds] = {0, 0, 0};
  for_each_slot<B, W, L, Singles>(a, row, [&](const auto& slot, const auto& start, auto& readers) {
    const std::uint32_t position = filled[slot.kind]++;
    const std::uint32_t before = slot.kind == kSharedSlot ? 0 : slot.kind == kNarrowSlot ? slots.of[0] : slots.of[0] + slots.of[1];
    T* out = values + std::uint64_t{before + position} * S::kValues;
    std::fill_n(out, S::kValues, T(0));
    auto* full = reinterpret_cast<std::int32_t*>(indices) + position * S::kIndices;
    auto* narrow = reinterpret_cast<std::uint16_t*>(indices + slots.of[kFullSlot] * (4 * S::kIndices)) + position * S::kIndices;
    if (slot.kind == kNarrowSlot) deltas[slots.of[kSharedSlot] * S::kPieces + position] = static_cast<std::int32_t>(slot.base);
    for (int i = 0; i < S::kIndices; ++i) {
      const auto g = static_cast<std::size_t>(i / S::kPieces), p = static_cast<std::size_t>(i % S::kPieces);
      const std::int64_t first = g < row.size() ? start[g][p] : -1, column = first >= 0 ? first : slot.base;
      if (first >= 0)
        readers[g].template take<kWidth>(first, [&](int j, int r, std::int64_t k) {
          if (k >= 0) out[S::place(i, j, r)] = static_cast<T>(from[k]);
        });
      if (slot.kind == kSharedSlot && g == 0)
        deltas[position * S::kPieces + p] = static_cast<std::int32_t>(slot.delta[p]);
      else if (slot.kind == kNarrowSlot)
        narrow[i] = static_cast<std::uint16_t>(column - slot.base);
      else if (slot.kind == kFullSlot)
        full[i] = static_cast<std::int32_t>(column);
    }
  });
}

template <class T, int B, int W, int L>
void fill_slice(const Matrix& a, const double* from, std::int64_t s, PackedStorage& to) {
  const PackedSlice& slice = to.slice.as<PackedSlice>()[s];
  constexpr std::uint32_t kGroups = kPackedLanes / L;
  std::uint32_t group[kGroups];
  for (std::uint32_t g = 0; g < kGroups; ++g)
    group[g] = slice.consecutive ? slice.groups + g : to.order.as<std::uint32_t>()[slice.groups + g];
  const Rows row = rows_of(to.shape, group, slice.real);
  if (slice.csr) return fill_rows<T>(a, from, row, slice, to);
  const SliceCounts<B, W, L> counts(slice);
  std::int32_t* deltas = to.deltas.as<std::int32_t>() + slice.deltas;
  char* indices = to.indices.as<char>() + std::uint64_t{slice.indices} * kPackedUnit;
  T* values = reinterpret_cast<T*>(to.values.as<char>() + std::uint64_t{slice.values} * kPackedUnit);
  fill_slots<T, B, W, L, false>(a, from, row, counts.pieces, deltas, indices, values);
  if constexpr (B == 1 && W > 1) {
    using S = Slots<B, W, L>;
    fill_slots<T, B, W, L, true>(a, from, row, counts.singles, deltas + counts.pieces.template deltas<S>(),
                                 indices + counts.single_indices(), values + counts.pieces.template values<S>());
  }
}

/// The structure is written again with the same content when only values are new: host memory is not what is short here.
void fill_packed(PackedStorage& packed, ConversionInput& input, bool) {
  const Matrix a = source_of(input.matrix());
  dispatch(packed.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_shape(packed.shape, [&](auto shape) {
      parallel_ranges(packed.slices, 32, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t s = begin; s < end; ++s) fill_slice<T, shape.B, shape.W, shape.L>(a, input.matrix().values.data(), s, packed);
      });
    });
  });
}

}  // namespace

const Builder host_builder{analyse, fill_packed};

}  // namespace shardmat::packed
