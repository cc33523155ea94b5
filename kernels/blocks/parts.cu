// Rows of blocks that several GPUs have together: rows that go to other ranks, rows that come, and numbers of columns.
#include <limits>

#include "kernels/blocks/parts.h"
#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks {
namespace {

__global__ void take_items(std::int64_t values, int each, const std::int32_t* which, const double* from, double* to) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= values) return;
  const std::int64_t i = at / each;
  to[at] = from[std::int64_t{which[i]} * each + (at - i * each)];
}

__global__ void count_blocks(std::int64_t rows, const std::int32_t* which, const std::int64_t* start, std::int64_t* length) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows) length[i] = start[which[i] + 1] - start[which[i]];
}

/// A warp a row.
__global__ void take_some_rows(std::int64_t rows, int entries, const std::int32_t* which, const std::int64_t* start,
                               const std::int32_t* column, const double* value, const std::int64_t* to_start,
                               std::int32_t* to_column, double* to_value) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  if (i >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t from = start[which[i]], to = to_start[i], length = to_start[i + 1] - to;
  for (std::int64_t k = lane; k < length; k += kLanes) to_column[to + k] = column[from + k];
  for (std::int64_t e = lane; e < length * entries; e += kLanes) to_value[to * entries + e] = value[from * entries + e];
}

__global__ void take_numbers(std::int64_t count, const std::int32_t* number, const std::int32_t* from, std::int32_t* to) {
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < count) to[k] = from[k] < 0 ? from[k] : number[from[k]];
}

__global__ void mark_columns(std::int64_t rows, const std::int64_t* start, const std::int32_t* column, char* used) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  if (i >= rows) return;
  for (std::int64_t k = start[i] + threadIdx.x % kLanes; k < start[i + 1]; k += kLanes) used[column[k]] = 1;
}

__global__ void open_gap(std::int64_t count, std::int32_t own, std::int32_t gap, std::int32_t* column) {
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < count && column[k] >= own) column[k] += gap;
}

/// least and most: of each ghost the bodies of this rank that are coupled with it.
template <int kTeam>
__global__ void look_at_ghosts(std::int64_t count, std::int64_t own, const std::int64_t* start, const std::int32_t* column,
                               const double* square, const std::int32_t* body, std::int32_t* least, std::int32_t* most) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (i >= count || body[i] < 0) return;
  for (std::int64_t k = start[i] + threadIdx.x % kTeam; k < start[i + 1]; k += kTeam) {
    const std::int64_t ghost = column[k] - own;
    if (ghost < 0 || square[k] == 0) continue;
    atomicMin(least + ghost, body[i]);
    atomicMax(most + ghost, body[i]);
  }
}

void copy_array(const Buffer& from, std::size_t bytes, const Buffer& to, std::size_t offset, Stream& stream) {
  if (bytes > 0) copy_on_device(to.as<char>() + offset, from.data(), bytes, stream);
}

template <class T>
void put_array(const HostVector<T>& from, const Buffer& to, std::int64_t place, Stream& stream) {
  if (!from.empty()) copy_to_device(to.as<T>() + place, from.data(), from.size() * sizeof(T), stream);
}

}  // namespace

Buffer gathered(const Buffer& from, std::int64_t each, std::span<const std::int32_t> which, Stream& stream) {
  const auto count = static_cast<std::int64_t>(which.size());
  Buffer to = array<double>(count * each, stream);
  if (count == 0) return to;
  const Buffer on_device = array<std::int32_t>(count, stream);
  copy_to_device(on_device.data(), which.data(), on_device.bytes(), stream);
  cuda::launch(take_items, count * each, kThreads, stream, count * each, static_cast<int>(each),
               on_device.as<std::int32_t>(), from.as<double>(), to.as<double>());
  stream.synchronize();
  return to;
}

