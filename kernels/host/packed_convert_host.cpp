// Conversion to packed rows on host threads; the same pieces, slots and arrays as on the device, to the byte.
#include <algorithm>
#include <array>
#include <cstring>
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

/// Visits the slots of a slice: visit(slot, starts, readers) with the readers before the slot's first pieces, free to take
/// them.
template <class S, class Visit>
void for_each_slot(const Matrix& a, const Rows& row, const Visit& visit) {
  std::vector<PieceReader<S::B, std::int64_t>> readers;
  for (const std::int64_t first : row) readers.emplace_back(a, first);
  auto ahead = readers;
  while (true) {
    ahead = readers;
    Starts<S::kPieces> start;
    bool any = false;
    for (std::size_t g = 0; g < row.size(); ++g)
      for (std::int64_t& piece : start[g]) {
        piece = ahead[g].find();
        if (piece >= 0) ahead[g].skip(piece), any = true;
      }
    if (!any) return;
    visit(classify<S::kPieces>(start, row), start, readers);
    readers.swap(ahead);
  }
}

HostVector<std::uint32_t> order_groups(const Matrix& a, const PackedShape& shape, std::int64_t groups) {
  HostVector<std::uint64_t> keys(static_cast<std::size_t>(groups));
  HostVector<std::uint32_t> order(static_cast<std::size_t>(groups));
  const std::int64_t window = window_of(shape);
  parallel_ranges(groups, 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) {
      keys[static_cast<std::size_t>(g)] = sort_key(a, shape, g, window);
      order[static_cast<std::size_t>(g)] = static_cast<std::uint32_t>(g);
    }
  });
  if (shape.window > shape.groups_of_slice())
    parallel_tasks((groups + window - 1) / window, [&](std::int64_t w) {
      std::stable_sort(order.begin() + w * window, order.begin() + std::min(groups, (w + 1) * window),
                       [&](std::uint32_t g, std::uint32_t h) { return keys[g] < keys[h]; });
    });
  return order;
}

/// First rows of the groups of a slice, which `group` lists.
Rows rows_of(const PackedShape& shape, const std::uint32_t* group, std::int64_t real) {
  Rows row;
  for (std::int64_t g = 0; g < real; ++g) row.push_back(static_cast<std::int64_t>(group[g]) * shape.block - shape.shift);
  return row;
}

template <class S>
SliceSizes analyse_slice(const Matrix& a, int value_bytes, const Rows& row, const std::uint32_t* group, PackedSlice& slice) {
  SlotCounts<S> counts;
  std::uint64_t hash[2] = {1, 2}, nnz = 0;
  for_each_slot<S>(a, row, [&](const auto& slot, const auto&, const auto&) {
    ++counts.of[slot.kind];
    if (slot.kind == kSharedSlot)
      for (const std::int64_t delta : slot.delta) fold_delta(hash, static_cast<std::int32_t>(delta));
  });
  bool consecutive = true;
  for (std::size_t g = 0; g < row.size(); ++g) {
    nnz +=
        static_cast<std::uint64_t>(a.offset(std::min(row[g] + S::B, a.rows)) - a.offset(std::max<std::int64_t>(row[g], 0)));
    consecutive = consecutive && group[g] == group[0] + g;
  }
  const SliceSizes size = slice_sizes(counts, value_bytes, nnz, consecutive, hash);
  slice = {};
  for (int k = 0; k < kPackedSlotKinds && !size.csr; ++k) slice.slots[k] = counts.of[k];
  slice.real = static_cast<std::uint8_t>(row.size()), slice.consecutive = consecutive, slice.csr = size.csr;
  slice.groups = group[0];
  return size;
}

