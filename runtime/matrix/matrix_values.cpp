#include "runtime/matrix/matrix_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/diagonal.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/kept_upload.h"
#include "kernels/formats/upload.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/value_route.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
namespace {

std::string name_of_place(Device device) {
  return device.backend == Backend::host ? "the host" : fmt::format("GPU {}", device.ordinal);
}

/// `values`: in memory of the stream's device.
void require_finite(const void* values, std::int64_t count, ValueType type, Stream& stream) {
  if (const auto wrong = first_not_finite(values, count, type, stream))
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
}

}  // namespace

MatrixValues::MatrixValues(MatrixRows& rows, const RowMap& y_rows, const RowMap& x_rows, const ColumnMap& columns,
                           std::shared_ptr<const ValueRoute> route, std::int64_t first_row, const MatrixOptions& options)
    : rows_(rows),
      y_rows_(y_rows),
      x_rows_(x_rows),
      columns_(columns),
      route_(std::move(route)),
      first_row_(first_row),
      options_(options),
      context_(y_rows.context()) {}

/// Values that this rank gave become values of the nonzeros that it owns.
HostVector<double> MatrixValues::bring(const ConstDense& values, Stream& stream) const {
  const HostVector<double> given = context_.communicator().run_agreed([&] {
    require_values(values, route_->given(), context_.device());
    Stream host(Device{});
    if (values.device.backend == Backend::host) require_finite(values.data, values.rows, values.type, host);
    return to_host(values.data, values.rows, values.type, values.device.backend == Backend::host ? host : stream);
  });
  return route_->bring(given, context_.communicator());
}

void MatrixValues::update(const ConstDense& values, Stream& stream) {
  context_.communicator().run_agreed([&] { require_updatable(options_.values); });
  const bool waits = route_ != nullptr || !(values.device == context_.device()) || values.type != options_.type;
  if (waits) context_.wait(stream, "the work on a GPU before new values");  // with a deadline, as products wait for ranks
  if (route_ == nullptr) return update_nonzeros(values, stream);
  const HostVector<double> sums = bring(values, stream);
  ConstDense of_nonzeros;
  of_nonzeros.data = sums.data(), of_nonzeros.rows = rows_.nnz();
  update_nonzeros(of_nonzeros, stream);
  stream.synchronize();  // `sums` is read until then on the host
}

void MatrixValues::update_nonzeros(const ConstDense& values, Stream& stream) {
  const void *from = nullptr, *on_host = nullptr;
  context_.communicator().run_agreed([&] {
    require_values(values, rows_.nnz(), context_.device());
    from = values.data;
    if (!(values.device == context_.device())) {
      const std::size_t bytes = static_cast<std::size_t>(rows_.nnz()) * size_of(values.type);
      if (staging_.bytes() < bytes) {
        staging_ = Buffer();
        require_memory(context_.device(), static_cast<std::int64_t>(bytes), "new values on their way to the device");
        staging_ = Buffer(context_.device(), bytes);
      }
      dispatch(values.type, [&]<class Tag>(Tag) {
        using T = typename Tag::type;
        const auto* const given = static_cast<const T*>(from);
        fill_ranges<T>(staging_, rows_.nnz(), stream, [given](std::int64_t begin, std::int64_t end, T* out) {
          std::copy(given + begin, given + end, out);
        });
      });
      on_host = std::exchange(from, staging_.data());
    }
    if (values.device.backend == Backend::host) require_finite(from, rows_.nnz(), values.type, stream);
    require_values_in_range(options_.type, from, rows_.nnz(), values.type, "the new values", stream);
  });
  ++version_;
  if (rows_.stored()) rows_.update(from, on_host, values.type, stream);
  else context_.communicator().run_agreed([&] { rows_.update(from, on_host, values.type, stream); });  // into host memory
  for (auto& [size, diagonal] : diagonals_)
    diagonal.picker.pick(from, values.type, diagonal.values.data(), sum_type(options_.type), stream);
}