RowsInHostMemory some_rows(const BlockRows& a, std::span<const std::int32_t> which, Stream& stream) {
  const auto count = static_cast<std::int64_t>(which.size());
  RowsInHostMemory out;
  out.start.assign(which.size() + 1, 0);
  if (count == 0) return out;
  const Buffer rows = array<std::int32_t>(count, stream), start = array<std::int64_t>(count + 1, stream);
  copy_to_device(rows.data(), which.data(), rows.bytes(), stream);
  cuda::launch(count_blocks, count, kThreads, stream, count, rows.as<std::int32_t>(), a.start.as<std::int64_t>(),
               start.as<std::int64_t>());
  const std::int64_t blocks = sum_before(start.as<std::int64_t>(), count, stream);
  const Buffer column = array<std::int32_t>(blocks, stream), value = array<double>(blocks * a.block_entries(), stream);
  cuda::launch(take_some_rows, count * kLanes, kThreads, stream, count, static_cast<int>(a.block_entries()),
               rows.as<std::int32_t>(), a.start.as<std::int64_t>(), a.column.as<std::int32_t>(), a.value.as<double>(),
               start.as<std::int64_t>(), column.as<std::int32_t>(), value.as<double>());
  out.column.resize(static_cast<std::size_t>(blocks)),
      out.value.resize(static_cast<std::size_t>(blocks * a.block_entries()));
  copy_to_host(out.start.data(), start.data(), start.bytes(), stream);
  if (blocks > 0) {
    copy_to_host(out.column.data(), column.data(), column.bytes(), stream);
    copy_to_host(out.value.data(), value.data(), value.bytes(), stream);
  }
  return out;
}

HostVector<char> used_columns(const BlockRows& a, std::int64_t rows, Stream& stream) {
  HostVector<char> used(static_cast<std::size_t>(a.cols));
  if (used.empty()) return used;
  const Buffer on_device = array<char>(a.cols, stream);
  fill_bytes(on_device.data(), 0, on_device.bytes(), stream);
  cuda::launch(mark_columns, rows * kLanes, kThreads, stream, rows, a.start.as<std::int64_t>(), a.column.as<std::int32_t>(),
               on_device.as<char>());
  copy_to_host(used.data(), on_device.data(), used.size(), stream);
  return used;
}

Buffer renumbered(const Buffer& numbers, std::span<const std::int32_t> number, Stream& stream) {
  const auto count = static_cast<std::int64_t>(numbers.bytes() / sizeof(std::int32_t));
  Buffer to = array<std::int32_t>(count, stream);
  const Buffer map = array<std::int32_t>(static_cast<std::int64_t>(number.size()), stream);
  if (!number.empty()) copy_to_device(map.data(), number.data(), map.bytes(), stream);
  cuda::launch(take_numbers, count, kThreads, stream, count, map.as<std::int32_t>(), numbers.as<std::int32_t>(),
               to.as<std::int32_t>());
  stream.synchronize();
  return to;
}

BlockRows stacked(const BlockRows& top, std::int64_t rows, std::span<const std::int32_t> number,
                  const RowsInHostMemory& below, std::int64_t cols, Stream& stream) {
  std::int64_t of_top = top.blocks;
  if (rows < top.count) copy_to_host(&of_top, top.start.as<std::int64_t>() + rows, sizeof of_top, stream);
  const std::int64_t more = below.start.back(), entries = top.block_entries();
  BlockRows out;
  out.row_size = top.row_size, out.col_size = top.col_size;
  out.count = rows + std::ssize(below.start) - 1, out.cols = cols, out.blocks = of_top + more;
  require_memory(stream.device(), 8 * (out.count + 1) + out.blocks * (4 + 8 * entries), "the rows of a level");
  out.start = array<std::int64_t>(out.count + 1, stream);
  out.column = array<std::int32_t>(out.blocks, stream);
  out.value = array<double>(out.blocks * entries, stream);
  HostVector<std::int64_t> start(below.start.begin(), below.start.end());
  for (std::int64_t& place : start) place += of_top;
  const auto bytes = [](std::int64_t count, std::size_t of_one) { return static_cast<std::size_t>(count) * of_one; };
  copy_array(top.start, bytes(rows, sizeof(std::int64_t)), out.start, 0, stream);
  put_array(start, out.start, rows, stream);
  copy_array(top.value, bytes(of_top * entries, sizeof(double)), out.value, 0, stream);
  put_array(below.value, out.value, of_top * entries, stream);
  const Buffer map = array<std::int32_t>(static_cast<std::int64_t>(number.size()), stream);
  if (!number.empty()) copy_to_device(map.data(), number.data(), map.bytes(), stream);
  cuda::launch(take_numbers, of_top, kThreads, stream, of_top, map.as<std::int32_t>(), top.column.as<std::int32_t>(),
               out.column.as<std::int32_t>());
  put_array(below.column, out.column, of_top, stream);
  stream.synchronize();
  return out;
}

