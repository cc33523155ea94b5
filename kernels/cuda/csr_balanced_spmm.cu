// CSR with many right-hand sides, cut into tasks of about equal numbers of nonzeros: whole rows, or a piece of a long row. G
// lanes take a task and go through its nonzeros four at a time, whatever row they belong to, so that the loads of X do not
// wait for the ends of short rows; a bit per nonzero says where a row ends. The pieces of a long row are added in a fixed
// order by a second kernel.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_major_plan.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/csr_spmm.h"

namespace shardmat {
namespace {

using dense::Stretch;
using dense::Wide;

constexpr int kBlock = 256;
constexpr int kQuad = 4;              ///< nonzeros at once
constexpr int kPieceColumns = 128;    ///< for which sums of pieces are kept at once

struct Task {
  std::int64_t begin;  ///< first nonzero
  std::int32_t count;
  std::int32_t rank;   ///< of the first row among those that have nonzeros
  std::int32_t piece;  ///< number of the piece, or -1: whole rows
  std::int32_t unused = 0;
};
static_assert(sizeof(Task) == 24);

/// How the rows of a matrix fall to tasks.
struct Tasks {
  std::int64_t count = 0;
  std::int32_t long_rows = 0, pieces = 0;
  std::int64_t empty_rows = 0;
  Buffer task;         ///< Task
  Buffer row;          ///< int32: the rows that have nonzeros
  Buffer end;          ///< a byte for kQuad nonzeros: bit u set if nonzero u is the last of its row
  Buffer long_row;     ///< int32
  Buffer first_piece;  ///< int32: of every long row, and the number of pieces
  Buffer empty;        ///< int32: the rows that have none

