// The values of a distributed matrix: new ones, and those near the diagonal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/base/first_where.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/stored_rows.h"
#include "runtime/matrix/value_route.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
namespace {

std::string name_of_place(Device device) {
  return device.backend == Backend::host ? "the host" : fmt::format("GPU {}", device.ordinal);
}

/// Values in host memory.
void require_finite(const ConstDense& values) {
  const auto wrong = dispatch(values.type, [&]<class Tag>(Tag) {
    const auto* const all = static_cast<const typename Tag::type*>(values.data);
    return first_where(values.rows, 1 << 16, [all](std::int64_t i) { return !std::isfinite(all[i]); });
  });
  if (wrong)
    throw Error(ErrorKind::input, fmt::format("new value {} is NaN or infinity; values must be finite", *wrong + 1));
}

void require_values(const ConstDense& values, std::int64_t nnz, Device device) {
  if (values.rows != nnz || values.columns != 1)
    throw Error(ErrorKind::usage,
                fmt::format("new values are {} × {}, but this rank gave {}", values.rows, values.columns, nnz));
  if (is_half(values.type))
    throw Error(ErrorKind::usage, fmt::format("new values must be f64 or f32, and are {}", name(values.type)));
  if (values.device.backend != Backend::host && !(values.device == device))
    throw Error(ErrorKind::usage, fmt::format("new values are on {}, but the matrix is on {}", name_of_place(values.device),
                                              name_of_place(device)));
  if (values.order == DenseOrder::row_major && values.leading != 1)
    throw Error(ErrorKind::usage,
                fmt::format("new values have gaps (leading dimension {}); they must lie one after another", values.leading));
  if (values.data == nullptr && nnz > 0) throw Error(ErrorKind::usage, "new values have no memory (null pointer)");
  if (values.device.backend == Backend::host) require_finite(values);
}

}  // namespace

/// Values that this rank gave become values of the nonzeros that it owns.
HostVector<double> DistributedMatrix::bring_values(const ConstDense& values, Stream& stream) const {
  const HostVector<double> given = context_.communicator().together([&] {
    require_values(values, part_.route->given(), context_.device());
    Stream host(Device{});
    return to_host(values.data, values.rows, values.type, values.device.backend == Backend::host ? host : stream);
  });
  return part_.route->bring(given, context_.communicator());
}

void DistributedMatrix::update_values(const ConstDense& values, Stream& stream) {
  const ContextScope scope(context_);
  context_.communicator().together([&] { require_updatable(options_.values); });
  const bool waits = part_.route != nullptr || !(values.device == context_.device()) || values.type != options_.type;
  if (waits) context_.wait(stream, "the work on a GPU before new values");  // with a deadline, as products wait for ranks
  if (part_.route == nullptr) return update_nonzeros(values, stream);
  const HostVector<double> sums = bring_values(values, stream);
  ConstDense of_nonzeros;
  of_nonzeros.data = sums.data(), of_nonzeros.rows = local_nnz_;
  update_nonzeros(of_nonzeros, stream);
  stream.synchronize();  // `sums` is read until then on the host
}

void DistributedMatrix::update_nonzeros(const ConstDense& values, Stream& stream) {
  const void* from = nullptr;
  context_.communicator().together([&] {
    require_values(values, local_nnz_, context_.device());
    from = values.data;
    if (!(values.device == context_.device())) {
      const std::size_t bytes = static_cast<std::size_t>(local_nnz_) * size_of(values.type);
      if (staging_.bytes() < bytes) {
        staging_ = Buffer();
        require_memory(context_.device(), static_cast<std::int64_t>(bytes), "new values on their way to the device");
        staging_ = Buffer(context_.device(), bytes);
      }
      copy_to_device(staging_.data(), from, bytes, stream);
      from = staging_.data();
    }
    require_values_in_range(options_.type, from, local_nnz_, values.type, "the new values", stream);
  });
  ++values_version_;
  if (blocks_.empty()) {  // the first product will store them
    context_.communicator().together([&] { take_host_values(from, values.type, stream); });
    return;
  }
  for (StoredRows& block : blocks_) block.update_values(from, local_nnz_, values.type, stream);
  for (auto& [size, diagonal] : diagonals_)
    diagonal.picker.pick(from, values.type, diagonal.values.data(), sum_type(options_.type), stream);
  host_rows_are_old_ = true;
  updated_.record(stream);
}

/// Writes values on the device into the host rows.
void DistributedMatrix::take_host_values(const void* values, ValueType type, Stream& stream) {
  const HostVector<double> given = to_host(values, local_nnz_, type, stream);
  put_into_host_rows(given);
  for (auto& [size, diagonal] : diagonals_)
    diagonal.picker.pick(values, type, diagonal.values.data(), sum_type(options_.type), stream);
}

void DistributedMatrix::put_into_host_rows(std::span<const double> values) {
  CompactCsr& csr = part_.csr;
  csr.change_values([&](auto host_values) {
    using Value = typename decltype(host_values)::value_type;
    parallel_ranges(csr.rows, 1 << 12, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const auto first = values.begin() + part_.value_starts[i];
        std::transform(first, first + (csr.row_ptr[i + 1] - csr.row_ptr[i]), host_values.begin() + csr.row_ptr[i],
                       [](double value) { return static_cast<Value>(value); });
      }
    });
  });
}

/// Before rows are converted again.
void DistributedMatrix::refresh_host_rows(Stream& stream) {
  if (!host_rows_are_old_ || part_.csr.row_ptr.empty()) return;
  stream.wait_for(updated_);
  require_host_memory(16 * local_nnz_, "the current values of the matrix");
  HostVector<double> values(static_cast<std::size_t>(local_nnz_));
  std::fill(values.begin(), values.end(), 0.0);
  for (const StoredRows& block : blocks_) block.read_values(values, stream);
  put_into_host_rows(values);
  host_rows_are_old_ = false;
}

