// Conversion to packed rows on host threads; the same pieces, slots and arrays as on the device, to the byte.
#include <algorithm>
#include <array>
#include <limits>
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

struct Slot {
  PackedSlotKind kind;
  std::int64_t base, delta;
};

using Starts = std::array<std::int64_t, kPackedLanes>;
using Rows = std::array<std::int64_t, kPackedLanes>;  ///< first row of each lane's group

Slot classify(const Starts& start, const Rows& row, int real) {
  std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = -1;
  bool shared = true;
  for (std::size_t l = 0; l < static_cast<std::size_t>(real); ++l) {
    if (start[l] >= 0) low = std::min(low, start[l]), high = std::max(high, start[l]);
    shared = shared && start[l] >= 0 && start[l] - row[l] == start[0] - row[0];
  }
  return {shared ? kSharedSlot : high - low <= 0xffff ? kNarrowSlot : kFullSlot, low, start[0] - row[0]};
}

/// Visits the slots of one width of a slice of `real` groups: visit(slot, starts, readers) must consume the pieces.
template <int B, int W, bool Singles, class Visit>
void for_each_slot(const Matrix& a, const Rows& row, int real, const Visit& visit) {
  std::vector<PieceReader<B, W, std::int64_t>> readers;
  for (int l = 0; l < real; ++l) readers.emplace_back(a, row[static_cast<std::size_t>(l)]);
  while (true) {
    Starts start;
    start.fill(-1);
    bool any = false;
    for (std::size_t l = 0; l < readers.size(); ++l) {
      start[l] = Singles ? readers[l].find_single() : readers[l].find_piece();
      any = any || start[l] >= 0;
    }
    if (!any) return;
    visit(classify(start, row, real), start, readers);
  }
}

/// Counts the slots of a slice and hashes its deltas.
template <int B, int W>
SliceCounts count_slots(const Matrix& a, const Rows& row, int real, std::uint64_t (&hash)[2]) {
  SliceCounts counts;
  const auto count = [&](auto width, std::uint32_t* slots) {
    return [&hash, slots, width](const Slot& slot, const Starts& start, auto& readers) {
      ++slots[slot.kind];
      if (slot.kind == kSharedSlot) fold_delta(hash, static_cast<std::int32_t>(slot.delta));
      for (std::size_t l = 0; l < readers.size(); ++l)
        if (start[l] >= 0) readers[l].template skip<width>(start[l]);
    };
  };
  for_each_slot<B, W, false>(a, row, real, count(std::integral_constant<int, W>{}, counts.pieces));
  if constexpr (B == 1 && W > 1) {
    fold_delta(hash, -1);
    for_each_slot<B, W, true>(a, row, real, count(std::integral_constant<int, 1>{}, counts.singles));
  }
  return counts;
}

