#include "runtime/distributed_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "kernels/matrix/ordering.h"
#include "kernels/spmm.h"
#include "runtime/all_columns.h"
#include "runtime/boundary_rows.h"
#include "runtime/column_blocks.h"
#include "runtime/plan_cache.h"

namespace shardmat {
namespace {

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

/// Rows of a part in the given order (positions counted from `begin`), read in slices. The source has checked them.
HostCsr read_part(const RowSource& source, std::int64_t begin, std::span<const std::int64_t> lengths,
                  std::span<const std::int64_t> order, const Progress& progress) {
  HostCsr part;
  part.rows = static_cast<std::int64_t>(lengths.size());
  part.cols = source.cols();
  part.row_ptr.resize(lengths.size() + 1);
  part.row_ptr[0] = 0;
  HostVector<std::int64_t> place(lengths.size());  // where in the part the row at a position of the source begins
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[static_cast<std::size_t>(order[i])] = part.row_ptr[i];
    part.row_ptr[i + 1] = part.row_ptr[i] + lengths[static_cast<std::size_t>(order[i])];
  }
  part.col_idx.resize(static_cast<std::size_t>(part.nnz()));
  part.values.resize(static_cast<std::size_t>(part.nnz()));
  std::int64_t done = 0;
  for_each_slice(source, begin, begin + part.rows, [&](std::int64_t first, const CsrView& slice) {
    parallel_ranges(slice.rows, 1 << 12, [&](std::int64_t lo, std::int64_t hi) {
      for (auto i = static_cast<std::size_t>(lo); i < static_cast<std::size_t>(hi); ++i) {
        const std::size_t row = static_cast<std::size_t>(first - begin) + i;
        const std::int64_t from = slice.row_ptr[i] - slice.row_ptr[0], length = slice.row_ptr[i + 1] - slice.row_ptr[i];
        if (length != lengths[row])
          throw Error(ErrorKind::input,
                      fmt::format("{}: row {} has {} nonzeros but was counted with {}; the file changed or "
                                  "is damaged",
                                  source.name(), begin + static_cast<std::int64_t>(row), length, lengths[row]));
        std::copy_n(slice.col_idx.begin() + from, length, part.col_idx.begin() + place[row]);
        std::copy_n(slice.values.begin() + from, length, part.values.begin() + place[row]);
      }
    });
    report(progress, "loading", done += slice.nnz(), part.nnz());
  });
  return part;
}

/// Throws Error(resources) unless this rank's entries of x fit with their numbers, a column of them at least.
void require_x(std::int64_t entries, const LoadOptions& options) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t bytes = 8 + static_cast<std::int64_t>(size_of(options.type));
  require_host_memory(entries > kMost / bytes ? kMost : entries * bytes,
                      fmt::format("x of {} entries on a rank", human_count(entries)).c_str());
}

}  // namespace

void require_column_block(const LoadOptions& load) {
  const std::int64_t all = load.right_hand_sides, some = load.column_block;
  if (some == 0) return;
  if (all == 1) throw Error(ErrorKind::usage, "--column-block is for several right-hand sides: add --rhs");
  if (some > 1 && all % some == 0) return;
  std::vector<std::string> choices;
  for (std::int64_t width = 2; width <= all; ++width)
    if (all % width == 0) choices.push_back(std::to_string(width));
  throw Error(ErrorKind::usage,
              fmt::format("--column-block {} does not divide the {} right-hand sides into blocks of two or "
                          "more; choose {}",
                          some, all, join_choices(choices)));
}

