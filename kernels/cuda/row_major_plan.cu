#include "kernels/cuda/row_major_plan.h"

#include <type_traits>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cuda/launch.h"

namespace shardmat::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kTile = 1024, kMostColumns = 32;  ///< entries of a tile, and its columns

/// e / divisor for e < kTile and divisors up to kTile, by a product.
class Quotient {
 public:
  __device__ explicit Quotient(int divisor) : factor_((1u << kShift) / static_cast<unsigned>(divisor) + 1) {}
  __device__ int operator()(int e) const { return static_cast<int>(static_cast<unsigned>(e) * factor_ >> kShift); }

 private:
  static constexpr int kShift = 21;
  static_assert(kTile * kTile < 1 << kShift && kTile <= 1u << (32 - kShift));
  unsigned factor_;
};

/// to = alpha·from + beta·to for a rows × columns matrix, through tiles in shared memory so that both sides are read and
/// written along their own order. Columns of `from` behind `columns` count as zeros, up to to_columns.
template <class T>
__global__ void __launch_bounds__(kBlock)
    copy_dense(std::int64_t rows, int columns, int to_columns, int tile_rows, int tile_columns, T alpha,
               const T* __restrict__ from, DenseStrides from_at, T beta, T* __restrict__ to, DenseStrides to_at) {
  __shared__ T tile[2 * kTile];  // a row and one entry more
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * tile_rows;
  const int first_column = static_cast<int>(blockIdx.y) * tile_columns;
  const auto for_entries = [&](bool along_rows, const auto& body) {
    const int length = along_rows ? tile_rows : tile_columns;
    const Quotient by_length(length);
    for (int e = static_cast<int>(threadIdx.x); e < tile_rows * tile_columns; e += kBlock) {
      const int line = by_length(e), place = e - line * length;
      along_rows ? body(place, line) : body(line, place);
    }
  };
  for_entries(from_at.row == 1, [&](int i, int j) {
    const std::int64_t row = first_row + i;
    const int column = first_column + j;
    tile[i * (tile_columns + 1) + j] =
        row < rows && column < columns ? from[row * from_at.row + column * from_at.column] : T(0);
  });
  __syncthreads();
  for_entries(to_at.row == 1, [&](int i, int j) {
    const std::int64_t row = first_row + i;
    const int column = first_column + j;
    if (row >= rows || column >= to_columns) return;
    T& out = to[row * to_at.row + column * to_at.column];
    const T value = static_cast<T>(alpha * tile[i * (tile_columns + 1) + j]);
    if constexpr (std::is_floating_point_v<T>)
      out = beta == T(0) ? value : fma(beta, out, value);  // rounded as kernels that write y themselves round
    else out = beta == T(0) ? value : static_cast<T>(value + beta * out);
  });
}

template <class T>
void copy(std::int64_t rows, int columns, int to_columns, double alpha, const void* from, DenseStrides from_at, double beta,
          void* to, DenseStrides to_at, Stream& stream) {
  const int tile_columns = std::min(to_columns, kMostColumns), tile_rows = kTile / tile_columns;
  launch_grid(copy_dense<T>, (rows + tile_rows - 1) / tile_rows, (to_columns + tile_columns - 1) / tile_columns, kBlock, 0,
              stream, rows, columns, to_columns, tile_rows, tile_columns, static_cast<T>(alpha), static_cast<const T*>(from),
              from_at, static_cast<T>(beta), static_cast<T*>(to), to_at);
}

}  // namespace

DenseCopies::DenseCopies(const Storage& storage, const RightHandSides& rhs, int width)
    : device_(storage.device),
      type_(storage.type),
      rows_(storage.rows),
      cols_(storage.cols),
      rhs_(rhs),
      width_(width),
      columns_(dense::padded_columns(rhs.count, width_)) {
  if (rhs.count != columns_ || rhs.x != DenseOrder::row_major) make(of_x_, cols_, size_of(type_));
  if (rhs.count != columns_ || rhs.y != DenseOrder::row_major) make(of_y_, rows_, size_of(sum_type(type_)));
}

bool DenseCopies::in_place(const void* data, std::int64_t leading, DenseOrder order, std::size_t value_bytes) const {
  const auto value = static_cast<std::int64_t>(value_bytes);
  return order == DenseOrder::row_major && rhs_.count == columns_ && leading % width_ == 0 &&
         leading * value <= std::numeric_limits<std::int32_t>::max() &&
         reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(width_ * value) == 0;
}

void* DenseCopies::make(Buffer& buffer, std::int64_t rows, std::size_t value_bytes) const {
  const std::size_t bytes = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns_) * value_bytes;
  if (buffer.bytes() < bytes) buffer = Buffer(device_, bytes);
  return buffer.data();
}

const void* DenseCopies::copy_in(const void* x, std::int64_t ldx, Stream& stream) {
  void* to = make(of_x_, cols_, size_of(type_));
  const auto copy_as = [&](auto tag) {
    copy<typename decltype(tag)::type>(cols_, static_cast<int>(rhs_.count), columns_, 1, x, strides(rhs_.x, ldx), 0, to,
                                       {columns_, 1}, stream);
  };
  is_half(type_) ? copy_as(TypeTag<std::uint16_t>{}) : dispatch(type_, copy_as);  // 16 bits are moved, not read
  return to;
}

void DenseCopies::copy_out(double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) {
  dispatch(sum_type(type_), [&](auto tag) {
    const int columns = static_cast<int>(rhs_.count);
    copy<typename decltype(tag)::type>(rows_, columns, columns, alpha, of_y_.data(), {columns_, 1}, beta, y,
                                       strides(rhs_.y, ldy), stream);
  });
}

}  // namespace shardmat::cuda
