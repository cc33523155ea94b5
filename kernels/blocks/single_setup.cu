// The set-up of products of single entries.
#include <algorithm>
#include <climits>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/blocks/setup.h"
#include "kernels/blocks/single_product.h"
#include "kernels/blocks/single_slices.h"

namespace shardmat::blocks {
namespace {

using namespace singles;

constexpr std::int64_t kMostEntries = 8192;  ///< of a row
constexpr int kWindow = 1024;                ///< rows that are sorted together
constexpr unsigned kAll = 0xffffffffu;
constexpr int kNoColumn = INT_MAX;
/// As in half_product.cu: the largest value of a slice or row lies in [2¹⁴, 2¹⁵) of its scale.
constexpr int kLargestExponent = 14;
/// Rows of a slice have one scale if the largest value of each is not smaller than the slice's by more than this power of 2:
/// f16 has all its bits over 2²⁹.
constexpr int kExponentsApart = 12;

struct Rows {
  std::int64_t count, slices;
  const std::int64_t* start;
  const std::int32_t* column;
  const double* value;
  const std::int64_t* diagonal;  ///< or null
  const std::int32_t* order;     ///< or null: as they come
};

/// A row of a lane, without its entry on the diagonal: read from the first entry to the last.
class Reader {
 public:
  /// REQUIRES: all lanes of a warp, and a slice that exists.
  __device__ Reader(const Rows& a, std::int64_t slice, int lane) : Reader(a, slice, lane, a.column, a.value) {}
  /// Reads these in place of the arrays of `a`.
  __device__ Reader(const Rows& a, std::int64_t slice, int lane, const std::int32_t* columns, const double* values)
      : columns_(columns), values_(values) {
    const std::int64_t at = slice * kLanes + lane;
    real_ = at < a.count;
    const std::int64_t place = real_ ? at : a.count - 1;
    row_ = a.order == nullptr ? static_cast<std::int32_t>(place) : a.order[place];
    at_ = a.start[row_], end_ = real_ ? a.start[row_ + 1] : at_;
    diagonal_ = a.diagonal == nullptr ? -1 : a.diagonal[row_];
    skip();
  }
  __device__ bool real() const { return real_; }
  __device__ std::int32_t row() const { return row_; }
  __device__ std::int64_t diagonal() const { return diagonal_; }
  __device__ int left() const { return static_cast<int>(end_ - at_) - (diagonal_ >= at_ && diagonal_ < end_ ? 1 : 0); }
  __device__ int column() const { return at_ < end_ ? columns_[at_] : kNoColumn; }
  /// Of a column that it has.
  __device__ double take() {
    const double value = values_[at_++];
    skip();
    return value;
  }
  __device__ void pass() {
    ++at_;
    skip();
  }

 private:
  __device__ void skip() {
    if (at_ == diagonal_) ++at_;
  }
  const std::int32_t* columns_;
  const double* values_;
  bool real_;
  std::int32_t row_;
  std::int64_t at_, end_, diagonal_;
};

__device__ int most_of_warp(int mine) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kAll, mine);
#else
  for (int other = kLanes / 2; other > 0; other /= 2) mine = max(mine, __shfl_xor_sync(kAll, mine, other));
  return mine;
#endif
}
__device__ int least_of_warp(int mine) { return -1 - most_of_warp(-1 - mine); }

/// The least difference from its row at which some row of the slice has its next entry; kNoColumn: none is left.
__device__ int next_delta(const Reader& reader) {
  const int column = reader.column();
  return least_of_warp(column == kNoColumn ? kNoColumn : column - reader.row());
}
__device__ bool has(const Reader& reader, int delta) {
  const int column = reader.column();
  return column != kNoColumn && column - reader.row() == delta;
}

__global__ void find_longest(std::int64_t count, const std::int64_t* start, unsigned long long* longest) {
  unsigned long long mine = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    mine = max(mine, static_cast<unsigned long long>(start[i + 1] - start[i]));
  for (int other = kLanes / 2; other > 0; other /= 2) mine = max(mine, __shfl_xor_sync(kAll, mine, other));
  if (threadIdx.x % kLanes == 0) atomicMax(longest, mine);
}

