// CSR cut into tiles of equal work, where a nonzero and the end of a row count the same (the merge path of Merrill and
// Garland, "Merge-based Parallel Sparse Matrix-Vector Multiplication", SC'16), so that neither long rows nor many empty ones
// leave threads idle. Other than there, only whole tiles follow the path, found once when the plan is made; inside a tile
// the loads are coalesced, all of a thread's come before its gathers from x, and the products meet in shared memory, where
// short rows are added by one thread and long ones by a warp.
#include <algorithm>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/cuda/cache_hints.h"
#include "kernels/cuda/dot_sums.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/split_rows.h"
#include "kernels/formats/csr.h"

namespace shardmat {
namespace {

constexpr int kSerial = 16;  // products of a row that one thread adds alone
constexpr int kMaxBlock = 256;
constexpr int kMaxTile = kMaxBlock * 16;
constexpr int kBlocksPerSm = 4;  // leaves the registers to keep all loads of a thread in flight

/// Rows that end among the first t·tile_items items of the path, for every tile t and one behind the last.
template <class Offset>
__global__ void cut_path(std::int64_t rows, std::int64_t nnz, const Offset* __restrict__ row_ptr, int tile_items,
                         std::int64_t tiles, std::int64_t* __restrict__ tile_rows) {
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (tile > tiles) return;
  const std::int64_t item = min(tile * tile_items, rows + nnz);
  std::int64_t low = max(std::int64_t{0}, item - nnz), high = min(item, rows);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (row_ptr[middle + 1] < item - middle) low = middle + 1;
    else high = middle;
  }
  tile_rows[tile] = low;
}

/// The rows that end in another tile than they begin in. A row's first nonzero is item row + row_ptr[row] of the path.
template <class Offset>
__global__ void find_split_rows(const Offset* __restrict__ row_ptr, int tile_items, std::int64_t tiles,
                                const std::int64_t* __restrict__ tile_rows, cuda::SplitRow* __restrict__ split) {
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (tile >= tiles) return;
  const std::int64_t row = tile_rows[tile];
  const bool ends = tile_rows[tile + 1] > row && row_ptr[row] < tile * tile_items - row;
  split[tile] = ends ? cuda::SplitRow{row, (row + row_ptr[row]) / tile_items} : cuda::SplitRow{-1, 0};
}

/// Products of one tile, written to shared memory in the order of the nonzeros.
template <int kItems, int kHint, class T>
__device__ void multiply_tile(int count, const std::int32_t* __restrict__ col_idx, const T* __restrict__ values,
                              const T* __restrict__ x, T* products) {
  const cuda::Loads<kHint> loads;
  std::int32_t column[kItems];
  T value[kItems];
#pragma unroll
  for (int u = 0; u < kItems; ++u) {
    const int k = u * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
    column[u] = k < count ? loads.matrix(col_idx + k) : -1;
    value[u] = k < count ? loads.matrix(values + k) : T(0);
  }
#pragma unroll
  for (int u = 0; u < kItems; ++u)
    if (column[u] >= 0) value[u] *= loads.x(x + column[u]);
#pragma unroll
  for (int u = 0; u < kItems; ++u) {
    const int k = u * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
    if (k < count) products[k] = value[u];
  }
}

/// A part of a row in a tile: products begin … end - 1; `row` counts from the tile's first.
struct Part {
  int row, begin, end;
};

template <class T, class Offset, int kItems, int kHint, class Dot>
__global__ void __launch_bounds__(kMaxBlock, kBlocksPerSm)
    csr_balanced(std::int64_t rows, std::int64_t nnz, const Offset* __restrict__ row_ptr,
                 const std::int32_t* __restrict__ col_idx, const T* __restrict__ values,
                 const std::int64_t* __restrict__ tile_rows, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y,
                 T* __restrict__ head, T* __restrict__ tail, Dot dot) {
  cuda::DotSum<Dot> dot_sum(dot);
  extern __shared__ __align__(16) unsigned char shared[];
  T* products = reinterpret_cast<T*>(shared);
  __shared__ Part long_parts[kMaxTile / kSerial];
  __shared__ int long_count;
  if (threadIdx.x == 0) long_count = 0;

  const std::int64_t tile = blockIdx.x, tile_items = std::int64_t{kItems} * blockDim.x;
  const std::int64_t first_row = tile_rows[tile], last_row = tile_rows[tile + 1];
  const std::int64_t begin = tile * tile_items - first_row, end = min((tile + 1) * tile_items, rows + nnz) - last_row;
  const int ended_rows = static_cast<int>(last_row - first_row), count = static_cast<int>(end - begin);
  const bool continued = row_ptr[first_row] < begin;  // by this tile's first row
  // The part behind the last row's that ends here begins a row or belongs to one that is all of this tile; it may be empty.
  const auto part_of = [&](int row) {
    const std::int64_t from = max(static_cast<std::int64_t>(row_ptr[first_row + row]), begin);
    const std::int64_t to = row < ended_rows ? static_cast<std::int64_t>(row_ptr[first_row + row + 1]) : end;
    return Part{row, static_cast<int>(from - begin), static_cast<int>(to - begin)};
  };
  const auto finish = [&](int row, T sum, cuda::DotSum<Dot>& dots) {
    if (row == ended_rows) {
      tail[tile] = sum;
    } else if (row == 0 && continued) {
      head[tile] = sum;
    } else {
      const T of_row = beta == T(0) ? alpha * sum : alpha * sum + beta * y[first_row + row];
      y[first_row + row] = of_row;
      dots.add(first_row + row, of_row);
    }
  };

  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  Part part = thread <= ended_rows ? part_of(thread) : Part{};  // loaded while the products are under way
  multiply_tile<kItems, kHint>(count, col_idx + begin, values + begin, x, products);
  __syncthreads();
  for (int row = thread; row <= ended_rows; row += threads) {
    if (row != thread) part = part_of(row);
    if (part.end - part.begin > kSerial) {
      long_parts[atomicAdd(&long_count, 1)] = part;  // in any order: each is added alone, and dot products are put in order
    } else {
      T sum = 0;
      for (int k = part.begin; k < part.end; ++k) sum += products[k];
      finish(row, sum, dot_sum);
    }
  }
  __syncthreads();
  constexpr bool kSums = cuda::DotSum<Dot>::kSums;
  __shared__ double long_dots[kSums ? kMaxTile / kSerial : 1];  // by rows
  for (int i = thread / 32; i < long_count; i += threads / 32) {
    T sum = 0;
    for (int k = long_parts[i].begin + thread % 32; k < long_parts[i].end; k += 32) sum += products[k];
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    cuda::DotSum<Dot> of_part(dot);
    if (thread % 32 == 0) finish(long_parts[i].row, sum, of_part);
    if constexpr (kSums) {
      int place = 0;  // among the rows
      for (int j = thread % 32; j < long_count; j += 32) place += long_parts[j].row < long_parts[i].row;
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) place += __shfl_xor_sync(0xffffffffu, place, offset);
      if (thread % 32 == 0) long_dots[place] = of_part.sum;
    }
  }
  if constexpr (kSums) {
    __syncthreads();
    for (int i = thread; i < long_count; i += threads) dot_sum.sum += long_dots[i];
  }
  cuda::leave_dot_part(dot_sum, tile);
}