DistributedMatrix::DistributedMatrix(const MatrixSource& source, Context& context, const LoadOptions& options)
    : context_(context), options_(options), rows_(source.rows->rows()), cols_(source.rows->cols()) {
  Communicator& communicator = context.communicator();
  communicator.together([&] { require_column_block(options_); });
  if (options_.sort == LocalSort::as_file)
    options_.sort = source.file != nullptr && source.file->wants_local_sort() ? LocalSort::by_length : LocalSort::none;
  Timer timer;
  find_partition(source);
  times_.partition = timer.seconds();

  timer = Timer();
  HostCsr part = communicator.together([&] { return load_part(source); });
  local_nnz_ = part.nnz();
  nnz_ = communicator.all_reduce(local_nnz_, Reduction::sum);
  communicator.together([&] {
    if (nnz_ / communicator.size() > options_.column_sums_above) sum_columns(part);
  });
  times_.read = timer.seconds();

  timer = Timer();
  const std::optional<std::int64_t> moved_last = communicator.together([&] { return order_boundary_last(part); });
  const std::int64_t boundary_rows = moved_last.value_or(0);
  const bool ordered = rows_ == cols_ && (options_.sort != LocalSort::none || boundary_rows > 0);
  const XParts parts{x_starts_, ordered ? std::span<const std::int64_t>(local_order_) : std::span<const std::int64_t>()};
  ExchangeContext moving = context.exchange_context(options_.type, options_.right_hand_sides);
  moving.beside = communicator.all_reduce(moved_last ? 1 : 0, Reduction::min) == 1;
  x_ = make_x(parts, moving, part.col_idx);
  communicator.together([&] { x_->renumber(part.col_idx); });
  part.cols = exchange().length();
  std::vector<bool> touched(static_cast<std::size_t>(part.cols));
  for (const std::int64_t column : part.col_idx) touched[static_cast<std::size_t>(column)] = true;
  x_entries_ = std::count(touched.begin(), touched.end(), true);
  times_.exchange = timer.seconds();

  timer = Timer();
  const std::optional<std::int64_t> first_late = x_->first_late_entry();
  const bool time_counts = first_late && moving.beside && options_.right_hand_sides > 1;
  const double arriving_seconds = time_counts ? time_exchange(x_->exchange(), moving) : 0;
  std::optional<LateX> late;
  if (first_late && boundary_rows > 0) late = {*first_late, arriving_seconds};
  communicator.together([&] { plan_rows(part, x_->takes_two_blocks() ? boundary_rows : 0, late); });
  times_.plan = timer.seconds();
}

DistributedMatrix::~DistributedMatrix() = default;

/// What the device has to hold beside X: Y, the matrix, and on GPUs the matrix as it comes while it is converted; on the
/// host X and Y as they are read and written.
std::int64_t DistributedMatrix::bytes_beside_x() const {
  constexpr std::int64_t kOfLibraries = 64 << 20;
  const std::int64_t matrix_bytes = local_nnz_ * static_cast<std::int64_t>(sizeof(std::int32_t) + size_of(options_.type)),
                     y_bytes = local_rows() * static_cast<std::int64_t>(y_entry_bytes());
  if (context_.device().backend == Backend::host)
    return matrix_bytes + y_bytes + 8 * options_.right_hand_sides * (std::ssize(x_ids_) + local_rows());
  const std::string& kernel = options_.plan.kernel;
  const bool converts = kernel == "auto" || find_spmm_kernel(kernel, Backend::cuda).format != "csr";
  return (converts ? 2 : 1) * matrix_bytes + y_bytes + kOfLibraries;
}

/// All right-hand sides if X fits with matrix and Y on all ranks, else so many of them, a divisor, as fit; the fewest if
/// none do, and who finds no room says how much is missing.
std::int64_t DistributedMatrix::columns_that_fit(const XParts& parts, std::span<const std::int64_t> columns) const {
  Communicator& communicator = context_.communicator();
  const std::int64_t all = options_.right_hand_sides, own = std::ssize(x_ids_),
                     value = static_cast<std::int64_t>(size_of(options_.type));
  const std::int64_t room = communicator.together([&] { return available_memory(context_.device()) - bytes_beside_x(); });
  const std::int64_t most_entries = 2 * cols_ + own * communicator.size();  // that any exchange holds
  const auto everywhere = [&](bool here) { return communicator.all_reduce(here ? 1 : 0, Reduction::min) == 1; };
  if (everywhere(most_entries * all * value <= room)) return all;
  const std::int64_t entries = entries_held(options_.exchange, communicator, parts, columns);
  const std::vector<std::int64_t> widths = column_blocks_of(all);
  const auto bytes = [&](std::int64_t width) {
    return value * (width == all ? entries * all : own * all + 2 * entries * width);
  };
  for (const std::int64_t width : widths)
    if (everywhere(bytes(width) <= room)) return width;
  return everywhere(bytes(widths.back()) < bytes(all)) ? widths.back() : all;
}