/// Puts the slices in the order in which they run and gives each its place in the arrays; slices with equal deltas share
/// them.
void place(PackedStorage& packed, const ConversionInput& input, const std::vector<SliceSizes>& sizes,
           const std::vector<PackedSlice>& drafts, const HostVector<std::uint32_t>& order) {
  std::vector<std::size_t> origin(sizes.size());
  std::iota(origin.begin(), origin.end(), std::size_t{0});
  if (longest_first(input.matrix().rows, input.matrix().cols, input.value_bytes()))
    std::stable_sort(origin.begin(), origin.end(),
                     [&](std::size_t s, std::size_t t) { return sizes[s].value_units > sizes[t].value_units; });
  if (irregular_first(std::count_if(drafts.begin(), drafts.end(), irregular), std::ssize(drafts)))
    std::stable_partition(origin.begin(), origin.end(), [&](std::size_t s) { return irregular(drafts[s]); });
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
        sizes[static_cast<std::size_t>(s)] = analyse_slice<decltype(tag)>(
            a, static_cast<int>(input.value_bytes()),
            rows_of(shape, group, std::min<std::int64_t>(shape.groups_of_slice(), groups - s * shape.groups_of_slice())),
            group, drafts[static_cast<std::size_t>(s)]);
      }
    });
  });
  place(*packed, input, sizes, drafts, order);
  return packed;
}

/// Copies the rows of a CSR slice.
template <class T>
void fill_rows(const Matrix& a, ValuePointer from, const Rows& row, const PackedSlice& slice, PackedStorage& to) {
  auto* columns = reinterpret_cast<std::int32_t*>(to.indices.as<char>() + std::uint64_t{slice.indices} * kPackedUnit);
  T* values = reinterpret_cast<T*>(to.values.as<char>() + std::uint64_t{slice.values} * kPackedUnit);
  std::int32_t* offsets = to.deltas.as<std::int32_t>() + slice.deltas;
  std::int32_t out = 0;
  const int rows = to.shape.block, all = to.shape.groups_of_slice() * rows;
  for (int i = 0; i < all; ++i) {
    offsets[i] = out;
    const std::int64_t r =
        static_cast<std::size_t>(i / rows) < row.size() ? row[static_cast<std::size_t>(i / rows)] + i % rows : -1;
    if (r < 0 || r >= a.rows) continue;
    for (std::int64_t k = a.offset(r); k < a.offset(r + 1); ++k, ++out) {
      values[out] = static_cast<T>(from[k]);
      columns[out] = static_cast<std::int32_t>(a.col_idx[k]);
    }
  }
  offsets[all] = out;
}

template <class T, class S>
void fill_slots(const Matrix& a, ValuePointer from, const Rows& row, const PackedSlice& slice, PackedStorage& to) {
  constexpr int V = S::template kInterleaved<T>;
  const SlotCounts<S> counts(slice);
  std::int32_t* deltas = to.deltas.as<std::int32_t>() + slice.deltas;
  char* narrow = to.indices.as<char>() + std::uint64_t{slice.indices} * kPackedUnit;
  auto* full = reinterpret_cast<std::int32_t*>(narrow + counts.narrow_bytes());
  T* values = reinterpret_cast<T*>(to.values.as<char>() + std::uint64_t{slice.values} * kPackedUnit);
  std::uint32_t filled[kPackedSlotKinds] = {0, 0, 0};
  for_each_slot<S>(a, row, [&](const auto& slot, const auto& start, auto& readers) {
    const std::uint32_t k = filled[slot.kind]++, n = counts.of[slot.kind];
    T* out = values + counts.values(slot.kind);
    for (int i = 0; i < S::kIndices; ++i) {
      const auto g = static_cast<std::size_t>(i / S::kPieces), p = static_cast<std::size_t>(i % S::kPieces);
      const std::int64_t first = g < row.size() ? start[g][p] : -1, column = first >= 0 ? first : slot.base;
      if (first >= 0)
        readers[g].take(first, [&](int j, int r, std::int64_t at) {
          if (at >= 0)
            out[interleaved<V>(k, static_cast<std::uint32_t>(S::value_of(i, j, r)), S::kValues, n)] =
                static_cast<T>(from[at]);
        });
      const auto item = static_cast<std::uint32_t>(i);
      if (slot.kind == kFullSlot) full[interleaved<V>(k, item, S::kIndices, n)] = static_cast<std::int32_t>(column);
      if (slot.kind == kNarrowSlot) {
        const NarrowPlace place = narrow_place<V>(k, item, S::kNarrowBytes, n);
        *reinterpret_cast<std::int32_t*>(narrow + place.base) = static_cast<std::int32_t>(slot.base);
        *reinterpret_cast<std::uint16_t*>(narrow + place.column) = static_cast<std::uint16_t>(column - slot.base);
      }
      if (slot.kind == kSharedSlot && g == 0)
        deltas[interleaved<V>(k, static_cast<std::uint32_t>(p), S::kPieces, n)] = static_cast<std::int32_t>(slot.delta[p]);
    }
  });
}

