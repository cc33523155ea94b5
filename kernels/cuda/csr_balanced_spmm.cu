// CSR with many right-hand sides, cut into tasks of equal numbers of nonzeros, whatever rows they belong to: G lanes take a
// task and go through it a few nonzeros at a time, so that the loads of X do not wait for the ends of short rows; a bit per
// nonzero says where a row ends. A row that goes on in the next task leaves its sum so far as a piece, and a second kernel
// adds the pieces of such rows in a fixed order. Blocks stay for all their tasks, one a multiprocessor.
//
// With `exact`, tasks have 64 or 256 nonzeros, and products of a row are added as csr_segmented.cu does with one step a
// chunk: first those of a segment of 4 nonzeros, then the segments of a group of 64, then the groups of a chunk of 256, then
// the chunks. So a column has the bits of a product with one right-hand side. Without `exact`, all groups of lanes get
// equally many tasks, and a task adds the products of a row one after another.
//
// With hub_kb > 0 the rows of X that most nonzeros ask for are copied to shared memory once a block (hubs.h): what L1 would
// keep of them by itself competes with rows that are never asked for again.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/host_device.h"
#include "kernels/cuda/hubs.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_major_plan.h"
#include "kernels/cuda/row_sums.h"
#include "kernels/cuda/split_rows.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/csr_spmm.h"
#include "kernels/formats/upload.h"

namespace shardmat {
namespace {

using dense::Stretch;
using dense::Wide;
using row_sums::GroupSums;
using row_sums::RowSum;

/// Nonzeros of a step and threads of a block, as registers allow: with few lanes a task, indices come in longer steps.
template <int G, int P>
constexpr int kStep = P == 1 && G <= 2 ? 8 : 4;
template <class A, int G, int P>
constexpr int kBlock = P == 2   ? (sizeof(A) == 2 ? 640 : 768)
                       : G <= 2 ? 512
                                : 1024;
constexpr int kFlags = 8;  ///< nonzeros whose ends share a byte; tasks are multiples of it
constexpr int kSmallestTask = 32;
constexpr int kPieceColumns = 128;                      ///< for which pieces are kept at once
constexpr int kAdders = 8;                              ///< threads that share the pieces of a row cut many times
constexpr int kSegment = 4, kGroup = 64, kChunk = 256;  ///< nonzeros that are added first

/// A row whose nonzeros tasks `first` to `end` share. Each leaves a piece: the last one at the head of its pieces.
struct SplitRow {
  std::int32_t row, first, end;
};

/// Where tasks begin, and whose pieces of a row are added first: those of a chunk. `whole` tasks of `size` nonzeros come
/// first, then tasks of `rest_size`.
struct Division {
  std::int32_t whole = std::numeric_limits<std::int32_t>::max(), size = 0, rest_size = 0;
  std::int32_t of_chunk = 1, of_rest_chunk = 1;  ///< tasks of a chunk

  SHARDMAT_HOST_DEVICE std::int64_t begin(std::int64_t task) const {
    return task < whole ? task * size : std::int64_t{whole} * size + (task - whole) * rest_size;
  }
  SHARDMAT_HOST_DEVICE std::int64_t task_of(std::int64_t nonzero) const {
    const std::int64_t behind = nonzero - std::int64_t{whole} * size;
    return behind < 0 ? nonzero / size : whole + behind / rest_size;
  }
  SHARDMAT_HOST_DEVICE std::int32_t first_task(std::int32_t chunk) const {
    const std::int32_t behind = chunk - whole / of_chunk;
    return behind < 0 ? chunk * of_chunk : whole + behind * of_rest_chunk;
  }
  SHARDMAT_HOST_DEVICE std::int32_t chunk_of(std::int32_t task) const {
    return task < whole ? task / of_chunk : whole / of_chunk + (task - whole) / of_rest_chunk;
  }
};

/// How the rows of a matrix fall to tasks.
struct Tasks {
  Division division;
  int multiprocessors = 0;    ///< of the device
  bool keeps_groups = false;  ///< GroupSums are used
  std::int64_t count = 0, empty_rows = 0;
  std::int32_t few_pieces = 0, many_pieces = 0;  ///< split rows whose chunks are added one by one, and in strands
  Buffer first;  ///< int32 a task: place in `row` of the row that its first nonzero is in; ~place if that row began before
  Buffer row;    ///< int32: the rows that have nonzeros
  Buffer end;    ///< a bit a nonzero: the last of its row
  Buffer split;  ///< SplitRow: those with few pieces, those with many
  Buffer empty;  ///< int32: the rows that have none
  cuda::Hubs hubs;