/// X moves at once, or some columns at a time if that is asked for or not all fit.
std::unique_ptr<MovingX> DistributedMatrix::make_x(const XParts& parts, const ExchangeContext& moving,
                                                   std::span<const std::int64_t> columns) {
  const std::int64_t all = options_.right_hand_sides, asked = options_.column_block;
  const bool one_way = context_.communicator().size() == 1 || all == 1;
  const std::int64_t width = one_way ? all : asked > 0 ? asked : columns_that_fit(parts, columns);
  if (width == all)
    return std::make_unique<AllColumns>(context_, all, make_exchange(options_.exchange, moving, parts, columns));
  why_column_block_ = asked > 0 ? "asked for" : "more do not fit";
  const bool beside = options_.overlap != Overlap::no;
  return std::make_unique<ColumnBlocks>(context_, options_.type, all, width, beside, options_.exchange, parts, columns);
}

/// Whether rows may be multiplied while x moves: by two products, or by one that begins early, as the kernels of packed rows
/// on a GPU can where the rows of X begin at multiples of 16 bytes.
bool DistributedMatrix::may_overlap() const {
  if (options_.overlap == Overlap::no || context_.communicator().size() == 1) return false;
  if (options_.column_block > 0 && options_.column_block < options_.right_hand_sides) return false;
  if (options_.overlap == Overlap::yes || options_.right_hand_sides == 1) return true;
  const std::size_t entry_bytes = static_cast<std::size_t>(options_.right_hand_sides) * size_of(options_.type);
  return context_.device().backend == Backend::cuda && !is_half(options_.type) && entry_bytes % 16 == 0;
}

/// Rows that wait for x go last. Returns how many there are; nothing if they hold most nonzeros or none may be multiplied
/// while x moves.
std::optional<std::int64_t> DistributedMatrix::order_boundary_last(HostCsr& part) {
  if (!may_overlap()) return std::nullopt;
  const auto rank = static_cast<std::size_t>(context_.communicator().rank());
  const BoundaryRows boundary = find_boundary_rows(part, x_starts_[rank], x_starts_[rank + 1]);
  if (2 * boundary.nnz > part.nnz()) return std::nullopt;
  if (boundary.rows == 0) return 0;
  const auto moved = [order = boundary.order()](const HostVector<std::int64_t>& from) {
    HostVector<std::int64_t> to(from.size());
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[static_cast<std::size_t>(order[i])];
    return to;
  };
  local_order_ = moved(local_order_);
  row_ids_ = moved(row_ids_);
  if (rows_ == cols_) x_ids_ = row_ids_;
  move_boundary_last(part, boundary);
  return boundary.rows;
}

void DistributedMatrix::plan_rows(const HostCsr& part, std::int64_t boundary_rows, std::optional<LateX> late) {
  const std::int64_t interior_rows = part.rows - boundary_rows;
  const CsrView interior = part.view().rows_between(0, interior_rows);
  const bool may_split = boundary_rows > 0 && (options_.right_hand_sides == 1 || options_.overlap == Overlap::yes);
  if (late || !may_split) add_block(part.view(), late);
  if (late && blocks_[0].begins_early()) {
    overlapped_nnz_ = interior.nnz();
  } else if (may_split) {
    overlapped_nnz_ = interior.nnz();
    blocks_.clear();
    add_block(interior);
    add_block(part.view().rows_between(interior_rows, part.rows));
  }
}