HostVector<std::uint32_t> order_groups(const Matrix& a, const PackedShape& shape, std::int64_t groups) {
  HostVector<std::uint64_t> keys(static_cast<std::size_t>(groups));
  HostVector<std::uint32_t> order(static_cast<std::size_t>(groups));
  with_shape(shape, [&](auto rows, auto width) {
    constexpr int B = rows, W = width;
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

/// The groups of slice s in `order`, and how many there are.
template <int B>
int rows_of(std::int64_t s, const PackedShape& shape, const std::uint32_t* group, std::int64_t groups, Rows& row) {
  const int real = static_cast<int>(std::min<std::int64_t>(kPackedLanes, groups - s * kPackedLanes));
  for (int l = 0; l < real; ++l) row[static_cast<std::size_t>(l)] = static_cast<std::int64_t>(group[l]) * B - shape.shift;
  return real;
}

template <int B, int W>
SliceSizes analyse_slice(const Matrix& a, const PackedShape& shape, int value_bytes, std::int64_t s, std::int64_t groups,
                         const std::uint32_t* group, PackedSlice& slice) {
  Rows row;
  const int real = rows_of<B>(s, shape, group, groups, row);
  std::uint64_t hash[2] = {1, 2}, nnz = 0;
  const SliceCounts counts = count_slots<B, W>(a, row, real, hash);
  bool consecutive = true;
  for (int l = 0; l < real; ++l) {
    const std::int64_t first = row[static_cast<std::size_t>(l)];
    nnz += static_cast<std::uint64_t>(a.offset(std::min(first + B, a.rows)) - a.offset(std::max<std::int64_t>(first, 0)));
    consecutive = consecutive && group[l] == group[0] + static_cast<std::uint32_t>(l);
  }
  const SliceSizes size = slice_sizes(counts, shape, value_bytes, nnz, consecutive, hash);
  slice = {};
  for (int k = 0; k < kPackedSlotKinds && !size.csr; ++k) {
    slice.pieces[k] = static_cast<std::uint16_t>(counts.pieces[k]);
    slice.singles[k] = static_cast<std::uint16_t>(counts.singles[k]);
  }
  slice.consecutive = consecutive, slice.csr = size.csr, slice.groups = group[0];
  return size;
}

/// Gives every slice its place in the arrays; slices with equal deltas share them.
void place(PackedStorage& packed, const ConversionInput& input, const std::vector<SliceSizes>& sizes,
           const HostVector<std::uint32_t>& order) {
  auto* slice = packed.slice.as<PackedSlice>();
  std::uint64_t values = 0, indices = 0, deltas = 0, listed = 0;
  std::unordered_map<std::uint64_t, std::size_t> first_with;
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    const SliceSizes& size = sizes[s];
    slice[s].values = static_cast<std::uint32_t>(values), slice[s].indices = static_cast<std::uint32_t>(indices);
    std::size_t owner = s;
    if (size.hash[0] != 0) {
      const std::size_t first = first_with.emplace(size.hash[0], s).first->second;
      if (sizes[first].hash[1] == size.hash[1]) owner = first;
    }
    slice[s].deltas = owner == s ? static_cast<std::uint32_t>(deltas) : slice[owner].deltas;
    if (owner == s) deltas += size.deltas;
    if (size.order > 0) slice[s].groups = static_cast<std::uint32_t>(listed);
    values += size.value_units, indices += size.index_units, listed += size.order;
  }
  packed.set_sizes(input, values, indices, deltas, listed);
  packed.order = Buffer(packed.device, static_cast<std::size_t>(packed.order_bytes));
  for (std::size_t s = 0; s < sizes.size(); ++s)
    for (std::size_t l = 0; l < sizes[s].order; ++l)
      packed.order.as<std::uint32_t>()[slice[s].groups + l] = order[std::min(s * kPackedLanes + l, order.size() - 1)];
}

std::shared_ptr<PackedStorage> analyse(ConversionInput& input, const PackedShape& shape) {
  const Matrix a = source_of(input.matrix());
  auto packed = std::make_shared<PackedStorage>();
  packed->shape = shape;
  const std::int64_t groups = shape.groups(a.rows), count = packed->slices = (groups + kPackedLanes - 1) / kPackedLanes;
  const HostVector<std::uint32_t> order = order_groups(a, shape, groups);
  packed->slice = Buffer(input.stream().device(), static_cast<std::size_t>(count) * sizeof(PackedSlice));
  std::vector<SliceSizes> sizes(static_cast<std::size_t>(count));
  with_shape(shape, [&](auto rows, auto width) {
    constexpr int B = rows, W = width;
    parallel_ranges(count, 32, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t s = begin; s < end; ++s)
        sizes[static_cast<std::size_t>(s)] =
            analyse_slice<B, W>(a, shape, static_cast<int>(input.value_bytes()), s, groups, order.data() + s * kPackedLanes,
                                packed->slice.as<PackedSlice>()[s]);
    });
  });
  place(*packed, input, sizes, order);
  return packed;
}

/// Copies the rows of a CSR slice.
template <class T, int B>
void fill_rows(const Matrix& a, const double* from, const Rows& row, int real, const PackedSlice& slice, PackedStorage& to) {
  auto* columns = reinterpret_cast<std::int32_t*>(to.indices.as<char>() + std::uint64_t{slice.indices} * kPackedUnit);
  T* values = reinterpret_cast<T*>(to.values.as<char>() + std::uint64_t{slice.values} * kPackedUnit);
  std::int32_t* offsets = to.deltas.as<std::int32_t>() + slice.deltas;
  std::int32_t out = 0;
  for (int i = 0; i < kPackedLanes * B; ++i) {
    offsets[i] = out;
    const std::int64_t r = i / B < real ? row[static_cast<std::size_t>(i / B)] + i % B : -1;
    if (r < 0 || r >= a.rows) continue;
    for (std::int64_t k = a.offset(r); k < a.offset(r + 1); ++k, ++out) {
      values[out] = static_cast<T>(from[k]);
      columns[out] = static_cast<std::int32_t>(a.col_idx[k]);
    }
  }
  offsets[kPackedLanes * B] = out;
}