/// For each entry of the blocks, where its value lies among those that update_values() takes; -1 where none is stored.
/// Blocks of any size, 1 too, go by the order of the source; the points of the diagonal lie as the rows do.
MatrixValues::DiagonalPlaces MatrixValues::diagonal_places(const CsrView& csr, std::int64_t block_size) const {
  const bool points = block_size == kPoints;
  const std::int64_t size = points ? 1 : block_size;
  const std::int64_t blocks = (y_rows_.local_rows() + size - 1) / size;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const bool countable = blocks == 0 || size <= kMost / 8 / size / blocks;
  require_host_memory(countable ? 16 * blocks * size * size : kMost, "the places of the diagonal");
  DiagonalPlaces found{HostVector<std::int64_t>(static_cast<std::size_t>(blocks * size * size)), {}};
  found.values.resize(found.positions.size());
  parallel_ranges(std::ssize(found.positions), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    std::fill(found.positions.begin() + begin, found.positions.begin() + end, std::int64_t{-1});
    std::fill(found.values.begin() + begin, found.values.begin() + end, 0.0);
  });
  const std::int64_t first = columns_.first_own(), own = columns_.own();
  parallel_ranges(csr.rows, 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const std::int64_t row = points ? static_cast<std::int64_t>(i) : y_rows_.place(i);
      for (std::int64_t k = csr.row_ptr[i]; k < csr.row_ptr[i + 1]; ++k) {
        const std::int64_t at = csr.col_idx[static_cast<std::size_t>(k)] - first;
        if (at < 0 || at >= own) continue;
        const std::int64_t column = points ? at : y_rows_.place(static_cast<std::size_t>(at));
        if (column / size != row / size) continue;
        const auto to = static_cast<std::size_t>(row * size + column % size);
        found.positions[to] = rows_.value_starts()[i] + k - csr.row_ptr[i];
        found.values[to] = rounded(options_.type, static_cast<double>(csr.values[static_cast<std::size_t>(k)]));
      }
    }
  });
  return found;
}

MatrixValues::Diagonal& MatrixValues::find_diagonal(std::int64_t size, Stream& stream) {
  context_.communicator().run_agreed([&] {
    if (y_rows_.size() != x_rows_.size())
      throw Error(ErrorKind::usage,
                  fmt::format("a matrix of {} × {} has no diagonal; it must be square", y_rows_.size(), x_rows_.size()));
    if (size != kPoints && (size < 1 || (y_rows_.size() > 0 && size > y_rows_.size())))
      throw Error(ErrorKind::usage, fmt::format("diagonal blocks of size {}; it must be 1 to {}", size, y_rows_.size()));
    if (is_half(options_.type))
      throw Error(ErrorKind::usage,
                  fmt::format("the diagonal of a matrix in {} cannot be had; store it in f64 or f32", name(options_.type)));
    if (size != kPoints && y_rows_.local_rows() > 0 && first_row_ % size != 0)
      throw Error(
          ErrorKind::usage,
          fmt::format("diagonal blocks of size {} are cut by the parts: a rank begins at row {}. Take a size that divides "
                      "this number (1 always does), or one rank, or another number of ranks. A program that gives each "
                      "rank its rows can give it a multiple of {} rows{}",
                      size, first_row_, size,
                      y_rows_.route() == nullptr ? "" : ", and keep them there instead of spreading them anew"),
          "node_block_size");
    if (diagonals_.count(size) != 0) return;
    if (!rows_.on_host())
      throw Error(ErrorKind::usage, "the diagonal is looked for in the host rows, which were dropped; ask for it before");
    const CsrView rows = rows_.on_host_now(stream);
    Diagonal found;
    const auto allocate = [&](std::size_t entries) {
      const std::size_t bytes = entries * size_of(sum_type(options_.type));
      require_memory(context_.device(), static_cast<std::int64_t>(bytes), "the diagonal");
      found.values = Buffer(context_.device(), bytes);
    };
    const auto uploaded = size == kPoints && options_.values == Values::fixed ? KeptUpload::find_exact(rows) : nullptr;
    if (uploaded) {  // nobody asks for the places
      allocate(static_cast<std::size_t>(rows.rows));
      copy_diagonal(*uploaded, columns_.first_own(), found.values.data(), stream);
      diagonals_.emplace(size, std::move(found));
      return;
    }
    const DiagonalPlaces places = diagonal_places(rows, size);
    found.picker = ValuePicker(places.positions, stream);
    allocate(places.values.size());
    to_device(found.values.data(), places.values, sum_type(options_.type), stream);
    diagonals_.emplace(size, std::move(found));
  });
  return diagonals_.at(size);
}

DistributedVector MatrixValues::diagonal(const std::shared_ptr<const RowMap>& map, Stream& stream) {
  const Diagonal& found = find_diagonal(kPoints, stream);
  DistributedVector vector(map, sum_type(options_.type));
  copy_on_device(vector.view().data, found.values.data(), found.values.bytes(), stream);
  return vector;
}

DiagonalBlocks MatrixValues::block_diagonal(std::int64_t size, Stream& stream) {
  const Diagonal& found = find_diagonal(size == kPoints ? -1 : size, stream);  // a size of 0 is refused like one below
  DiagonalBlocks blocks{size, (y_rows_.local_rows() + size - 1) / size, sum_type(options_.type), {}};
  context_.communicator().run_agreed([&] {
    require_memory(context_.device(), static_cast<std::int64_t>(found.values.bytes()), "the blocks of the diagonal");
    blocks.values = Buffer(context_.device(), found.values.bytes());
  });
  copy_on_device(blocks.values.data(), found.values.data(), found.values.bytes(), stream);
  return blocks;
}

}  // namespace shardmat