  std::int64_t bytes() const {
    std::size_t sum = 0;
    for (const Buffer* b : {&task, &row, &end, &long_row, &first_piece, &empty}) sum += b->bytes();
    return static_cast<std::int64_t>(sum);
  }
};

template <class E>
Buffer on_device(const std::vector<E>& entries, Device device, Stream& stream) {
  Buffer buffer(device, entries.size() * sizeof(E));
  if (!entries.empty()) copy_to_device(buffer.data(), entries.data(), buffer.bytes(), stream);
  return buffer;
}

template <class Offset>
Tasks cut(const CsrStorage& a, std::int64_t size, Stream& stream) {
  std::vector<Offset> row_ptr(static_cast<std::size_t>(a.rows) + 1);
  copy_to_host(row_ptr.data(), a.row_ptr.data(), row_ptr.size() * sizeof(Offset), stream);
  std::vector<Task> tasks;
  std::vector<std::int32_t> rows, empty, long_rows, first_piece;
  std::vector<unsigned char> ends(static_cast<std::size_t>(a.nnz / kQuad + 1), 0);
  std::int32_t pieces = 0;
  Task open{0, 0, 0, -1};
  const auto close = [&] {
    if (open.count > 0) tasks.push_back(open);
    open.count = 0;
  };
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const std::int64_t begin = row_ptr[static_cast<std::size_t>(r)], end = row_ptr[static_cast<std::size_t>(r) + 1];
    const auto row = static_cast<std::int32_t>(r);
    if (begin == end) {
      empty.push_back(row);
      continue;
    }
    const auto rank = static_cast<std::int32_t>(rows.size());
    rows.push_back(row);
    ends[static_cast<std::size_t>((end - 1) / kQuad)] |= static_cast<unsigned char>(1 << (end - 1) % kQuad);
    if (end - begin > 2 * size) {
      close();
      long_rows.push_back(row);
      first_piece.push_back(pieces);
      for (std::int64_t k = begin; k < end; k += size)
        tasks.push_back({k, static_cast<std::int32_t>(std::min(size, end - k)), rank, pieces++});
    } else {
      if (open.count + (end - begin) > size) close();
      if (open.count == 0) open.begin = begin, open.rank = rank;
      open.count += static_cast<std::int32_t>(end - begin);
    }
  }
  close();
  first_piece.push_back(pieces);
  Tasks all;
  all.count = static_cast<std::int64_t>(tasks.size());
  all.long_rows = static_cast<std::int32_t>(long_rows.size());
  all.pieces = pieces;
  all.empty_rows = static_cast<std::int64_t>(empty.size());
  all.task = on_device(tasks, a.device, stream);
  all.row = on_device(rows, a.device, stream);
  all.end = on_device(ends, a.device, stream);
  all.long_row = on_device(long_rows, a.device, stream);
  all.first_piece = on_device(first_piece, a.device, stream);
  all.empty = on_device(empty, a.device, stream);
  return all;
}

struct Matrix {
  const Task* __restrict__ task;
  const std::int32_t* __restrict__ row;
  const unsigned char* __restrict__ end;
  const std::int32_t* __restrict__ col_idx;
  std::int64_t tasks, nnz;
};

/// Four nonzeros from j on; those behind the last of the matrix are not read.
template <class T>
__device__ void load_quad(const Matrix& a, const T* __restrict__ values, std::int64_t j, std::int32_t (&column)[kQuad],
                          T (&value)[kQuad]) {
  if (j + kQuad <= a.nnz) {
    const int4 c = __ldg(reinterpret_cast<const int4*>(a.col_idx + j));
    column[0] = c.x, column[1] = c.y, column[2] = c.z, column[3] = c.w;
    constexpr int kAtOnce = dense::kWidth<T>;
#pragma unroll
    for (int u = 0; u < kQuad; u += kAtOnce) {
      const Wide<T, kAtOnce> some = *reinterpret_cast<const Wide<T, kAtOnce>*>(values + j + u);
#pragma unroll
      for (int w = 0; w < kAtOnce; ++w) value[u + w] = some.of[w];
    }
  } else {
#pragma unroll
    for (int u = 0; u < kQuad; ++u) {
      column[u] = j + u < a.nnz ? __ldg(a.col_idx + j + u) : 0;
      value[u] = j + u < a.nnz ? __ldg(values + j + u) : T(0);
    }
  }
}

/// `pieces`: sums of the pieces, `piece_columns` each, of which the first is column `first_column`.
template <class T, int W, int G, int P>
__global__ void __launch_bounds__(kBlock, P == 1 ? 4 : 3)
    csr_balanced_spmm(const Matrix a, const T* __restrict__ values, const dense::Rows<T> v, T* __restrict__ pieces,
                      int piece_columns, int first_column) {
  using Columns = Stretch<T, W, G, P>;
  const std::int64_t t = (static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x) / G;
  if (t >= a.tasks) return;
  const Columns columns(v, first_column + static_cast<int>(blockIdx.y) * Columns::kColumns, static_cast<int>(threadIdx.x));
  const Task task = a.task[t];
  const std::int64_t begin = task.begin / kQuad * kQuad;  // where quads are aligned
  const int skipped = static_cast<int>(task.begin - begin), end = skipped + task.count;
  const bool whole_rows = task.piece < 0;
  const std::int32_t* row = a.row + task.rank;
  const char* x = columns.x(v);
  T acc[P][W] = {};
#pragma unroll 1
  for (int j = 0; j < end; j += kQuad) {
    std::int32_t column[kQuad];
    T value[kQuad];
    load_quad(a, values, begin + j, column, value);
    const unsigned last = whole_rows ? __ldg(a.end + (begin + j) / kQuad) : 0;
    Wide<T, W> of_x[kQuad][P];
#pragma unroll
    for (int u = 0; u < kQuad; ++u)
      if (j + u >= skipped && j + u < end) {
        const char* at = x + static_cast<std::int64_t>(column[u]) * v.x_bytes;
#pragma unroll
        for (int q = 0; q < P; ++q) of_x[u][q] = dense::gather<Wide<T, W>>(at + q * Columns::kStepBytes);
      }
#pragma unroll
    for (int u = 0; u < kQuad; ++u)
      if (j + u >= skipped && j + u < end) {
#pragma unroll
        for (int q = 0; q < P; ++q)
#pragma unroll
          for (int w = 0; w < W; ++w) acc[q][w] += value[u] * of_x[u][q].of[w];
        if ((last >> u & 1) != 0) {
          columns.store(v, __ldg(row++), acc);
#pragma unroll
          for (int q = 0; q < P; ++q)
#pragma unroll
            for (int w = 0; w < W; ++w) acc[q][w] = 0;
        }
      }
  }
  if (whole_rows || !columns.real) return;
  T* out = pieces + static_cast<std::int64_t>(task.piece) * piece_columns + (columns.first - first_column);
#pragma unroll
  for (int q = 0; q < P; ++q)
#pragma unroll
    for (int w = 0; w < W; ++w) out[q * G * W + w] = acc[q][w];
}

template <class T>
__device__ void write(const dense::Rows<T>& v, std::int64_t row, int column, T sum) {
  T& y = *(reinterpret_cast<T*>(reinterpret_cast<char*>(v.y) + row * v.y_bytes) + column);
  y = v.beta == T(0) ? v.alpha * sum : v.alpha * sum + v.beta * y;
}

/// The sums of long rows, a block each.
template <class T>
__global__ void add_pieces(const std::int32_t* __restrict__ long_row, const std::int32_t* __restrict__ first_piece,
                           const T* __restrict__ pieces, int columns, int first_column, const dense::Rows<T> v) {
  const std::int32_t begin = first_piece[blockIdx.x], end = first_piece[blockIdx.x + 1];
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += static_cast<int>(blockDim.x)) {
    T sum = 0;
    for (std::int32_t p = begin; p < end; ++p) sum += pieces[static_cast<std::int64_t>(p) * columns + c];
    write(v, long_row[blockIdx.x], first_column + c, sum);
  }
}

/// y = beta·y for the rows without nonzeros.
template <class T>
__global__ void write_empty_rows(std::int64_t count, const std::int32_t* __restrict__ rows, const dense::Rows<T> v) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count * v.columns) write(v, rows[i / v.columns], static_cast<int>(i % v.columns), T(0));
}