/// Slots of all slices with the rows as they come.
__global__ void count_slots(Rows a, unsigned long long* slots) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int longest = most_of_warp(i < a.count ? static_cast<int>(a.start[i + 1] - a.start[i]) : 0);
  if (threadIdx.x % kLanes == 0 && longest > 0) atomicAdd(slots, static_cast<unsigned long long>(longest) * kLanes);
}

/// By windows, then long rows first.
__global__ void key_rows(std::int64_t count, const std::int64_t* start, std::uint64_t* key) {
  constexpr std::int64_t kLongest = kMostEntries;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count)
    key[i] =
        static_cast<std::uint64_t>(i / kWindow) << 32 | static_cast<std::uint64_t>(kLongest - (start[i + 1] - start[i]));
}

/// Pairs and Columns of each slice; a warp has one.
__global__ void measure_slices(Rows a, std::int64_t* pairs, std::uint8_t* kinds) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, slice = thread / kLanes;
  if (slice >= a.slices) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const Reader first(a, slice, lane);
  const int longest = most_of_warp(first.left()), most_shared = longest + max(1, longest / 8);
  int shared = 0;
  if (a.diagonal != nullptr) {
    Reader reader(a, slice, lane);
    while (true) {
      const int delta = next_delta(reader);
      if (delta == kNoColumn) break;
      const std::int64_t column = std::int64_t{reader.row()} + delta;
      // Zeros are multiplied with entries of this rank alone: between them and those of others memory may hold anything.
      if (++shared > most_shared || !__all_sync(kAll, column >= 0 && column < a.count)) {
        shared = 0;
        break;
      }
      if (has(reader, delta)) reader.pass();
    }
  }
  bool narrow = true;
  if (shared == 0) {
    Reader reader(a, slice, lane);
    for (int n = 0; n < longest && narrow; ++n) {
      const int column = reader.column(), high = most_of_warp(column == kNoColumn ? 0 : column);
      narrow = high - least_of_warp(column) <= 0xffff;
      if (column != kNoColumn) reader.pass();
    }
  }
  if (lane != 0) return;
  pairs[slice] = ((shared > 0 ? shared : longest) + 1) / 2;
  kinds[slice] = static_cast<std::uint8_t>(shared > 0 ? Columns::shared : narrow ? Columns::narrow : Columns::wide);
}

/// Units of the columns of each slice; 0 where the slice before has the same. A warp a slice.
__global__ void measure_columns(Rows a, const std::int64_t* first_pair, const std::uint8_t* kinds,
                                std::int64_t* of_columns) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, slice = thread / kLanes;
  if (slice >= a.slices) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const auto kind = static_cast<Columns>(kinds[slice]);
  bool same = slice > 0 && kind == Columns::shared && kinds[slice - 1] == kinds[slice];
  if (same) {
    Reader here(a, slice, lane), before(a, slice - 1, lane);
    for (int delta = 0; same && delta != kNoColumn;) {
      delta = next_delta(here);
      same = next_delta(before) == delta;
      if (has(here, delta)) here.pass();
      if (has(before, delta)) before.pass();
    }
  }
  if (lane == 0) of_columns[slice] = same ? 0 : (first_pair[slice + 1] - first_pair[slice]) * units(kind);
}

__device__ void round_pair(float2& to, double first, double second, double) {
  to = {static_cast<float>(first), static_cast<float>(second)};
}
__device__ void round_pair(__half2& to, double first, double second, double scale) {
  to = __halves2half2(__double2half(first / scale), __double2half(second / scale));
}

template <class V>
struct Stored {
  Slice* slice;
  int2* column;  ///< null: they stay
  typename PairOf<V>::Type* value;
  float *own, *scale;  ///< or null
};