CsrView DistributedMatrix::host_rows(Stream& stream) {
  require_rows();
  refresh_host_rows(stream);
  return part_.csr.view();
}

/// For each entry of the blocks, where its value lies among those that update_values() takes; -1 where none is stored.
/// Blocks of any size, 1 too, go by the order of the source; the points of the diagonal lie as the rows do.
HostVector<std::int64_t> DistributedMatrix::diagonal_positions(std::int64_t block_size) const {
  const bool points = block_size == kPoints;
  const std::int64_t size = points ? 1 : block_size;
  const CsrView csr = part_.csr.view();
  const std::int64_t blocks = (local_rows() + size - 1) / size;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const bool countable = blocks == 0 || size <= kMost / 8 / size / blocks;
  require_host_memory(countable ? 8 * blocks * size * size : kMost, "the places of the diagonal");
  HostVector<std::int64_t> positions(static_cast<std::size_t>(blocks * size * size));
  std::fill(positions.begin(), positions.end(), std::int64_t{-1});
  const std::int64_t first = map_->first_own(), own = map_->own();
  parallel_ranges(csr.rows, 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const std::int64_t row = points ? static_cast<std::int64_t>(i) : local_order()[i];
      for (std::int64_t k = csr.row_ptr[i]; k < csr.row_ptr[i + 1]; ++k) {
        const std::int64_t at = csr.col_idx[static_cast<std::size_t>(k)] - first;
        if (at < 0 || at >= own) continue;
        const std::int64_t column = points ? at : local_order()[static_cast<std::size_t>(at)];
        if (column / size == row / size)
          positions[static_cast<std::size_t>(row * size + column % size)] = part_.value_starts[i] + k - csr.row_ptr[i];
      }
    }
  });
  return positions;
}

DistributedMatrix::Diagonal& DistributedMatrix::find_diagonal(std::int64_t size, Stream& stream) {
  context_.communicator().together([&] {
    if (rows() != cols())
      throw Error(ErrorKind::usage, fmt::format("a matrix of {} × {} has no diagonal; it must be square", rows(), cols()));
    if (size != kPoints && (size < 1 || (rows() > 0 && size > rows())))
      throw Error(ErrorKind::usage, fmt::format("diagonal blocks of size {}; it must be 1 to {}", size, rows()));
    if (is_half(options_.type))
      throw Error(ErrorKind::usage,
                  fmt::format("the diagonal of a matrix in {} cannot be had; store it in f64 or f32", name(options_.type)));
    if (size != kPoints && local_rows() > 0 && part_.first_row % size != 0)
      throw Error(
          ErrorKind::usage,
          fmt::format("diagonal blocks of size {} are cut by the parts: a rank begins at row {}. Take a size that divides "
                      "this number (1 always does), or one rank, or another number of ranks. A program that gives each "
                      "rank its rows can give it a multiple of {} rows{}",
                      size, part_.first_row, size,
                      row_route() == nullptr ? "" : ", and keep them there instead of spreading them anew"),
          "node_block_size");
    if (diagonals_.count(size) != 0) return;
    if (part_.csr.row_ptr.empty())
      throw Error(ErrorKind::usage, "the diagonal is looked for in the host rows, which were dropped; ask for it before");
    refresh_host_rows(stream);
    const HostVector<std::int64_t> positions = diagonal_positions(size);
    Diagonal found;
    found.picker = ValuePicker(positions, stream);
    const auto bytes = positions.size() * size_of(sum_type(options_.type));
    require_memory(context_.device(), static_cast<std::int64_t>(bytes), "the diagonal");
    found.values = Buffer(context_.device(), bytes);
    require_host_memory(8 * (local_nnz_ + std::ssize(positions)), "the values of the matrix in their order");
    HostVector<double> given(static_cast<std::size_t>(local_nnz_));
    const CsrView csr = part_.csr.view();
    for (std::size_t i = 0; i < part_.value_starts.size(); ++i)
      std::copy(csr.values.begin() + csr.row_ptr[i], csr.values.begin() + csr.row_ptr[i + 1],
                given.begin() + part_.value_starts[i]);
    HostVector<double> values(positions.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = positions[i] < 0 ? 0 : rounded(options_.type, given[static_cast<std::size_t>(positions[i])]);
    to_device(found.values.data(), values, sum_type(options_.type), stream);
    diagonals_.emplace(size, std::move(found));
  });
  return diagonals_.at(size);
}

DistributedVector DistributedMatrix::diagonal(Stream& stream) {
  const ContextScope scope(context_);
  const Diagonal& found = find_diagonal(kPoints, stream);
  DistributedVector vector(*this, VectorLayout::rows, sum_type(options_.type));
  copy_on_device(vector.view().data, found.values.data(), found.values.bytes(), stream);
  return vector;
}

DiagonalBlocks DistributedMatrix::block_diagonal(std::int64_t size, Stream& stream) {
  const ContextScope scope(context_);
  const Diagonal& found = find_diagonal(size == kPoints ? -1 : size, stream);  // a size of 0 is refused like one below
  DiagonalBlocks blocks{size, (local_rows() + size - 1) / size, sum_type(options_.type), {}};
  context_.communicator().together([&] {
    require_memory(context_.device(), static_cast<std::int64_t>(found.values.bytes()), "the blocks of the diagonal");
    blocks.values = Buffer(context_.device(), found.values.bytes());
  });
  copy_on_device(blocks.values.data(), found.values.data(), found.values.bytes(), stream);
  return blocks;
}

}  // namespace shardmat