  std::int64_t bytes() const {
    std::size_t sum = 0;
    for (const Buffer* b : {&first, &row, &end, &split, &empty}) sum += b->bytes();
    return static_cast<std::int64_t>(sum) + hubs.bytes();
  }
};

template <class Offset>
Tasks cut(const CsrStorage& a, const Division& division, Stream& stream) {
  std::vector<Offset> row_ptr(static_cast<std::size_t>(a.rows) + 1);
  copy_to_host(row_ptr.data(), a.row_ptr.data(), row_ptr.size() * sizeof(Offset), stream);
  Tasks all;
  all.division = division;
  all.count = a.nnz == 0 ? 0 : division.task_of(a.nnz - 1) + 1;
  std::vector<std::int32_t> first(static_cast<std::size_t>(all.count)), rows, empty;
  std::vector<SplitRow> few, many;
  std::vector<unsigned char> ends(static_cast<std::size_t>(a.nnz / kFlags + 1), 0);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const std::int64_t begin = row_ptr[static_cast<std::size_t>(r)], end = row_ptr[static_cast<std::size_t>(r) + 1];
    const auto row = static_cast<std::int32_t>(r);
    if (begin == end) {
      empty.push_back(row);
      continue;
    }
    ends[static_cast<std::size_t>((end - 1) / kFlags)] |= static_cast<unsigned char>(1 << (end - 1) % kFlags);
    const auto begins_in = static_cast<std::int32_t>(division.task_of(begin)),
               ends_in = static_cast<std::int32_t>(division.task_of(end - 1));
    const auto place = static_cast<std::int32_t>(rows.size());
    if (division.begin(begins_in) == begin) first[static_cast<std::size_t>(begins_in)] = place;
    for (std::int64_t t = begins_in + 1; t <= ends_in; ++t) first[static_cast<std::size_t>(t)] = ~place;
    const bool in_strands = division.chunk_of(ends_in) - division.chunk_of(begins_in) > cuda::kFewParts;
    if (ends_in > begins_in) (in_strands ? many : few).push_back({row, begins_in, ends_in});
    rows.push_back(row);
  }
  rows.push_back(0);  // read, not used, behind the last
  all.few_pieces = static_cast<std::int32_t>(few.size());
  all.many_pieces = static_cast<std::int32_t>(many.size());
  few.insert(few.end(), many.begin(), many.end());
  all.empty_rows = static_cast<std::int64_t>(empty.size());
  all.first = upload(first, stream);
  all.row = upload(rows, stream);
  all.end = upload(ends, stream);
  all.split = upload(few, stream);
  all.empty = upload(empty, stream);
  return all;
}

/// The matrix as the kernel sees it.
struct Sequence {
  std::int64_t nnz, tasks, empty_rows;
  Division division;
  int hubs;
  const std::int32_t* __restrict__ first;
  const std::int32_t* __restrict__ row;
  const unsigned char* __restrict__ end;
  const std::int32_t* __restrict__ col_idx;  ///< a hub as the complement of its place in hub_columns
  const std::int32_t* __restrict__ hub_columns;
  const std::int32_t* __restrict__ empty;
};

template <int U>
struct Step {
  std::int32_t column[U];
  unsigned ends;
};

/// Columns of U nonzeros from `at` on and the bits of their ends, of `left` that there are.
template <int U>
__device__ Step<U> load_step(const std::int32_t* column, const unsigned char* end, int at, int left) {
  Step<U> step;
  step.ends = __ldg(end + at / kFlags) >> at % kFlags;
  if constexpr (U < kFlags) step.ends &= (1u << U) - 1;
  if (left >= U) {
#pragma unroll
    for (int u = 0; u < U; u += 4) {
      const int4 c = __ldg(reinterpret_cast<const int4*>(column + at + u));
      step.column[u] = c.x, step.column[u + 1] = c.y, step.column[u + 2] = c.z, step.column[u + 3] = c.w;
    }
  } else {
#pragma unroll
    for (int u = 0; u < U; ++u) step.column[u] = u < left ? __ldg(column + at + u) : 0;
  }
  return step;
}

template <int U, class T, class A>
__device__ void load_values(T (&value)[U], const A* at, int left) {
  if (left >= U) {
    constexpr int kAtOnce = dense::kWidth<A> < U ? dense::kWidth<A> : U;
#pragma unroll
    for (int u = 0; u < U; u += kAtOnce) {
      const auto some = dense::gather<Wide<A, kAtOnce>>(reinterpret_cast<const char*>(at + u));
#pragma unroll
      for (int w = 0; w < kAtOnce; ++w) value[u + w] = dense::widened(some.of[w]);
    }
  } else {
#pragma unroll
    for (int u = 0; u < U; ++u) value[u] = u < left ? dense::widened(at[u]) : T(0);
  }
}

/// `pieces`: of the tasks, `piece_columns` each, of which the first is column `first_column`; `heads`: likewise, of rows
/// that began in another task and end here.
template <class T, class A, int W, int G, int P, bool kHubs, bool kOrdered>
__global__ void __launch_bounds__(kBlock<A, G, P>, 1)
    csr_balanced_spmm(const Sequence a, const A* __restrict__ values, const dense::Rows<T, A> v, T* __restrict__ pieces,
                      T* __restrict__ heads, int piece_columns, int first_column) {
  using Columns = Stretch<T, W, G, P, A>;
  using Entries = Wide<A, W>;
  constexpr int U = kStep<G, P>;
  static_assert(U % kSegment == 0, "a step has whole segments");
  constexpr int kGroups = kBlock<A, G, P> / G, kHubBytes = Columns::kColumns * static_cast<int>(sizeof(A));
  extern __shared__ __align__(16) char shared[];
  const int begin_column = first_column + static_cast<int>(blockIdx.y) * Columns::kColumns;
  const Columns columns(v, begin_column, static_cast<int>(threadIdx.x));
  const char* x = columns.x(v);
  unsigned hubs = 0;
  if constexpr (kHubs) {
    for (int h = static_cast<int>(threadIdx.x) / G; h < a.hubs; h += kGroups) {
      const char* row = dense::row_at(x, __ldg(a.hub_columns + h), v.x_bytes);
      char* to = shared + h * kHubBytes + static_cast<int>(threadIdx.x) % G * static_cast<int>(sizeof(Entries));
#pragma unroll
      for (int q = 0; q < P; ++q)
        *reinterpret_cast<Entries*>(to + q * Columns::kStepBytes) = dense::gather<Entries>(row + q * Columns::kStepBytes);
    }
    __syncthreads();
    hubs = static_cast<unsigned>(__cvta_generic_to_shared(shared)) + threadIdx.x % G * unsigned{sizeof(Entries)};
  }
  // Behind the hubs: what RowSum keeps of a thread.
  auto* const of_groups = reinterpret_cast<Wide<T, W>*>(shared + (kHubs ? a.hubs * kHubBytes : 0)) + threadIdx.x;
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * kGroups + threadIdx.x / G;
  const std::int64_t groups = static_cast<std::int64_t>(gridDim.x) * kGroups;
  for (std::int64_t t = group; t < a.tasks; t += groups) {
    std::int64_t begin = t * a.division.size;
    int most = a.division.size;
    if constexpr (kOrdered)
      if (t >= a.division.whole) begin = a.division.begin(t), most = a.division.rest_size;
    const int count = static_cast<int>(min(std::int64_t{most}, a.nnz - begin));
    const std::int32_t* column = a.col_idx + begin;
    const unsigned char* end = a.end + begin / kFlags;
    const A* value = values + begin;
    const std::int32_t place = __ldg(a.first + t);
    const std::int32_t* row = a.row + (place < 0 ? ~place : place);
    std::int32_t target = __ldg(row);
    bool began_before = place < 0;
    bool open = false;  // the last nonzero was not the last of its row
    RowSum<T, W, P, kOrdered> acc(of_groups, kBlock<A, G, P>);
    const auto leave = [&](T* to) {
      if (!columns.real) return;
      T* out = to + t * piece_columns + (columns.first - first_column);
      constexpr int kAtOnce = W < dense::kWidth<T> ? W : dense::kWidth<T>;
#pragma unroll
      for (int q = 0; q < P; ++q)
#pragma unroll
        for (int part = 0; part < W; part += kAtOnce) {
          Wide<T, kAtOnce> sum;
#pragma unroll
          for (int w = 0; w < kAtOnce; ++w) sum.of[w] = acc.result[q][part + w];
          *reinterpret_cast<Wide<T, kAtOnce>*>(out + q * (G * W) + part) = sum;
        }
    };
    Step<U> step = load_step<U>(column, end, 0, count);
#pragma unroll 1
    for (int j = 0; j < count; j += U) {
      const Step<U> here = step;
      T of_a[U];
      Entries of_x[U][P];
      load_values<U>(of_a, value + j, count - j);
#pragma unroll
      for (int u = 0; u < U; ++u) {
        const char* at = dense::row_at(x, here.column[u], v.x_bytes);
        const unsigned hub = hubs + static_cast<unsigned>(~here.column[u]) * kHubBytes;
#pragma unroll
        for (int q = 0; q < P; ++q)
          if constexpr (kHubs)
            of_x[u][q] =
                dense::load_either<Entries>(here.column[u] < 0, hub + q * Columns::kStepBytes, at + q * Columns::kStepBytes);
          else of_x[u][q] = dense::load<Entries>(at + q * Columns::kStepBytes);
      }
      if (j + U < count) step = load_step<U>(column, end, j + U, count - j - U);
      const auto add = [&](int u) {
#pragma unroll
        for (int q = 0; q < P; ++q)
#pragma unroll
          for (int w = 0; w < W; ++w) acc.add(q, w, of_a[u], of_x[u][q].of[w]);
      };
      if (here.ends == 0) {
#pragma unroll
        for (int u = 0; u < U; ++u) {
          add(u);
          if (u % kSegment == kSegment - 1) acc.close_segment();
        }
      } else {
#pragma unroll
        for (int u = 0; u < U; ++u) {
          add(u);
          if (u % kSegment == kSegment - 1) acc.close_segment();
          if ((here.ends >> u & 1) != 0) {
            acc.close_all();
            if (began_before) leave(heads), began_before = false;
            else columns.store(v, target, acc.result);
            acc.clear();
            target = __ldg(++row);
          }
        }
      }
      if (j + U < count && (j + U) % kGroup == 0) acc.close_group();
      open = (here.ends >> (U - 1) & 1) == 0;
    }
    if (!open || begin + count == a.nnz) continue;
    acc.close_all();
    leave(pieces);
  }
  const T zero[P][W] = {};
  for (std::int64_t i = group; i < a.empty_rows; i += groups) columns.store(v, __ldg(a.empty + i), zero);
}

/// y = alpha·(sum of the pieces) + beta·y for rows that tasks share, kAdders of them a block, or one in strands. Pieces of a
/// chunk are added first, the head last.
template <class T, class A, bool kInStrands>
__global__ void add_pieces(std::int64_t count, const SplitRow* __restrict__ rows, Division division,
                           const T* __restrict__ pieces, const T* __restrict__ heads, int columns, int first_column,
                           const dense::Rows<T, A> v) {
  __shared__ T strands[cuda::kStrands][32];
  const int lane = static_cast<int>(threadIdx.x), adder = static_cast<int>(threadIdx.y);
  const std::int64_t i = kInStrands ? blockIdx.x : static_cast<std::int64_t>(blockIdx.x) * kAdders + adder;
  if (i >= count) return;
  const SplitRow split = rows[i];
  const int first_chunk = division.chunk_of(split.first), last_chunk = division.chunk_of(split.end);
  for (int from = 0; from < columns; from += 32) {
    const int c = min(from + lane, columns - 1);
    const auto piece = [&](const T* of, int task) { return of[static_cast<std::int64_t>(task) * columns + c]; };
    const auto chunk = [&](int number) {  // without the head
      T sum = 0;
      const int end = min(division.first_task(number + 1), split.end);
      for (int p = max(division.first_task(number), split.first); p < end; ++p) sum += piece(pieces, p);
      return sum;
    };
    T sum = 0;
    if constexpr (kInStrands) {
      for (int s = adder; s < cuda::kStrands; s += kAdders) {
        T strand = 0;
#pragma unroll 4
        for (int b = first_chunk + s; b < last_chunk; b += cuda::kStrands) strand += chunk(b);
        strands[s][lane] = strand;
      }
      __syncthreads();
      if (adder == 0)
        for (int s = 0; s < cuda::kStrands; ++s) sum += strands[s][lane];
      __syncthreads();
      if (adder > 0) continue;
    } else {
      for (int b = first_chunk; b < last_chunk; ++b) sum += chunk(b);
    }
    sum += chunk(last_chunk) + piece(heads, split.end);
    if (from + lane >= columns) continue;
    T& y = *(reinterpret_cast<T*>(reinterpret_cast<char*>(v.y) + static_cast<std::int64_t>(split.row) * v.y_bytes) +
             first_column + c);
    y = v.beta == T(0) ? v.alpha * sum : fma(v.beta, y, v.alpha * sum);
  }
}

template <class T, class A>
struct Instance {
  decltype(&csr_balanced_spmm<T, A, dense::kWidth<A>, 1, 1, false, false>) kernel = nullptr;
  int block_size = 0, row_bytes = 0;  ///< row_bytes: of a row of X, what a group of lanes holds
  int groups_bytes = 0;               ///< of a block's sums over groups, in shared memory, with `exact`
};
/// What an instance does beyond its policy's lanes and passes.
struct Form {
  bool has_hubs, is_ordered;
};
template <class T, class A, int G, int P, int W = dense::kWidth<A>>
Instance<T, A> instance(Form form) {
  auto kernel =
      form.has_hubs ? csr_balanced_spmm<T, A, W, G, P, true, false> : csr_balanced_spmm<T, A, W, G, P, false, false>;
  if constexpr (std::is_same_v<A, T>)
    if (form.is_ordered)
      kernel = form.has_hubs ? csr_balanced_spmm<T, A, W, G, P, true, true> : csr_balanced_spmm<T, A, W, G, P, false, true>;
  constexpr int kThreads = kBlock<A, G, P>;
  return {kernel, kThreads, W * G * P * static_cast<int>(sizeof(A)), kThreads * GroupSums<T, W, P>::kBytes};
}
/// The instance for a policy; null, with a block_size of 0, if there is none.
template <class T, class A>
Instance<T, A> instance(int lanes, int passes, Form form) {
  switch (dense::shape_of(lanes, passes)) {
    case 11:
      return instance<T, A, 1, 1>(form);
    case 21:
      return instance<T, A, 2, 1>(form);
    case 41:
      return instance<T, A, 4, 1>(form);
    case 81:
      return instance<T, A, 8, 1>(form);
    case 82:
      return instance<T, A, 8, 2>(form);
    default:
      return {};
  }
}

template <class T, class A>
void multiply(const CsrStorage& a, const Tasks& tasks, const Buffer& pieces, int lanes, int passes, bool is_ordered,
              const dense::Rows<T, A>& v, Stream& stream) {
  const bool has_hubs = tasks.hubs.count > 0;
  const Form form{has_hubs, is_ordered};
  const Sequence sequence{a.nnz,
                          tasks.count,
                          tasks.empty_rows,
                          tasks.division,
                          tasks.hubs.count,
                          tasks.first.as<std::int32_t>(),
                          tasks.row.as<std::int32_t>(),
                          tasks.end.as<unsigned char>(),
                          (has_hubs ? tasks.hubs.coded : a.col_idx).as<std::int32_t>(),
                          tasks.hubs.columns.as<std::int32_t>(),
                          tasks.empty.as<std::int32_t>()};
  for (int first = 0; first < v.columns; first += kPieceColumns) {
    dense::Rows<T, A> some = v;  // columns first … some.columns - 1
    some.columns = std::min(v.columns, first + kPieceColumns);
    const int piece_columns = some.columns - first;
    T* const heads = pieces.as<T>() + tasks.count * piece_columns;
    const auto launch = [&](const Instance<T, A>& one, int of_lanes, int begin, int blocks) {
      const std::int64_t threads = std::max(tasks.count, (tasks.empty_rows + 7) / 8) * of_lanes;
      const std::int64_t across =
          std::min<std::int64_t>((threads + one.block_size - 1) / one.block_size, tasks.multiprocessors);
      const auto shared =
          static_cast<std::size_t>(tasks.hubs.count * one.row_bytes + (tasks.keeps_groups ? one.groups_bytes : 0));
      cuda::allow_shared_memory(one.kernel, shared, stream.device());
      cuda::launch_grid(one.kernel, across, blocks, static_cast<unsigned>(one.block_size), shared, stream, sequence,
                        a.values.as<A>(), some, pieces.as<T>() + (begin - first), heads + (begin - first), piece_columns,
                        begin);
    };
    const auto by_lanes = [&] {
      dense::split_columns(
          piece_columns, dense::kWidth<A>, lanes, passes,
          [&](int begin, int blocks) { launch(instance<T, A>(lanes, passes, form), lanes, first + begin, blocks); },
          [&](int begin, int few) { launch(instance<T, A>(few, 1, form), few, first + begin, 1); });
    };
    if constexpr (std::is_same_v<A, T>) v.columns == 2 ? launch(instance<T, A, 1, 1, 2>(form), 1, 0, 1) : by_lanes();
    else by_lanes();
    const auto add = [&](auto kernel, std::int64_t rows, std::int64_t blocks, std::int64_t begin) {
      cuda::launch_grid(kernel, blocks, 1, dim3(32, kAdders), 0, stream, rows, tasks.split.as<SplitRow>() + begin,
                        tasks.division, pieces.as<T>(), heads, piece_columns, first, some);
    };
    add(add_pieces<T, A, false>, tasks.few_pieces, (tasks.few_pieces + kAdders - 1) / kAdders, 0);
    add(add_pieces<T, A, true>, tasks.many_pieces, tasks.many_pieces, tasks.few_pieces);
  }
}

/// Tasks of about `wanted` nonzeros, such that all groups of lanes of the device get equally many.
Division equal_division(const CsrStorage& a, std::int64_t groups, int wanted) {
  const std::int64_t rounds = std::max<std::int64_t>(1, (a.nnz + groups * wanted / 2) / (groups * wanted));
  const std::int64_t size = (a.nnz + groups * rounds - 1) / (groups * rounds);
  Division division;
  division.size = static_cast<std::int32_t>(std::max<std::int64_t>(kSmallestTask, (size + kFlags - 1) / kFlags * kFlags));
  return division;
}

/// Tasks of `size` nonzeros, a group or a chunk. If not all groups of lanes get a chunk in the last round, its tasks are
/// groups of nonzeros, of which each gets fewer.
Division exact_division(const CsrStorage& a, std::int64_t groups, int size) {
  Division division;
  division.size = size, division.of_chunk = kChunk / size;
  const std::int64_t chunks = (a.nnz + kChunk - 1) / kChunk, last = chunks % groups;
  if (size == kGroup || last * (kChunk / kGroup) > (kChunk / kGroup - 1) * groups) return division;
  division.whole = static_cast<std::int32_t>(chunks - last);
  division.rest_size = kGroup, division.of_rest_chunk = kChunk / kGroup;
  return division;
}

}  // namespace