template <class T>
using Instance = decltype(&csr_balanced_spmm<T, dense::kWidth<T>, 1, 1>);

/// The instance for a policy, or null.
template <class T>
Instance<T> instance(int lanes, int passes) {
  constexpr int W = dense::kWidth<T>;
  switch (dense::shape_of(lanes, passes)) {
    case 11: return csr_balanced_spmm<T, W, 1, 1>;
    case 21: return csr_balanced_spmm<T, W, 2, 1>;
    case 41: return csr_balanced_spmm<T, W, 4, 1>;
    case 81: return csr_balanced_spmm<T, W, 8, 1>;
    case 82: return csr_balanced_spmm<T, W, 8, 2>;
    case 162: return csr_balanced_spmm<T, W, 16, 2>;
    default: return nullptr;
  }
}

template <class T>
void multiply(const CsrStorage& a, const Tasks& tasks, const Buffer& pieces, int lanes, int passes, const dense::Rows<T>& v,
              Stream& stream) {
  const Matrix matrix{tasks.task.as<Task>(),         tasks.row.as<std::int32_t>(), tasks.end.as<unsigned char>(),
                      a.col_idx.as<std::int32_t>(), tasks.count,                  a.nnz};
  cuda::launch(write_empty_rows<T>, tasks.empty_rows * v.columns, kBlock, stream, tasks.empty_rows,
               tasks.empty.as<std::int32_t>(), v);
  for (int first = 0; first < v.columns; first += kPieceColumns) {
    dense::Rows<T> some = v;  // columns first … some.columns - 1
    some.columns = std::min(v.columns, first + kPieceColumns);
    const int piece_columns = some.columns - first;
    const auto launch = [&](Instance<T> kernel, int of_lanes, int begin, int blocks) {
      if (tasks.count == 0) return;
      const std::int64_t across = (tasks.count * of_lanes + kBlock - 1) / kBlock;
      kernel<<<dim3(static_cast<unsigned>(across), static_cast<unsigned>(blocks)), kBlock, 0, cuda::native(stream)>>>(
          matrix, a.values.as<T>(), some, pieces.as<T>() + (begin - first), piece_columns, begin);
      SHARDMAT_CUDA_CHECK(cudaGetLastError());
    };
    if (v.columns == 2) launch(csr_balanced_spmm<T, 2, 1, 1>, 1, 0, 1);
    else dense::split_columns(
        piece_columns, dense::kWidth<T>, lanes, passes,
        [&](int begin, int blocks) { launch(instance<T>(lanes, passes), lanes, first + begin, blocks); },
        [&](int begin, int few) { launch(instance<T>(few, 1), few, first + begin, 1); });
    cuda::launch_blocks(add_pieces<T>, tasks.long_rows, kPieceColumns, 0, stream, tasks.long_row.as<std::int32_t>(),
                        tasks.first_piece.as<std::int32_t>(), pieces.as<T>(), piece_columns, first, some);
  }
}

}  // namespace

std::vector<Policy> csr_balanced_spmm_policies(const Storage& storage, const RightHandSides& rhs) {
  const std::int64_t wide = dense::lanes_of_row(rhs.count, size_of(storage.type));
  int lanes = 1, passes = 1;
  while (lanes < 8 && lanes < wide) lanes *= 2;
  if (wide >= 16) passes = 2;
  if (wide >= 32) lanes = 16;
  const auto policy = [&](int task) { return Policy{{"lanes", lanes}, {"passes", passes}, {"task", task}}; };
  return {policy(256), policy(64)};
}

std::unique_ptr<SpmmPlan> make_csr_balanced_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                 const Policy& policy, Stream& stream) {
  const int lanes = policy.at("lanes"), passes = policy.at("passes"), size = policy.at("task");
  if (instance<float>(lanes, passes) == nullptr)
    throw Error(ErrorKind::usage, "csr_balanced: lanes and passes must be 1, 2, 4 or 8 and 1, or 8 or 16 and 2");
  if (size < 16 || size > 4096) throw Error(ErrorKind::usage, "csr_balanced: task must be 16 to 4096 nonzeros");
  const auto& a = static_cast<const CsrStorage&>(*storage);
  const auto tasks =
      std::make_shared<const Tasks>(a.wide_offsets ? cut<std::int64_t>(a, size, stream) : cut<std::int32_t>(a, size, stream));
  const auto pieces = std::make_shared<const Buffer>(
      a.device, static_cast<std::size_t>(tasks->pieces) *
                    static_cast<std::size_t>(std::min<std::int64_t>(rhs.count + 3, kPieceColumns)) * size_of(a.type));
  const std::int64_t bytes = tasks->bytes() + static_cast<std::int64_t>(pieces->bytes());
  return cuda::row_major_plan<CsrStorage>(
      std::move(storage), rhs,
      [tasks, pieces, lanes, passes]<class T>(const CsrStorage& matrix, const dense::Rows<T>& v, Stream& on) {
        multiply<T>(matrix, *tasks, *pieces, lanes, passes, v, on);
      },
      bytes);
}

}  // namespace shardmat