template <class T, class Offset, class Dot>
using Instance = decltype(&csr_balanced<T, Offset, 4, 0, Dot>);

template <class T, class Offset, class Dot, int kHint>
Instance<T, Offset, Dot> instance_of_items(int items) {
  switch (items) {
    case 4:
      return csr_balanced<T, Offset, 4, kHint, Dot>;
    case 8:
      return csr_balanced<T, Offset, 8, kHint, Dot>;
    case 16:
      return csr_balanced<T, Offset, 16, kHint, Dot>;
    default:
      return nullptr;
  }
}

/// The instance for a policy, or null.
template <class T, class Offset, class Dot>
Instance<T, Offset, Dot> instance(int items, int hint) {
  switch (hint) {
    case cuda::kNoHint:
      return instance_of_items<T, Offset, Dot, cuda::kNoHint>(items);
    case cuda::kKeepX:
      return instance_of_items<T, Offset, Dot, cuda::kKeepX>(items);
    default:
      return nullptr;
  }
}

class CsrBalancedPlan final : public Plan {
 public:
  CsrBalancedPlan(std::shared_ptr<CsrStorage> a, int items, int hint, int block_size, Stream& stream)
      : Plan(a), a_(std::move(a)), items_(items), hint_(hint), block_size_(block_size) {
    const std::int64_t tile_items = std::int64_t{items} * block_size;
    const std::int64_t tiles = a_->rows == 0 ? 0 : (a_->rows + a_->nnz + tile_items - 1) / tile_items;
    split_ = cuda::SplitRows(a_->device, tiles, a_->type);
    tile_rows_ = Buffer(a_->device, static_cast<std::size_t>(tiles + 1) * sizeof(std::int64_t));
    a_->wide_offsets ? cut<std::int64_t>(stream) : cut<std::int32_t>(stream);
  }

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run<T>(alpha, x, beta, y, NoDot{}, stream);
    });
  }

  std::int64_t dot_parts() const override { return split_.tiles + cuda::finish_parts(split_, 0); }
  void multiply_with_dot(const void* x, const void* own, void* y, double* parts, Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run<T>(1, x, 0, y, DotInto<T>{static_cast<const T*>(own), parts}, stream);
    });
  }

  std::int64_t extra_bytes() const override { return static_cast<std::int64_t>(tile_rows_.bytes()) + split_.bytes(); }

 private:
  template <class Offset>
  void cut(Stream& stream) {
    if (split_.tiles == 0) return;
    const auto* row_ptr = a_->row_ptr.as<Offset>();
    const int tile_items = items_ * block_size_;
    cuda::launch(cut_path<Offset>, split_.tiles + 1, 256, stream, a_->rows, a_->nnz, row_ptr, tile_items, split_.tiles,
                 tile_rows_.as<std::int64_t>());
    cuda::launch(find_split_rows<Offset>, split_.tiles, 256, stream, row_ptr, tile_items, split_.tiles,
                 tile_rows_.as<std::int64_t>(), split_.rows.as<cuda::SplitRow>());
  }

  template <class T, class Dot>
  void run(double alpha, const void* x, double beta, void* y, Dot dot, Stream& stream) const {
    dispatch_offset(a_->wide_offsets, [&]<class Offset>(TypeTag<Offset>) {
      cuda::launch_blocks(instance<T, Offset, Dot>(items_, hint_), split_.tiles, block_size_,
                          static_cast<std::size_t>(items_ * block_size_) * sizeof(T), stream, a_->rows, a_->nnz,
                          a_->row_ptr.as<Offset>(), a_->col_idx.as<std::int32_t>(), a_->values.as<T>(),
                          tile_rows_.as<std::int64_t>(), static_cast<T>(alpha), static_cast<const T*>(x),
                          static_cast<T>(beta), static_cast<T*>(y), split_.head.as<T>(), split_.tail.as<T>(), dot);
    });
    if constexpr (!std::is_same_v<Dot, NoDot>) dot.parts += split_.tiles;
    cuda::finish_rows<T>(split_, nullptr, 0, static_cast<T>(alpha), static_cast<T>(beta), static_cast<T*>(y), stream, dot);
  }

  std::shared_ptr<CsrStorage> a_;
  int items_, hint_, block_size_;
  Buffer tile_rows_;  ///< first row of each tile, and the number of rows behind the last
  cuda::SplitRows split_;
};

}  // namespace

std::unique_ptr<Plan> make_csr_balanced(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream) {
  const int items = policy.at("items"), hint = policy.at("hint"), block_size = policy.at("block_size");
  if (instance<float, std::int32_t, NoDot>(items, hint) == nullptr)
    throw Error(ErrorKind::usage, "csr_balanced: items must be 4, 8 or 16, hint 0 (none) or 2 (keep x in the caches)");
  if (block_size != 128 && block_size != 256) throw Error(ErrorKind::usage, "csr_balanced: block_size must be 128 or 256");
  return std::make_unique<CsrBalancedPlan>(std::static_pointer_cast<CsrStorage>(std::move(storage)), items, hint, block_size,
                                           stream);
}

}  // namespace shardmat