template <class T, class S>
void fill_slice(const Matrix& a, ValuePointer from, std::int64_t s, PackedStorage& to) {
  const PackedSlice& slice = to.slice.as<PackedSlice>()[s];
  std::uint32_t group[S::kGroups];
  for (std::uint32_t g = 0; g < S::kGroups; ++g)
    group[g] = slice.consecutive ? slice.groups + g : to.order.as<std::uint32_t>()[slice.groups + g];
  const Rows row = rows_of(to.shape, group, slice.real);
  if (slice.csr) fill_rows<T>(a, from, row, slice, to);
  else fill_slots<T, S>(a, from, row, slice, to);
}

/// Sets the values of a slice to 0, and those between it and the next slice.
void clear_slice(const PackedStorage& packed, std::int64_t s) {
  const auto* slice = packed.slice.as<PackedSlice>();
  const std::int64_t begin = std::int64_t{slice[s].values} * kPackedUnit;
  const std::int64_t end = s + 1 < packed.slices ? std::int64_t{slice[s + 1].values} * kPackedUnit : packed.value_bytes;
  if (begin < end) std::memset(packed.values.as<char>() + begin, 0, static_cast<std::size_t>(end - begin));
}

/// All slices in the order of their windows. They are stored in the order in which they run, which may put the short rows of
/// all windows last; in that order no range of rows would be complete before the end.
std::vector<std::int64_t> by_window(const PackedStorage& packed) {
  const auto* slice = packed.slice.as<PackedSlice>();
  const std::int64_t window = window_of(packed.shape);
  const auto window_of_slice = [&](std::int64_t s) {
    const std::uint32_t at = slice[s].groups;
    return static_cast<std::size_t>((slice[s].consecutive ? at : packed.order.as<std::uint32_t>()[at]) / window);
  };
  std::vector<std::int64_t> next(static_cast<std::size_t>(packed.slices * packed.shape.groups_of_slice() / window) + 2, 0);
  for (std::int64_t s = 0; s < packed.slices; ++s) ++next[window_of_slice(s) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::int64_t> order(static_cast<std::size_t>(packed.slices));
  for (std::int64_t s = 0; s < packed.slices; ++s) order[static_cast<std::size_t>(next[window_of_slice(s)]++)] = s;
  return order;
}

/// Releases the rows of a slice: a call for each run of rows that follow each other.
void release_slice(const Matrix& a, const ConversionInput& input, const PackedStorage& packed, std::int64_t s) {
  const PackedSlice& slice = packed.slice.as<PackedSlice>()[s];
  const auto group = [&](std::int64_t g) {
    return std::int64_t{slice.consecutive ? slice.groups + static_cast<std::uint32_t>(g)
                                          : packed.order.as<std::uint32_t>()[slice.groups + static_cast<std::uint32_t>(g)]};
  };
  const auto offset = [&](std::int64_t first_of_group) {
    return a.offset(std::clamp<std::int64_t>(first_of_group * packed.shape.block - packed.shape.shift, 0, a.rows));
  };
  for (std::int64_t g = 0; g < slice.real;) {
    const std::int64_t first = group(g);
    std::int64_t last = first + 1;
    for (++g; g < slice.real && group(g) == last; ++g) ++last;
    input.release(offset(first), offset(last));
  }
}

/// The structure is written again with the same content when only values are new: host memory is not what is short here.
void fill_packed(PackedStorage& packed, ConversionInput& input, bool structure) {
  const Matrix a = source_of(input.matrix());
  const bool releases = structure && input.releases();
  const std::vector<std::int64_t> order = releases ? by_window(packed) : std::vector<std::int64_t>();
  dispatch(packed.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_shape(packed.shape, [&](auto shape) {
      parallel_ranges(packed.slices, 32, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t s = releases ? order[static_cast<std::size_t>(i)] : i;
          if (structure) clear_slice(packed, s);
          fill_slice<T, decltype(shape)>(a, input.matrix().values.data(), s, packed);
          if (releases) release_slice(a, input, packed, s);
        }
      });
    });
  });
}

}  // namespace

const Builder host_builder{analyse, fill_packed};

}  // namespace shardmat::packed
