#include "runtime/matrix/distributed_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "kernels/choose/registry.h"
#include "kernels/spmm.h"
#include "runtime/maps/range_route.h"
#include "runtime/matrix/all_at_once.h"
#include "runtime/matrix/boundary_rows.h"
#include "runtime/matrix/column_blocks.h"
#include "runtime/matrix/make_symmetric.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/put_on_maps.h"
#include "runtime/matrix/reorder_rows.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/matrix/schedule.h"
#include "runtime/matrix/stored_rows.h"

namespace shardmat {
namespace {

PartOptions part_options(const LoadOptions& options) {
  return {options.type,   options.method, options.sort, options.progress, options.node_block_size,
          options.y_rows, options.x_rows};
}

void require_columns(ValueType type, const ProductOptions& wanted) {
  require_count(wanted.columns);
  if (is_half(type) && wanted.columns < 2)
    throw Error(ErrorKind::usage, fmt::format("a matrix in {} has no product of one right-hand side: the kernels for one "
                                              "vector take f64 and f32 only. Make a product of two or more",
                                              name(type)));
  require_column_block(wanted.columns, wanted.column_block);
}

void require_kernel_for(std::int64_t columns, const std::string& kernel, Backend backend) {
  if (kernel == "auto") return;
  if (columns == 1) find_kernel(kernel, backend);
  else find_spmm_kernel(kernel, backend);
}

}  // namespace

void require_updatable(Values values) {
  if (values == Values::updatable) return;
  throw Error(ErrorKind::usage,
              "the matrix was made without room for new values; make it anew as an updatable one (Python: updatable=True; "
              "C, Fortran: updatable = 1 in the options; C++: Values::updatable)");
}

void require_same_columns(std::span<const std::int64_t> of_ranks) {
  if (of_ranks.empty()) return;
  const auto [least, most] = std::minmax_element(of_ranks.begin(), of_ranks.end());
  if (*least != *most)
    throw Error(ErrorKind::usage,
                fmt::format("one rank asks for a product of {} columns, another for {}; give one number", *least, *most),
                "columns");
}

void require_column_block(std::int64_t all, std::int64_t some) {
  if (some == 0) return;
  if (all == 1)
    throw Error(ErrorKind::usage, "blocks of columns are for several right-hand sides, and there is one",
                "right_hand_sides");
  if (some > 1 && all % some == 0) return;
  std::vector<std::string> choices;
  for (std::int64_t width = 2; width <= all; ++width)
    if (all % width == 0) choices.push_back(std::to_string(width));
  throw Error(ErrorKind::usage,
              fmt::format("blocks of {} columns do not divide the {} right-hand sides into blocks of two or more; choose {}",
                          some, all, join_choices(choices)),
              "column_block");
}

DistributedMatrix::DistributedMatrix(const MatrixSource& source, Context& context, const LoadOptions& options)
    : DistributedMatrix(load_part(source, context, part_options(options)), context, options) {}

DistributedMatrix::DistributedMatrix(LoadedPart part, Context& context, const MatrixOptions& options)
    : context_(context), options_(options), part_(std::move(part)), local_nnz_(part_.csr.nnz()), updated_(context.device()) {
  const ContextScope scope(context);
  Communicator& communicator = context.communicator();
  Timer timer;
  communicator.together([&] {
    require_kernel(options_.plan.kernel, context.device().backend);
    require_column_block(options_.right_hand_sides, options_.column_block);
  });
  require_maps(part_.rows, part_.cols, options_.y_rows.get(), options_.x_rows.get(), context);
  if (options_.y_rows || options_.x_rows) put_on_maps(part_, options_.y_rows.get(), options_.x_rows.get(), communicator);
  if (options_.plan.storage == StoredEntries::half) prepare_symmetric_storage();
  communicator.together([&] {
    if (part_.nnz / communicator.size() > options_.column_sums_above) sum_columns();
  });
  part_.times.read += timer.seconds();
  timer = Timer();
  const std::optional<std::int64_t> moved_last = communicator.together([&] { return order_boundary_last(); });
  boundary_rows_ = moved_last.value_or(0);
  interior_nnz_ = part_.csr.row_ptr.empty()
                      ? 0
                      : part_.csr.row_ptr[static_cast<std::size_t>(part_.csr.rows - boundary_rows_)] - part_.csr.row_ptr[0];
  overlaps_ = communicator.all_reduce(moved_last ? 1 : 0, Reduction::min) == 1;
  map_rows();
  map_columns();
  part_.times.exchange = timer.seconds();
}

DistributedMatrix::~DistributedMatrix() = default;

void DistributedMatrix::prepare_symmetric_storage() {
  context_.communicator().together([&] {
    require_storage(context_.device().backend, StoredEntries::half);
    if (options_.values == Values::updatable)
      throw Error(ErrorKind::usage, "a matrix in symmetric storage takes no new values; store all entries", "storage");
  });
  make_symmetric(part_, options_.type, context_.communicator());
  local_nnz_ = part_.csr.nnz();
}

void DistributedMatrix::sum_columns() {
  require_host_memory(16 * part_.cols, "column sums for the sampled verification");
  column_sums_.sum.assign(static_cast<std::size_t>(part_.cols), 0.0);
  column_sums_.weight.assign(static_cast<std::size_t>(part_.cols), 0.0);
  const CsrView csr = part_.csr.view();
  for (std::size_t i = 0; i < static_cast<std::size_t>(csr.rows); ++i) {
    const auto begin = static_cast<std::size_t>(csr.row_ptr[i]), end = static_cast<std::size_t>(csr.row_ptr[i + 1]);
    for (std::size_t k = begin; k < end; ++k) {
      const double value = csr.values[k];  // those of f32 are rounded
      const auto column = static_cast<std::size_t>(csr.col_idx[k]);
      column_sums_.sum[column] += value;
      column_sums_.weight[column] += static_cast<double>(end - begin + 2) * std::abs(value);
    }
  }
}

/// May rows be multiplied while x moves: by two products, or by one that begins early, as the kernels of packed rows on a
/// GPU can where the rows of X begin at multiples of 16 bytes?
bool DistributedMatrix::may_overlap(std::int64_t columns, std::int64_t column_block) const {
  if (options_.overlap == Overlap::no || context_.communicator().size() == 1) return false;
  if (column_block > 0 && column_block < columns) return false;
  if (options_.overlap == Overlap::yes || columns == 1) return true;
  const std::size_t entry_bytes = static_cast<std::size_t>(columns) * size_of(options_.type);
  return context_.device().backend == Backend::cuda && !is_half(options_.type) && entry_bytes % 16 == 0;
}

/// Rows that wait for x come last: they move there, unless the order is given. Returns how many there are; nothing if they
/// hold most nonzeros or none may be multiplied while x moves. In a given order all rows from the first one that waits
/// count.
std::optional<std::int64_t> DistributedMatrix::order_boundary_last() {
  if (!may_overlap(options_.right_hand_sides, options_.column_block)) return std::nullopt;
  const auto rank = static_cast<std::size_t>(context_.communicator().rank());
  const BoundaryRows boundary = find_boundary_rows(part_.csr.view(), part_.x_starts[rank], part_.x_starts[rank + 1]);
  const bool ordered = options_.natural_order || options_.y_rows || (part_.rows == part_.cols && options_.x_rows);
  const std::int64_t rows = ordered ? boundary.rows_from_first() : boundary.rows;
  const std::int64_t nnz =
      ordered ? part_.csr.nnz() - part_.csr.row_ptr[static_cast<std::size_t>(part_.csr.rows - rows)] : boundary.nnz;
  if (2 * nnz > part_.csr.nnz()) return std::nullopt;
  if (rows == 0 || ordered) return rows;
  const HostVector<std::int64_t> order = boundary.order();
  part_.local_order = in_order(part_.local_order, order);
  part_.row_ids = in_order(part_.row_ids, order);
  part_.value_starts = in_order(part_.value_starts, order);
  move_boundary_last(part_.csr, boundary);
  return rows;
}

/// The maps take the order of the rows, and of the entries of x, unless they were given. Collective.
void DistributedMatrix::map_rows() {
  const bool square = part_.rows == part_.cols;
  y_rows_ = options_.y_rows || !square ? options_.y_rows : options_.x_rows;
  x_rows_ = square ? y_rows_ : options_.x_rows;
  if (!y_rows_)
    y_rows_ = RowMap::make({part_.rows, std::move(part_.row_starts), std::move(part_.row_ids), std::move(part_.local_order),
                            std::move(part_.row_route)},
                           context_);
  if (square) x_rows_ = y_rows_;
  if (!x_rows_)
    x_rows_ = RowMap::make({part_.cols, std::move(part_.x_starts), std::move(part_.x_ids), {}, nullptr}, context_);
}

/// The column map and the exchange of the first product, and the rows with the columns of the map.
void DistributedMatrix::map_columns() {
  Communicator& communicator = context_.communicator();
  const XParts parts{x_rows_->starts(), x_rows_->in_source_order() ? std::span<const std::int64_t>()
                                                                   : std::span<const std::int64_t>(x_rows_->places())};
  ProductOptions first;
  first.columns = options_.right_hand_sides, first.column_block = options_.column_block;
  first_widths_ =
      choose_widths(first, [&] { return entries_held(options_.exchange, communicator, parts, part_.csr.columns()); });
  MappedExchange made =
      make_mapped_exchange(options_.exchange, exchange_context(first, *first_widths_), parts, part_.csr.columns());
  communicator.together([&] {
    if (!made.map->keeps_columns()) part_.csr.change_columns([&](auto columns) { made.map->renumber(columns); });
  });
  made.map->forget_columns();
  map_ = std::move(made.map);
  first_exchange_ = std::move(made.exchange);
  part_.csr.cols = map_->length();
  const std::int64_t most =
      map_->layout() == ColumnLayout::compact ? map_->own() + map_->received() : part_.cols;  // without padding
  x_entries_ = communicator.together([&] { return occupied_columns(part_.csr.view(), most); });
}

/// What the device has to hold besides X: Y, and a format that may be stored for this product, on GPUs two of them while one
/// is converted, with its map for new values; on the host X and Y as they are read and written.
std::int64_t DistributedMatrix::bytes_besides_x(const ProductOptions& wanted) const {
  constexpr std::int64_t kOfLibraries = 64 << 20;
  const auto value = static_cast<std::int64_t>(size_of(options_.type)),
             sum = static_cast<std::int64_t>(size_of(sum_type(options_.type)));
  const std::int64_t columns = wanted.columns, y_bytes = local_rows() * columns * sum;
  const std::string& kernel = wanted.plan.value_or(options_.plan).kernel;
  const bool stores = blocks_.empty() || wanted.conversion == Conversion::if_faster || (wanted.plan && kernel != "auto");
  const std::int64_t index = sizeof(std::int32_t), in_map = options_.values == Values::updatable ? index : 0,
                     matrix_bytes = stores ? local_nnz_ * (index + value) : 0;
  if (context_.device().backend == Backend::host)
    return matrix_bytes + y_bytes + 8 * columns * (x_rows_->local_rows() + local_rows());
  const bool converts =
      kernel == "auto" || columns == 1 || find_spmm_kernel(kernel, Backend::cuda).format != reference_format().name;
  const std::int64_t map_bytes = stores ? local_nnz_ * in_map : 0;
  return matrix_bytes + (converts ? matrix_bytes : map_bytes) + y_bytes + kOfLibraries;
}

/// All right-hand sides at a time, or so many as are asked for, or the largest divisor whose X fits with matrix and Y on all
/// ranks; else the smallest divisor, and the allocation reports what is missing. Collective.
template <class Entries>
DistributedMatrix::Widths DistributedMatrix::choose_widths(const ProductOptions& wanted, const Entries& entries_held) const {
  Communicator& communicator = context_.communicator();
  const std::int64_t all = wanted.columns;
  if (communicator.size() == 1 || all == 1) return {all, all, {}};
  if (wanted.column_block > 0) return {all, wanted.column_block, wanted.column_block == all ? "" : "asked for"};
  const std::int64_t own = x_rows_->local_rows(), value = static_cast<std::int64_t>(size_of(options_.type));
  const std::int64_t room =
      communicator.together([&] { return available_memory(context_.device()) - bytes_besides_x(wanted); });
  const auto everywhere = [&](bool here) { return communicator.all_reduce(here ? 1 : 0, Reduction::min) == 1; };
  const std::int64_t most_entries = 2 * part_.cols + own * communicator.size();  // that any exchange holds
  if (everywhere(most_entries * all * value <= room)) return {all, all, {}};
  const std::int64_t entries = entries_held();
  const auto bytes = [&](std::int64_t width) {
    return value * (width == all ? entries * all : own * all + 2 * entries * width);
  };
  const std::vector<std::int64_t> widths = column_blocks_of(all);
  for (const std::int64_t width : widths)
    if (everywhere(bytes(width) <= room)) return {all, width, width == all ? "" : "more do not fit"};
  if (everywhere(bytes(widths.back()) < bytes(all))) return {all, widths.back(), "more do not fit"};
  return {all, all, {}};
}

ExchangeContext DistributedMatrix::exchange_context(const ProductOptions& wanted, const Widths& widths) const {
  ExchangeContext moving = context_.exchange_context(options_.type, widths.at_a_time);
  moving.overlapped = overlaps_ && widths.at_a_time == widths.all && may_overlap(wanted.columns, wanted.column_block);
  return moving;
}

/// Collective.
std::unique_ptr<Schedule> DistributedMatrix::make_schedule(const ProductOptions& wanted, const Widths& widths) {
  const ExchangeContext moving = exchange_context(wanted, widths);
  const bool first_is_it = first_exchange_ != nullptr && !wanted.exchange && first_widths_->at_a_time == widths.at_a_time &&
                           (widths.at_a_time == widths.all) == (first_widths_->at_a_time == first_widths_->all);
  if (!first_is_it) first_exchange_.reset();  // its X makes room
  auto exchange =
      first_is_it ? std::move(first_exchange_) : make_exchange(wanted.exchange.value_or(options_.exchange), moving, map_);
  if (widths.at_a_time == widths.all) return std::make_unique<AllAtOnce>(context_, widths.all, std::move(exchange));
  return std::make_unique<ColumnBlocks>(context_, moving, widths.all,
                                        options_.overlap == Overlap::no ? BlockOverlap::no : BlockOverlap::yes,
                                        std::move(exchange));
}

/// Before the first product stores the rows.
void DistributedMatrix::require_rows() const {
  if (!has_host_rows())
    throw Error(
        ErrorKind::usage,
        "the matrix has no rows any more: its host rows were dropped, or were lost while its first product was made, "
        "and that failed; load it again, or keep its host rows");
}

/// `once`: the rows are not stored a second time, in other blocks.
void DistributedMatrix::store(std::int64_t first_row, std::int64_t end_row, bool once) {
  const std::span<const std::int64_t> value_starts =
      options_.values == Values::fixed ? std::span<const std::int64_t>() : std::span<const std::int64_t>(part_.value_starts);
  // Storages may keep the arrays of the rows if no new values will come: those would change the rows, too.
  CsrView rows = options_.values == Values::fixed ? part_.csr.shared_view() : part_.csr.view();
  rows.diagonal = map_->first_own();
  blocks_.emplace_back(first_row, rows.rows_between(first_row, end_row), options_.type,
                       value_starts.empty() ? value_starts
                                            : value_starts.subspan(static_cast<std::size_t>(first_row),
                                                                   static_cast<std::size_t>(end_row - first_row)));
  if (once && options_.host_rows == HostRows::drop && options_.values == Values::fixed &&
      context_.device().backend == Backend::host)
    blocks_.back().let_conversion_release();
}

RowPlanRequest DistributedMatrix::row_plan_request(const ProductOptions& wanted, std::int64_t width,
                                                   std::optional<LateX> late) const {
  const auto rank = static_cast<std::size_t>(context_.communicator().rank());
  return {width,
          wanted.conversion,
          wanted.plan.value_or(options_.plan),
          PlanCache{options_.cache_directory, context_.placement().ranks[rank].device},
          late,
          {}};
}

/// Decides whether the rows are cut in two.
std::vector<RowPlan> DistributedMatrix::plan_first_rows(const RowPlanRequest& request, bool may_split) {
  std::vector<RowPlan> plans;
  const std::int64_t rows = part_.csr.rows, interior_rows = rows - boundary_rows_;
  require_rows();
  if (request.late || !may_split) {
    store(0, rows, !may_split);
    plans.push_back(blocks_[0].plan(request, context_.stream()));
    if (!may_split || plans[0].begins_early()) return plans;
    plans.clear(), blocks_.clear();
  }
  RowPlanRequest on_time = request;
  on_time.late.reset();
  store(0, interior_rows, true);
  store(interior_rows, rows, true);
  for (StoredRows& block : blocks_) plans.push_back(block.plan(on_time, context_.stream()));
  return plans;
}

std::vector<RowPlan> DistributedMatrix::plan_rows(const ProductOptions& wanted, const Schedule& schedule,
                                                  std::optional<LateX> late) {
  RowPlanRequest request = row_plan_request(wanted, schedule.width(), late);
  request.before_conversion = [this] { refresh_host_rows(context_.stream()); };
  if (blocks_.empty()) {
    const bool may_split =
        boundary_rows_ > 0 && schedule.overlaps_two_blocks() && (wanted.columns == 1 || options_.overlap == Overlap::yes);
    return plan_first_rows(request, may_split);
  }
  std::vector<RowPlan> plans;
  for (StoredRows& block : blocks_) plans.push_back(block.plan(request, context_.stream()));
  return plans;
}

std::unique_ptr<Product> DistributedMatrix::product(std::int64_t columns) {
  ProductOptions options;
  options.columns = columns;
  if (blocks_.empty() && columns == options_.right_hand_sides) options.column_block = options_.column_block;
  return product(options);
}

/// For the rows of a column-major Y; none if Y is row-major.
std::optional<Buffer> DistributedMatrix::memory_for_y(const ProductOptions& wanted) const {
  if (wanted.y_order == DenseOrder::row_major) return std::nullopt;
  const std::int64_t bytes = local_rows() * wanted.columns * static_cast<std::int64_t>(size_of(sum_type(options_.type)));
  require_memory(context_.device(), bytes, "a row-major copy of Y");
  return Buffer(context_.device(), static_cast<std::size_t>(bytes));
}

std::unique_ptr<Product> DistributedMatrix::product(const ProductOptions& wanted) {
  const ContextScope scope(context_);
  Communicator& communicator = context_.communicator();
  const auto columns_of_ranks = communicator.all_gather(wanted.columns);
  communicator.together([&] {
    require_same_columns(columns_of_ranks);
    require_columns(options_.type, wanted);
    require_kernel_for(wanted.columns, wanted.plan.value_or(options_.plan).kernel, context_.device().backend);
    if (wanted.exchange && communicator.size() > 1) require_exchange_over(*wanted.exchange, *map_);
    if (wanted.plan && wanted.plan->storage == StoredEntries::half && options_.plan.storage == StoredEntries::all)
      throw Error(ErrorKind::usage, "symmetric storage must be asked for when the matrix is made", "storage");
  });
  if (context_.nccl() != nullptr) context_.nccl()->free_retired();  // else their memory counts as taken
  std::optional<Buffer> y_by_rows = communicator.together([&] { return memory_for_y(wanted); });
  const Timer timer;
  const bool none_before = blocks_.empty(), first = none_before && first_widths_->all == wanted.columns &&
                                                    options_.column_block == wanted.column_block && !wanted.exchange &&
                                                    !wanted.plan && wanted.y_order == DenseOrder::row_major;
  const Widths widths = first ? *first_widths_ : choose_widths(wanted, [&] {
    return entries_held(wanted.exchange.value_or(options_.exchange), communicator, *map_);
  });
  std::unique_ptr<Schedule> schedule = make_schedule(wanted, widths);
  const std::optional<std::int64_t> first_late = schedule->first_late_entry();
  const ExchangeContext moving = exchange_context(wanted, widths);
  const bool time_counts = first_late && moving.overlapped && wanted.columns > 1;
  std::optional<LateX> late;
  const double arriving_seconds = time_counts ? time_exchange(schedule->exchange(), moving) : 0;
  if (first_late && boundary_rows_ > 0) late = {*first_late, arriving_seconds};
  std::vector<RowPlan> plans;
  try {
    plans = communicator.together([&] {
      std::vector<RowPlan> made = plan_rows(wanted, *schedule, late);
      context_.stream().synchronize();  // products may run on another stream
      return made;
    });
  } catch (const std::exception&) {
    if (std::any_of(blocks_.begin(), blocks_.end(), [](const StoredRows& block) { return block.released(); }))
      part_.csr.clear();
    if (none_before) blocks_.clear();  // on all ranks, wherever it went wrong
    throw;
  }
  const bool overlapped = plans.size() == 2 ? schedule->overlaps_two_blocks() : late && plans[0].begins_early();
  auto product =
      std::make_unique<Product>(*this, wanted.columns, std::move(schedule), std::move(plans), std::move(y_by_rows));
  product->why_column_block = widths.why;
  product->overlapped_nnz = overlapped ? interior_nnz_ : 0;
  if (options_.host_rows == HostRows::drop) drop_host_rows();
  part_.times.plan += timer.seconds();
  return product;
}

std::int64_t DistributedMatrix::device_bytes() const {
  std::int64_t bytes = 0;
  for (const StoredRows& block : blocks_) bytes += block.device_bytes();
  return bytes;
}

std::int64_t DistributedMatrix::map_bytes() const {
  std::int64_t bytes = 0;
  for (const StoredRows& block : blocks_) bytes += block.map_bytes();
  return bytes;
}

std::int64_t DistributedMatrix::host_bytes() const { return part_.csr.bytes(); }

void DistributedMatrix::drop_host_rows() {
  for (StoredRows& block : blocks_) block.drop_host_rows();
  if (blocks_.empty()) return;  // the first product needs them
  part_.csr.clear();
}

}  // namespace shardmat
