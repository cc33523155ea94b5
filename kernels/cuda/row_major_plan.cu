#include "kernels/cuda/row_major_plan.h"

#include <cstdint>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"

namespace shardmat::cuda {
namespace {

constexpr int kTile = 32, kRowsOfBlock = 8;

/// Where entry (i, j) of a dense matrix lies: i·row + j·column.
struct Strides {
  std::int64_t row, column;
};

Strides strides(DenseOrder order, std::int64_t leading) {
  return order == DenseOrder::row_major ? Strides{leading, 1} : Strides{1, leading};
}

/// to = alpha·from + beta·to for a rows × columns matrix, through tiles in shared memory so that both sides are read and
/// written along their own order. Columns of `from` behind `columns` count as zeros, up to to_columns.
template <class T>
__global__ void __launch_bounds__(kTile* kRowsOfBlock)
    copy_dense(std::int64_t rows, int columns, int to_columns, T alpha, const T* __restrict__ from, Strides from_at, T beta,
               T* __restrict__ to, Strides to_at) {
  __shared__ T tile[kTile][kTile + 1];  // [row][column]
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const int first_column = static_cast<int>(blockIdx.y) * kTile;
  const int fast = static_cast<int>(threadIdx.x) % kTile, slow = static_cast<int>(threadIdx.x) / kTile;
  for (int s = slow; s < kTile; s += kRowsOfBlock) {
    const int i = from_at.row == 1 ? fast : s, j = from_at.row == 1 ? s : fast;
    const std::int64_t row = first_row + i;
    const int column = first_column + j;
    tile[i][j] = row < rows && column < columns ? from[row * from_at.row + column * from_at.column] : T(0);
  }
  __syncthreads();
  for (int s = slow; s < kTile; s += kRowsOfBlock) {
    const int i = to_at.row == 1 ? fast : s, j = to_at.row == 1 ? s : fast;
    const std::int64_t row = first_row + i;
    const int column = first_column + j;
    if (row >= rows || column >= to_columns) continue;
    T& out = to[row * to_at.row + column * to_at.column];
    out = beta == T(0) ? alpha * tile[i][j] : alpha * tile[i][j] + beta * out;
  }
}

template <class T>
void copy(std::int64_t rows, int columns, int to_columns, double alpha, const void* from, Strides from_at, double beta,
          void* to, Strides to_at, Stream& stream) {
  const std::int64_t blocks = (rows + kTile - 1) / kTile;
  if (blocks == 0) return;
  if (blocks > std::numeric_limits<std::int32_t>::max())
    throw Error(ErrorKind::resources, "a dense matrix has too many rows for one GPU; use more");
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>((to_columns + kTile - 1) / kTile));
  copy_dense<T><<<grid, kTile * kRowsOfBlock, 0, native(stream)>>>(rows, columns, to_columns, static_cast<T>(alpha),
                                                                  static_cast<const T*>(from), from_at,
                                                                  static_cast<T>(beta), static_cast<T*>(to), to_at);
  SHARDMAT_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

DenseCopies::DenseCopies(const Storage& storage, const RightHandSides& rhs)
    : device_(storage.device), type_(storage.type), rows_(storage.rows), cols_(storage.cols), rhs_(rhs) {
  const std::int64_t width = dense::kWideBytes / static_cast<std::int64_t>(size_of(type_));
  columns_ = static_cast<int>((rhs.count + width - 1) / width * width);
  if (rhs.count % width != 0 || rhs.x != DenseOrder::row_major) make(of_x_, cols_);
  if (rhs.count % width != 0 || rhs.y != DenseOrder::row_major) make(of_y_, rows_);
}

bool DenseCopies::in_place(const void* data, std::int64_t leading, DenseOrder order) const {
  const std::int64_t bytes = leading * static_cast<std::int64_t>(size_of(type_));
  return order == DenseOrder::row_major && rhs_.count == columns_ && bytes % dense::kWideBytes == 0 &&
         bytes <= std::numeric_limits<std::int32_t>::max() && reinterpret_cast<std::uintptr_t>(data) % dense::kWideBytes == 0;
}

void* DenseCopies::make(Buffer& buffer, std::int64_t rows) const {
  const std::size_t bytes = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns_) * size_of(type_);
  if (buffer.bytes() < bytes) buffer = Buffer(device_, bytes);
  return buffer.data();
}

const void* DenseCopies::copy_in(const void* x, std::int64_t ldx, Stream& stream) {
  void* to = make(of_x_, cols_);
  dispatch(type_, [&](auto tag) {
    copy<typename decltype(tag)::type>(cols_, static_cast<int>(rhs_.count), columns_, 1, x, strides(rhs_.x, ldx), 0, to,
                                       {columns_, 1}, stream);
  });
  return to;
}

void DenseCopies::copy_out(double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) {
  dispatch(type_, [&](auto tag) {
    const int columns = static_cast<int>(rhs_.count);
    copy<typename decltype(tag)::type>(rows_, columns, columns, alpha, of_y_.data(), {columns_, 1}, beta, y,
                                       strides(rhs_.y, ldy), stream);
  });
}

}  // namespace shardmat::cuda