std::vector<Policy> csr_balanced_spmm_policies(const Storage& storage, const RightHandSides& rhs) {
  const std::int64_t wide = dense::lanes_of_row(rhs.count, size_of(storage.type));
  int lanes = 1;
  while (lanes < 8 && lanes < wide) lanes *= 2;
  const auto policy = [&](int task, int hub_kb, int exact) {
    return Policy{{"lanes", lanes}, {"passes", wide >= 16 ? 2 : 1}, {"task", task}, {"hub_kb", hub_kb}, {"exact", exact}};
  };
  // Hubs are worth their instructions while shared memory holds thousands of them.
  std::vector<Policy> all{policy(256, 0, 0)};
  if (wide <= 4) all.push_back(policy(64, 160, 0));
  if (is_half(storage.type)) return all;
  all.push_back(policy(256, 0, 1));
  if (wide <= 4) all.push_back(policy(64, 160, 1));
  return all;
}

std::unique_ptr<SpmmPlan> make_csr_balanced_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                 const Policy& policy, Stream& stream) {
  const int lanes = policy.at("lanes"), passes = policy.at("passes"), wanted = policy.at("task");
  const int hub_kb = policy.at("hub_kb"), exact = policy.at("exact");
  const auto& a = static_cast<const CsrStorage&>(*storage);
  const auto [block_size, row_bytes, groups_bytes] = dispatch_operands(a.type, [&](auto of_a, auto of_sum) {
    using A = typename decltype(of_a)::type;
    using T = typename decltype(of_sum)::type;
    auto one = instance<T, A>(lanes, passes, Form{});
    if constexpr (std::is_same_v<A, T>)
      if (one.kernel != nullptr && rhs.count == 2) one = instance<T, A, 1, 1, 2>(Form{});
    return std::tuple(one.block_size, one.row_bytes, one.groups_bytes);
  });
  if (block_size == 0)
    throw Error(ErrorKind::usage, "csr_balanced: lanes must be 1, 2, 4 or 8, and passes 1, or 2 with 8 lanes");
  if (wanted < kSmallestTask || wanted > 65536)
    throw Error(ErrorKind::usage, "csr_balanced: task must be 32 to 65536 nonzeros");
  if (hub_kb < 0 || hub_kb > 208) throw Error(ErrorKind::usage, "csr_balanced: hub_kb must be from 0 to 208");
  if (exact != 0 && (exact != 1 || (wanted != kGroup && wanted != kChunk)))
    throw Error(ErrorKind::usage, "csr_balanced: exact must be 0, or 1 with tasks of 64 or 256 nonzeros");
  const int multiprocessors = properties(a.device).multiprocessors;
  const std::int64_t groups = std::int64_t{multiprocessors} * (block_size / lanes);
  const Division division = exact == 1 ? exact_division(a, groups, wanted) : equal_division(a, groups, wanted);
  auto tasks = std::make_shared<Tasks>(a.wide_offsets ? cut<std::int64_t>(a, division, stream)
                                                      : cut<std::int32_t>(a, division, stream));
  tasks->multiprocessors = multiprocessors;
  tasks->keeps_groups = exact == 1 && wanted > kGroup;
  if (hub_kb > 0) {
    const auto of_groups = static_cast<std::size_t>(tasks->keeps_groups ? groups_bytes : 0);
    const std::size_t room =
        std::min(static_cast<std::size_t>(hub_kb) * 1024, cuda::most_shared_memory(a.device) - of_groups);
    tasks->hubs = cuda::find_hubs(a, room / static_cast<std::size_t>(row_bytes), stream);
  }
  const auto pieces = std::make_shared<const Buffer>(
      a.device, 2 * static_cast<std::size_t>(tasks->count) *
                    static_cast<std::size_t>(std::min<std::int64_t>(rhs.count + 7, kPieceColumns)) *
                    size_of(sum_type(a.type)));
  const std::int64_t bytes = tasks->bytes() + static_cast<std::int64_t>(pieces->bytes());
  return cuda::row_major_plan<CsrStorage>(
      std::move(storage), rhs,
      [tasks, pieces, lanes, passes, is_ordered = exact == 1]<class T, class A>(const CsrStorage& matrix,
                                                                                const dense::Rows<T, A>& v, Stream& on) {
        multiply<T, A>(matrix, *tasks, *pieces, lanes, passes, is_ordered, v, on);
      },
      bytes);
}

}  // namespace shardmat