/// The exponent of the scale of values of this size; kNone: there are none.
constexpr int kNone = -10'000;
__device__ int exponent_of(int largest) { return largest == kNone ? 0 : max(-126, min(126, largest - kLargestExponent)); }

constexpr int kThreadsOfFill = 128;

/// Entries of the rows of a slice that lie one after another, in shared memory: its lanes read at places that are far apart,
/// and the L1 cache does not hold these for all warps.
struct Staged {
  static constexpr int kMost = 896;
  double value[kMost];
  std::int32_t column[kMost];
};

/// A warp a slice. `apart` counts slices whose rows need scales of their own.
template <class V>
__global__ void __launch_bounds__(kThreadsOfFill)
    fill(Rows a, const std::int64_t* first_pair, const std::int64_t* first_unit, const std::uint8_t* kinds,
         const double* modes, Stored<V> to, unsigned long long* apart) {
  constexpr bool kHalf = !std::is_same_v<V, float>;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, slice = thread / kLanes;
  if (slice >= a.slices) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  __shared__ Staged of_warps[kThreadsOfFill / kLanes];
  Staged& staged = of_warps[threadIdx.x / kLanes];
  const std::int32_t* columns = a.column;
  const double* values = a.value;
  if (a.order == nullptr) {
    const std::int64_t begin = a.start[slice * kLanes], end = a.start[min(a.count, (slice + 1) * kLanes)];
    if (end - begin <= Staged::kMost) {
      for (int k = lane; k < end - begin; k += kLanes)
        staged.value[k] = a.value[begin + k], staged.column[k] = a.column[begin + k];
      columns = staged.column - begin, values = staged.value - begin;
      __syncwarp();
    }
  }
  const int pairs = static_cast<int>(first_pair[slice + 1] - first_pair[slice]);
  const auto kind = static_cast<Columns>(kinds[slice]);
  const std::int64_t all_units = first_unit[slice + 1] - first_unit[slice],
                     unit = first_unit[slice] - (all_units == 0 ? pairs : 0);
  double scale = 1;
  bool together = true;
  if constexpr (kHalf) {
    double largest = 0;
    for (Reader reader(a, slice, lane, columns, values); reader.column() != kNoColumn;)
      largest = fmax(largest, fabs(reader.take()));
    const int mine = largest > 0 ? ilogb(largest) : kNone, most = most_of_warp(mine);
    together = __all_sync(kAll, mine == kNone || mine >= most - kExponentsApart);
    scale = ldexp(1.0, exponent_of(together ? most : mine));
    if (!together && lane == 0) atomicAdd(apart, 1ull);
  }
  Reader reader(a, slice, lane, columns, values);
  const std::int32_t i = reader.row();
  const bool real = reader.real();
  if (!together && real && to.scale != nullptr) to.scale[i] = static_cast<float>(scale);
  if (lane == 0) {
    const auto rows = static_cast<unsigned>(min(std::int64_t{kLanes}, a.count - slice * kLanes));
    to.slice[slice] = {static_cast<unsigned>(first_pair[slice]), static_cast<unsigned>(unit),
                       static_cast<unsigned>(pairs) | static_cast<unsigned>(kind) << 16 | rows << 18,
                       together ? static_cast<float>(scale) : 0.f};
  }
  double lost = 0;  // by rounding, from the product with the modes
  for (int p = 0; p < pairs; ++p) {
    double exact[2] = {0, 0};
    int column[2], base[2];
    for (int e = 0; e < 2; ++e) {
      if (kind == Columns::shared) {
        const int delta = next_delta(reader);  // the last one may be missing
        base[e] = delta == kNoColumn ? 0 : delta;
        column[e] = delta != kNoColumn && has(reader, delta) ? reader.column() : kNoColumn;
      } else {
        column[e] = reader.column();
        const int least = least_of_warp(column[e]);
        base[e] = least == kNoColumn ? 0 : least;
      }
      if (column[e] != kNoColumn) exact[e] = reader.take();
    }
    typename PairOf<V>::Type pair;
    round_pair(pair, exact[0], exact[1], scale);
    to.value[(first_pair[slice] + p) * kLanes + lane] = pair;
    if constexpr (kHalf) {
      const float2 rounded = widened(pair);
      const double of_pair[2] = {exact[0] - scale * static_cast<double>(rounded.x),
                                 exact[1] - scale * static_cast<double>(rounded.y)};
      for (int e = 0; e < 2; ++e)
        if (column[e] != kNoColumn) lost += modes == nullptr ? of_pair[e] : of_pair[e] * modes[column[e]];
    }
    if (to.column == nullptr || all_units == 0) continue;
    int2* const units_of = to.column + unit + p * units(kind);
    const int2 mine = {column[0] == kNoColumn ? base[0] : column[0], column[1] == kNoColumn ? base[1] : column[1]};
    if (kind == Columns::wide) {
      units_of[lane] = mine;
      continue;
    }
    if (lane == 0) units_of[0] = {base[0], base[1]};
    if (kind == Columns::narrow)
      reinterpret_cast<ushort2*>(units_of + 1)[lane] = {static_cast<unsigned short>(mine.x - base[0]),
                                                        static_cast<unsigned short>(mine.y - base[1])};
  }
  if (to.own == nullptr || !real) return;
  if (kHalf && modes != nullptr) lost = modes[i] == 0 ? 0 : lost / modes[i];
  to.own[i] = static_cast<float>((reader.diagonal() < 0 ? 0 : a.value[reader.diagonal()]) + lost);
}

