#include "runtime/distributed_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/matrix/ordering.h"
#include "runtime/timer.h"

namespace shardmat {
namespace {

constexpr std::int64_t kReadSlice = std::int64_t{1} << 24;  // nonzeros read at a time, for progress
constexpr int kLengthsTag = 11;

/// Row pointers of the whole matrix on rank 0 (empty elsewhere); each rank counts an even share of the rows.
std::vector<std::int64_t> gather_row_ptr(const RowSource& source, Communicator& communicator) {
  const auto shares = even_starts(source.rows(), communicator.size());
  const auto begin = shares[static_cast<std::size_t>(communicator.rank())],
             end = shares[static_cast<std::size_t>(communicator.rank()) + 1];
  std::vector<std::int64_t> row_ptr;
  const auto lengths = communicator.together([&] {
    const bool root = communicator.rank() == 0;
    require_host_memory(8 * (end - begin) + (root ? 8 * (source.rows() + 1) : 0), "counting the nonzeros of all rows");
    if (root) row_ptr.resize(static_cast<std::size_t>(source.rows()) + 1);
    return source.row_lengths(begin, end);
  });
  if (communicator.rank() != 0) {
    communicator.send(lengths.data(), lengths.size() * sizeof(std::int64_t), 0, kLengthsTag);
    return {};
  }
  std::copy(lengths.begin(), lengths.end(), row_ptr.begin() + 1);
  for (int rank = 1; rank < communicator.size(); ++rank) {
    const auto first = shares[static_cast<std::size_t>(rank)], last = shares[static_cast<std::size_t>(rank) + 1];
    communicator.receive(row_ptr.data() + first + 1, static_cast<std::size_t>(last - first) * sizeof(std::int64_t), rank,
                         kLengthsTag);
  }
  std::partial_sum(row_ptr.begin(), row_ptr.end(), row_ptr.begin());
  return row_ptr;
}

/// Rows [begin, end) read in slices, so that progress shows and no transfer is huge.
HostCsr read_part(const RowSource& source, std::int64_t begin, std::int64_t end, const Progress& progress) {
  const HostVector<std::int64_t> lengths = source.row_lengths(begin, end);
  const std::int64_t nnz = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  require_host_memory(8 * (end - begin + 1) + 16 * nnz + std::min(nnz, kReadSlice) * 16, "loading this rank's rows");
  HostCsr part;
  part.rows = end - begin;
  part.cols = source.cols();
  part.row_ptr.reserve(static_cast<std::size_t>(part.rows) + 1);
  part.col_idx.resize(static_cast<std::size_t>(nnz));
  part.values.resize(static_cast<std::size_t>(nnz));
  std::int64_t done = 0;
  for (std::int64_t row = begin; row < end;) {
    std::int64_t last = row, slice_nnz = 0;
    while (last < end && (last == row || slice_nnz + lengths[static_cast<std::size_t>(last - begin)] <= kReadSlice))
      slice_nnz += lengths[static_cast<std::size_t>(last++ - begin)];
    const HostCsr slice = source.read_rows(row, last);
    if (slice.nnz() != slice_nnz)
      throw Error(ErrorKind::input, fmt::format("{}: rows {} to {} have {} nonzeros but promise {}; the file is damaged",
                                                source.name(), row, last, slice.nnz(), slice_nnz));
    for (std::int64_t i = 0; i < slice.rows; ++i) part.row_ptr.push_back(done + slice.row_ptr[static_cast<std::size_t>(i) + 1]);
    std::copy(slice.col_idx.begin(), slice.col_idx.end(), part.col_idx.begin() + done);
    std::copy(slice.values.begin(), slice.values.end(), part.values.begin() + done);
    done += slice_nnz;
    row = last;
    report(progress, "loading", done, nnz);
  }
  ValidationOptions validation;
  validation.allow_nonfinite = true;  // refused, where not wanted, when the file was written
  validation.first_row = begin;
  validation.source = source.name();
  validate(part.view(), validation);
  return part;
}

}  // namespace

DistributedMatrix::DistributedMatrix(const MatrixSource& source, Context& context, const LoadOptions& options)
    : context_(context), options_(options), rows_(source.rows->rows()), cols_(source.rows->cols()) {
  Communicator& communicator = context.communicator();
  if (options_.sort == LocalSort::as_file)
    options_.sort = source.file != nullptr && source.file->wants_local_sort() ? LocalSort::by_length : LocalSort::none;
  Timer timer;
  find_partition(source);
  times_.partition = timer.seconds();

  timer = Timer();
  const auto rank = static_cast<std::size_t>(communicator.rank());
  HostCsr part = communicator.together(
      [&] { return read_part(*source.rows, row_starts_[rank], row_starts_[rank + 1], options.progress); });
  local_nnz_ = part.nnz();
  nnz_ = communicator.all_reduce(local_nnz_, Reduction::sum);
  communicator.together([&] {
    order_rows(source, part);
    if (options_.column_sums) sum_columns(part);
    if (options_.sort != LocalSort::none) part = reordered(std::move(part));
  });
  times_.read = timer.seconds();

  timer = Timer();
  GatheredLayout layout = communicator.together([&] { return make_gathered_layout(x_starts_); });
  communicator.together([&] {
    require_memory(context.device(), layout.length() * static_cast<std::int64_t>(size_of(options_.type)), "the gathered x");
  });
  exchange_ = communicator.together(
      [&] { return make_exchange(options_.exchange, context.exchange_context(options_.type), std::move(layout)); });
  renumber_columns(part);
  times_.exchange = timer.seconds();

  timer = Timer();
  chosen_ = communicator.together(
      [&] { return choose_plan(part.view(), options_.type, options_.plan, context_.stream()); });
  times_.plan = timer.seconds();
}

void DistributedMatrix::find_partition(const MatrixSource& source) {
  Communicator& communicator = context_.communicator();
  const int parts = communicator.size();
  partition_origin_ = "computed when loading";
  if (source.file != nullptr)
    for (const StoredPartition& stored : source.file->partitions())
      if (stored.partition.parts() == parts && stored.partition.method == options_.method) {
        row_starts_ = stored.partition.row_starts;
        partition_origin_ = "stored in the file";
      }
  if (row_starts_.empty()) {
    const std::vector<std::int64_t> row_ptr = gather_row_ptr(*source.rows, communicator);
    row_starts_.resize(static_cast<std::size_t>(parts) + 1);
    communicator.together([&] {
      if (communicator.rank() == 0) row_starts_ = make_partition(options_.method, row_ptr, parts).row_starts;
    });
    communicator.broadcast(std::span<std::int64_t>(row_starts_));
  }
  x_starts_ = rows_ == cols_ ? row_starts_ : even_starts(cols_, parts);
}

/// local_order_, row_ids_ and x_ids_. Square matrices are permuted symmetrically, so that y can become x as it stands.
void DistributedMatrix::order_rows(const MatrixSource& source, const HostCsr& part) {
  const auto rank = static_cast<std::size_t>(context_.communicator().rank());
  if (options_.sort == LocalSort::by_length) {
    local_order_ = order_by_row_length(part.row_ptr);
  } else {
    local_order_.resize(static_cast<std::size_t>(part.rows));
    std::iota(local_order_.begin(), local_order_.end(), std::int64_t{0});
  }
  const std::int64_t begin = row_starts_[rank], end = row_starts_[rank + 1];
  HostVector<std::int64_t> original;
  if (source.rows->permuted()) original = source.rows->permutation(begin, end);
  row_ids_.resize(local_order_.size());
  for (std::size_t i = 0; i < local_order_.size(); ++i)
    row_ids_[i] = original.empty() ? begin + local_order_[i] : original[static_cast<std::size_t>(local_order_[i])];
  if (rows_ == cols_) {
    x_ids_ = row_ids_;
  } else {
    x_ids_.resize(static_cast<std::size_t>(x_starts_[rank + 1] - x_starts_[rank]));
    std::iota(x_ids_.begin(), x_ids_.end(), x_starts_[rank]);
  }
}

HostCsr DistributedMatrix::reordered(HostCsr part) const {
  HostCsr result;
  result.rows = part.rows;
  result.cols = part.cols;
  result.row_ptr.resize(part.row_ptr.size());
  result.row_ptr[0] = 0;
  const auto old_start = [&](std::size_t i) { return part.row_ptr[static_cast<std::size_t>(local_order_[i])]; };
  const auto length = [&](std::size_t i) { return part.row_ptr[static_cast<std::size_t>(local_order_[i]) + 1] - old_start(i); };
  for (std::size_t i = 0; i < local_order_.size(); ++i) result.row_ptr[i + 1] = result.row_ptr[i] + length(i);
  result.col_idx.resize(part.col_idx.size());
  result.values.resize(part.values.size());
  parallel_ranges(part.rows, 1 << 12, [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      std::copy_n(part.col_idx.begin() + old_start(i), length(i), result.col_idx.begin() + result.row_ptr[i]);
      std::copy_n(part.values.begin() + old_start(i), length(i), result.values.begin() + result.row_ptr[i]);
    }
  });
  return result;
}