void DistributedMatrix::add_block(const CsrView& rows, std::optional<LateX> late) {
  const std::string& device_name =
      context_.placement().ranks[static_cast<std::size_t>(context_.communicator().rank())].device;
  blocks_.emplace_back(blocks_.empty() ? 0 : blocks_.back().end_row(), rows, options_.type, column_block(), options_.plan,
                       PlanCache{options_.cache_directory, device_name}, late, context_.stream());
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

/// This rank's rows, in local_order_; row_ids_ and x_ids_. Square matrices are permuted symmetrically, so that y can become
/// x as it stands.
HostCsr DistributedMatrix::load_part(const MatrixSource& source) {
  const auto rank = static_cast<std::size_t>(context_.communicator().rank());
  const std::int64_t begin = row_starts_[rank], end = row_starts_[rank + 1];
  const HostVector<std::int64_t> lengths = source.rows->row_lengths(begin, end);
  HostVector<std::int64_t> row_ptr(lengths.size() + 1);
  row_ptr[0] = 0;
  std::partial_sum(lengths.begin(), lengths.end(), row_ptr.begin() + 1);
  constexpr std::int64_t kBytesARow = 64;  // lengths, orders and indices beside the matrix
  require_host_memory(kBytesARow * (end - begin + 1) + 16 * row_ptr.back() + 24 * kSliceEntries, "loading this rank's rows");
  if (options_.sort == LocalSort::by_length) {
    local_order_ = order_by_row_length(row_ptr);
  } else {
    local_order_.resize(lengths.size());
    std::iota(local_order_.begin(), local_order_.end(), std::int64_t{0});
  }
  HostVector<std::int64_t> original;
  if (source.rows->permuted()) original = source.rows->permutation(begin, end);
  row_ids_.resize(local_order_.size());
  for (std::size_t i = 0; i < local_order_.size(); ++i)
    row_ids_[i] = original.empty() ? begin + local_order_[i] : original[static_cast<std::size_t>(local_order_[i])];
  if (rows_ == cols_) {
    x_ids_ = row_ids_;
  } else {
    require_x(x_starts_[rank + 1] - x_starts_[rank], options_);
    x_ids_.resize(static_cast<std::size_t>(x_starts_[rank + 1] - x_starts_[rank]));
    std::iota(x_ids_.begin(), x_ids_.end(), x_starts_[rank]);
  }
  HostCsr part = read_part(*source.rows, begin, lengths, local_order_, options_.progress);
  require_in_range(options_.type, part.values, "the values of " + source.rows->name());
  return part;
}

void DistributedMatrix::sum_columns(const HostCsr& part) {
  require_host_memory(16 * cols_, "column sums for the sampled verification");
  column_sums_.sum.assign(static_cast<std::size_t>(cols_), 0.0);
  column_sums_.weight.assign(static_cast<std::size_t>(cols_), 0.0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(part.rows); ++i) {
    const auto begin = static_cast<std::size_t>(part.row_ptr[i]), end = static_cast<std::size_t>(part.row_ptr[i + 1]);
    for (std::size_t k = begin; k < end; ++k) {
      const double value =
          options_.type == ValueType::f32 ? static_cast<double>(static_cast<float>(part.values[k])) : part.values[k];
      const auto column = static_cast<std::size_t>(part.col_idx[k]);
      column_sums_.sum[column] += value;
      column_sums_.weight[column] += static_cast<double>(end - begin + 2) * std::abs(value);
    }
  }
}

void* DistributedMatrix::local_x() const { return x_->local_x(); }
const Exchange& DistributedMatrix::exchange() const { return x_->exchange(); }
std::int64_t DistributedMatrix::column_block() const { return x_->width(); }
void DistributedMatrix::wait(Stream& stream) const { x_->exchange().wait(stream); }
std::int64_t DistributedMatrix::bytes_received() const { return x_->bytes_received(); }
std::int64_t DistributedMatrix::x_device_bytes() const { return x_->device_bytes(); }
void DistributedMatrix::move_x(Stream& stream) const { x_->move(stream); }

void DistributedMatrix::multiply(double alpha, double beta, void* y, Stream& stream) const {
  x_->multiply(blocks_, alpha, beta, y, stream);
}

void DistributedMatrix::multiply_local(double alpha, double beta, void* y, Stream& stream) const {
  x_->multiply_local(blocks_, alpha, beta, y, stream);
}

}  // namespace shardmat