/// What atomic functions of CUDA counted.
unsigned long long counted(const Buffer& counter, Stream& stream) {
  unsigned long long found = 0;
  copy_to_host(&found, counter.data(), sizeof found, stream);
  return found;
}
Buffer counter(Stream& stream) {
  Buffer made = array<unsigned long long>(1, stream);
  fill_bytes(made.data(), 0, made.bytes(), stream);
  return made;
}

Rows rows_of(const BlockRows& rows, const Buffer& diagonal, const Buffer& order) {
  return {rows.count,
          (rows.count + kLanes - 1) / kLanes,
          rows.start.as<std::int64_t>(),
          rows.column.as<std::int32_t>(),
          rows.value.as<double>(),
          diagonal.as<std::int64_t>(),
          order.as<std::int32_t>()};
}

}  // namespace

bool SingleProduct::takes(const BlockRows& rows, ValueType type, Stream& stream) {
  if (rows.block_entries() != 1 || rows.count == 0 || (type != ValueType::f32 && type != ValueType::f16)) return false;
  const Buffer longest = counter(stream);
  cuda::launch(find_longest, std::min<std::int64_t>(rows.count, 1 << 18), kThreads, stream, rows.count,
               rows.start.as<std::int64_t>(), longest.as<unsigned long long>());
  return counted(longest, stream) <= kMostEntries;
}

SingleProduct::SingleProduct(const BlockRows& rows, ValueType type, bool is_square, const Buffer* modes, Stream& stream)
    : type_(type), is_square_(is_square), count_(rows.count), slices_((rows.count + kLanes - 1) / kLanes) {
  if (modes != nullptr && type == ValueType::f16) {
    modes_ = Buffer(stream.device(), modes->bytes());
    copy_on_device(modes_.data(), modes->data(), modes->bytes(), stream);
  }
  if (pays_to_sort(rows, stream)) sort_rows(rows, stream);
  const Buffer diagonal = diagonals(rows, stream);
  const Rows a = rows_of(rows, diagonal, order_);
  pair_ = array<std::int64_t>(slices_ + 1, stream), unit_ = array<std::int64_t>(slices_ + 1, stream);
  kind_ = array<std::uint8_t>(slices_, stream), slice_ = array<Slice>(slices_, stream);
  cuda::launch(measure_slices, slices_ * kLanes, kThreads, stream, a, pair_.as<std::int64_t>(), kind_.as<std::uint8_t>());
  const std::int64_t pairs = sum_before(pair_.as<std::int64_t>(), slices_, stream);
  is_short_ = pairs <= kFewPairs * slices_;
  cuda::launch(measure_columns, slices_ * kLanes, kThreads, stream, a, pair_.as<std::int64_t>(), kind_.as<std::uint8_t>(),
               unit_.as<std::int64_t>());
  const std::int64_t all_units = sum_before(unit_.as<std::int64_t>(), slices_, stream);
  is_stencil_ = all_units < pairs;
  const std::int64_t values = 2 * pairs * kLanes * static_cast<std::int64_t>(size_of(type));
  require_memory(stream.device(), 8 * all_units + values + 4 * count_, "a level of multigrid");
  column_ = array<int2>(all_units + 1, stream);
  value_ = Buffer(stream.device(), static_cast<std::size_t>(values));
  if (is_square_) own_ = array<float>(count_, stream);
  fill(rows, diagonal, true, stream);
}