/// Global columns become positions in the gathered x. With local sorting of a square matrix every part of x is in that part's
/// order, so all ranks learn each other's (4 bytes a column).
void DistributedMatrix::renumber_columns(HostCsr& part) const {
  const GatheredLayout& layout = exchange_->layout();
  HostVector<std::int32_t> moved;  // moved[p·stride + old local position] = new local position
  if (options_.sort != LocalSort::none && rows_ == cols_) {
    moved.resize(static_cast<std::size_t>(layout.length()));
    std::int32_t* mine = moved.data() + layout.stride * context_.communicator().rank();
    for (std::size_t i = 0; i < local_order_.size(); ++i) mine[local_order_[i]] = static_cast<std::int32_t>(i);
    context_.communicator().all_gather_slots(moved.data(), static_cast<std::size_t>(layout.stride) * sizeof(std::int32_t));
  }
  parallel_ranges(part.nnz(), 1 << 16, [&](std::int64_t first, std::int64_t last) {
    std::int64_t part_begin = 0, part_end = 0, shift = 0;  // of the part that held the last column: neighbours share it
    for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
      std::int64_t& column = part.col_idx[k];
      if (column < part_begin || column >= part_end) {
        const auto above = std::upper_bound(layout.starts.begin(), layout.starts.end(), column);
        part_begin = *(above - 1);
        part_end = *above;
        shift = (above - 1 - layout.starts.begin()) * layout.stride - part_begin;
      }
      const std::int64_t position = column + shift;
      column = moved.empty() ? position : part_begin + shift + moved[static_cast<std::size_t>(position)];
    }
  });
  part.cols = layout.length();
}

void DistributedMatrix::sum_columns(const HostCsr& part) {
  require_host_memory(16 * cols_, "column sums for the sampled verification");
  column_sums_.sum.assign(static_cast<std::size_t>(cols_), 0.0);
  column_sums_.absolute_sum.assign(static_cast<std::size_t>(cols_), 0.0);
  for (std::size_t k = 0; k < part.values.size(); ++k) {
    const double value = options_.type == ValueType::f32 ? static_cast<double>(static_cast<float>(part.values[k])) : part.values[k];
    column_sums_.sum[static_cast<std::size_t>(part.col_idx[k])] += value;
    column_sums_.absolute_sum[static_cast<std::size_t>(part.col_idx[k])] += std::abs(value);
  }
}

void DistributedMatrix::multiply(double alpha, double beta, void* y, Stream& stream) const {
  exchange_->start(stream);
  exchange_->finish(stream);
  chosen_.plan->multiply(alpha, exchange_->gathered_x(), beta, y, stream);
}

}  // namespace shardmat