template <class T, int B, int W, bool Singles>
void fill_slots(const Matrix& a, const double* from, const Rows& row, int real, const std::uint16_t* slots, std::int32_t* deltas,
                char* indices, T* values) {
  constexpr int kWidth = Singles ? 1 : W;
  int filled[kPackedSlotKinds] = {0, 0, 0};
  for_each_slot<B, W, Singles>(a, row, real, [&](const Slot& slot, const Starts& start, auto& readers) {
    const int position = filled[slot.kind]++;
    const int before = slot.kind == kSharedSlot ? 0 : slot.kind == kNarrowSlot ? slots[0] : slots[0] + slots[1];
    T* out = values + static_cast<std::int64_t>(before + position) * (kWidth * B * kPackedLanes);
    std::fill_n(out, kWidth * B * kPackedLanes, T(0));
    if (slot.kind == kSharedSlot) deltas[position] = static_cast<std::int32_t>(slot.delta);
    if (slot.kind == kNarrowSlot) deltas[slots[0] + position] = static_cast<std::int32_t>(slot.base);
    for (int l = 0; l < kPackedLanes; ++l) {
      const std::int64_t first = l < real ? start[static_cast<std::size_t>(l)] : -1, column = first >= 0 ? first : slot.base;
      if (first >= 0)
        readers[static_cast<std::size_t>(l)].template take<kWidth>(first, [&](int j, int r, std::int64_t k) {
          if (k >= 0) out[(j * B + r) * kPackedLanes + l] = static_cast<T>(from[k]);
        });
      if (slot.kind == kNarrowSlot)
        reinterpret_cast<std::uint16_t*>(indices)[position * kPackedLanes + l] = static_cast<std::uint16_t>(column - slot.base);
      if (slot.kind == kFullSlot)
        reinterpret_cast<std::int32_t*>(indices + slots[1] * (2 * kPackedLanes))[position * kPackedLanes + l] =
            static_cast<std::int32_t>(column);
    }
  });
}

template <class T, int B, int W>
void fill_slice(const Matrix& a, const double* from, std::int64_t s, std::int64_t groups, PackedStorage& to) {
  const PackedSlice& slice = to.slice.as<PackedSlice>()[s];
  std::uint32_t group[kPackedLanes];
  for (std::uint32_t l = 0; l < kPackedLanes; ++l)
    group[l] = slice.consecutive ? slice.groups + l : to.order.as<std::uint32_t>()[slice.groups + l];
  Rows row;
  const int real = rows_of<B>(s, to.shape, group, groups, row);
  if (slice.csr) return fill_rows<T, B>(a, from, row, real, slice, to);
  std::int32_t* deltas = to.deltas.as<std::int32_t>() + slice.deltas;
  char* indices = to.indices.as<char>() + std::uint64_t{slice.indices} * kPackedUnit;
  T* values = reinterpret_cast<T*>(to.values.as<char>() + std::uint64_t{slice.values} * kPackedUnit);
  fill_slots<T, B, W, false>(a, from, row, real, slice.pieces, deltas, indices, values);
  if constexpr (B == 1 && W > 1) {
    SliceCounts counts;
    std::copy_n(slice.pieces, kPackedSlotKinds, counts.pieces);
    fill_slots<T, B, W, true>(a, from, row, real, slice.singles, deltas + counts.piece_deltas(),
                              indices + 2 * counts.piece_indices(), values + counts.values(to.shape));
  }
}

/// The structure is written again with the same content when only values are new: host memory is not what is short here.
void fill_packed(PackedStorage& packed, ConversionInput& input, bool) {
  const Matrix a = source_of(input.matrix());
  const std::int64_t groups = packed.shape.groups(packed.rows);
  dispatch(packed.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_shape(packed.shape, [&](auto rows, auto width) {
      constexpr int B = rows, W = width;
      parallel_ranges(packed.slices, 32, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t s = begin; s < end; ++s) fill_slice<T, B, W>(a, input.matrix().values.data(), s, groups, packed);
      });
    });
  });
}

}  // namespace

const Builder host_builder{analyse, fill_packed};

}  // namespace shardmat::packed