Buffer SingleProduct::diagonals(const BlockRows& rows, Stream& stream) const {
  return is_square_ ? diagonal_places(rows, stream) : Buffer();
}

/// Rows that come in order are read and written side by side; rows of one length need no padding.
bool SingleProduct::pays_to_sort(const BlockRows& rows, Stream& stream) const {
  const std::int64_t of_slot = static_cast<std::int64_t>(size_of(type_)) + 2, of_row = is_square_ ? 40 : 20;  // bytes
  const Buffer slots = counter(stream);
  cuda::launch(count_slots, slices_ * kLanes, kThreads, stream, rows_of(rows, {}, {}), slots.as<unsigned long long>());
  return (static_cast<std::int64_t>(counted(slots, stream)) - rows.blocks) * of_slot > of_row * count_;
}

void SingleProduct::sort_rows(const BlockRows& rows, Stream& stream) {
  const Buffer key = array<std::uint64_t>(count_, stream), sorted = array<std::uint64_t>(count_, stream);
  order_ = array<std::int32_t>(count_, stream);
  cuda::launch(key_rows, count_, kThreads, stream, count_, rows.start.as<std::int64_t>(), key.as<std::uint64_t>());
  const auto windows = static_cast<std::uint64_t>(count_ / kWindow);
  sort_by_key(key.as<std::uint64_t>(), count_, (windows + 1) << 32, sorted.as<std::uint64_t>(), order_.as<std::int32_t>(),
              stream);
}

void SingleProduct::fill(const BlockRows& rows, const Buffer& diagonal, bool with_columns, Stream& stream) {
  const Buffer apart = counter(stream);
  const auto run = [&]<class V>(V) {
    cuda::launch(blocks::fill<V>, slices_ * kLanes, kThreadsOfFill, stream, rows_of(rows, diagonal, order_),
                 pair_.as<std::int64_t>(), unit_.as<std::int64_t>(), kind_.as<std::uint8_t>(), modes_.as<double>(),
                 Stored<V>{slice_.as<Slice>(), with_columns ? column_.as<int2>() : nullptr,
                           value_.as<typename PairOf<V>::Type>(), own_.as<float>(), scale_.as<float>()},
                 apart.as<unsigned long long>());
  };
  if (type_ == ValueType::f32) {
    run(0.f);
  } else {
    run(__half());
    if (scale_.bytes() == 0 && counted(apart, stream) > 0) {
      require_memory(stream.device(), 4 * count_, "a level of multigrid");
      scale_ = array<float>(count_, stream);
      run(__half());
    }
  }
  stream.synchronize();
}

void SingleProduct::update(const BlockRows& rows, Stream& stream) { fill(rows, diagonals(rows, stream), false, stream); }

std::int64_t SingleProduct::bytes() const {
  std::int64_t bytes = 0;
  for (const Buffer* const one : {&modes_, &slice_, &order_, &pair_, &unit_, &kind_, &column_, &value_, &own_, &scale_})
    bytes += static_cast<std::int64_t>(one->bytes());
  return bytes;
}

}  // namespace shardmat::blocks