BlockRows with_gap(const BlockRows& a, std::int64_t own, std::int64_t gap, Stream& stream) {
  BlockRows out;
  out.row_size = a.row_size, out.col_size = a.col_size;
  out.count = a.count, out.cols = a.cols + gap, out.blocks = a.blocks;
  require_memory(stream.device(), 8 * (a.count + 1) + a.blocks * (4 + 8 * a.block_entries()), "a level of multigrid");
  out.start = array<std::int64_t>(a.count + 1, stream);
  out.column = array<std::int32_t>(a.blocks, stream);
  out.value = array<double>(a.blocks * a.block_entries(), stream);
  copy_array(a.start, out.start.bytes(), out.start, 0, stream);
  copy_array(a.column, out.column.bytes(), out.column, 0, stream);
  copy_array(a.value, out.value.bytes(), out.value, 0, stream);
  cuda::launch(open_gap, a.blocks, kThreads, stream, a.blocks, static_cast<std::int32_t>(own),
               static_cast<std::int32_t>(gap), out.column.as<std::int32_t>());
  stream.synchronize();
  return out;
}

BlockRows identity_rows(std::span<const std::int64_t> start, const HostVector<std::int32_t>& column, std::int64_t cols,
                        int size, Stream& stream) {
  BlockRows out;
  out.row_size = out.col_size = size;
  out.count = static_cast<std::int64_t>(start.size()) - 1, out.cols = cols, out.blocks = start.back();
  out.start = array<std::int64_t>(out.count + 1, stream);
  out.column = array<std::int32_t>(out.blocks, stream);
  copy_to_device(out.start.data(), start.data(), out.start.bytes(), stream);
  put_array(column, out.column, 0, stream);
  out.value = constant_modes(out.blocks, size, stream);
  stream.synchronize();
  return out;
}

BodiesAtGhosts bodies_at_ghosts(const BlockRows& a, const Couplings& couplings, const Bodies& bodies, Stream& stream) {
  const std::int64_t ghosts = a.cols - a.count;
  BodiesAtGhosts out;
  out.least.assign(static_cast<std::size_t>(ghosts), std::numeric_limits<std::int32_t>::max());
  out.most.assign(static_cast<std::size_t>(ghosts), -1);
  if (ghosts == 0) return out;
  const Buffer least = array<std::int32_t>(ghosts, stream), most = array<std::int32_t>(ghosts, stream);
  put_array(out.least, least, 0, stream), put_array(out.most, most, 0, stream);
  with_team(a.blocks, a.count, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
    cuda::launch(look_at_ghosts<kTeam>, a.count * kTeam, kThreads, stream, a.count, a.count, a.start.as<std::int64_t>(),
                 a.column.as<std::int32_t>(), couplings.square.as<double>(), bodies.of_node.as<std::int32_t>(),
                 least.as<std::int32_t>(), most.as<std::int32_t>());
  });
  copy_to_host(out.least.data(), least.data(), least.bytes(), stream);
  copy_to_host(out.most.data(), most.data(), most.bytes(), stream);
  return out;
}

}  // namespace shardmat::blocks
