#include "runtime/matrix/product_planner.h"

#include <fmt/format.h>

#include <exception>
#include <utility>
#include <vector>

#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/timer.h"
#include "kernels/choose/registry.h"
#include "kernels/choose/spmm_registry.h"
#include "runtime/matrix/all_at_once.h"
#include "runtime/matrix/column_blocks.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/matrix/schedule.h"

namespace shardmat {
namespace {

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

ProductPlanner::ProductPlanner(MatrixRows& rows, const Boundary& boundary, const RowMap& x_rows,
                               const MatrixOptions& options, Context& context)
    : rows_(rows), boundary_(boundary), x_rows_(x_rows), options_(options), context_(context) {
  map_columns();
}

/// The column map and the exchange of the first product, and the rows with the columns of the map.
void ProductPlanner::map_columns() {
  Communicator& communicator = context_.communicator();
  const XParts parts{x_rows_.starts(), x_rows_.places()};
  CompactCsr& csr = rows_.before_storing();
  ProductOptions first;
  first.columns = options_.right_hand_sides, first.column_block = options_.column_block;
  first_widths_ = choose_widths(first, [&] { return entries_held(options_.exchange, communicator, parts, csr.columns()); });
  MappedExchange made =
      make_mapped_exchange(options_.exchange, exchange_context(first, *first_widths_), parts, csr.columns());
  communicator.run_agreed([&] {
    if (!made.map->keeps_columns()) csr.change_columns([&](auto columns) { made.map->renumber(columns); });
  });
  made.map->forget_columns();
  map_ = std::move(made.map);
  first_exchange_ = std::move(made.exchange);
  csr.cols = map_->length();
  rows_.set_first_own(map_->first_own());
}

/// What the device has to hold besides X: Y, and a format that may be stored for this product, on GPUs two of them while one
/// is converted, with its map for new values; on the host X and Y as they are read and written.
std::int64_t ProductPlanner::bytes_besides_x(const ProductOptions& wanted) const {
  constexpr std::int64_t kOfLibraries = 64 << 20;
  const auto value = static_cast<std::int64_t>(size_of(options_.type)),
             sum = static_cast<std::int64_t>(size_of(sum_type(options_.type)));
  const std::int64_t columns = wanted.columns, y_bytes = rows_.count() * columns * sum;
  const std::string& kernel = wanted.plan.value_or(options_.plan).kernel;
  const bool stores = !rows_.stored() || wanted.conversion == Conversion::if_faster || (wanted.plan && kernel != "auto");
  const std::int64_t index = sizeof(std::int32_t), in_map = options_.values == Values::updatable ? index : 0,
                     matrix_bytes = stores ? rows_.nnz() * (index + value) : 0;
  if (context_.device().backend == Backend::host)
    return matrix_bytes + y_bytes + 8 * columns * (x_rows_.local_rows() + rows_.count());
  const bool converts =
      kernel == "auto" || columns == 1 || find_spmm_kernel(kernel, Backend::cuda).format != reference_format().name;
  const std::int64_t map_bytes = stores ? rows_.nnz() * in_map : 0;
  return matrix_bytes + (converts ? matrix_bytes : map_bytes) + y_bytes + kOfLibraries;
}

/// All right-hand sides at a time, or so many as are asked for, or the largest divisor whose X fits with matrix and Y on all
/// ranks; else the smallest divisor, and the allocation reports what is missing. Collective.
template <class Entries>
ProductPlanner::Widths ProductPlanner::choose_widths(const ProductOptions& wanted, const Entries& entries_held) const {
  Communicator& communicator = context_.communicator();
  const std::int64_t all = wanted.columns;
  if (communicator.size() == 1 || all == 1) return {all, all, {}};
  if (wanted.column_block > 0) return {all, wanted.column_block, wanted.column_block == all ? "" : "asked for"};
  const std::int64_t own = x_rows_.local_rows(), value = static_cast<std::int64_t>(size_of(options_.type));
  const std::int64_t room =
      communicator.run_agreed([&] { return available_memory(context_.device()) - bytes_besides_x(wanted); });
  const auto everywhere = [&](bool here) { return communicator.all_reduce(here ? 1 : 0, Reduction::min) == 1; };
  const std::int64_t most_entries = 2 * x_rows_.size() + own * communicator.size();  // that any exchange holds
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

ExchangeContext ProductPlanner::exchange_context(const ProductOptions& wanted, const Widths& widths) const {
  ExchangeContext moving = context_.exchange_context(options_.type, widths.at_a_time);
  moving.layout_by_rule = options_.plan.reproducible;
  moving.overlapped = boundary_.overlaps && widths.at_a_time == widths.all &&
                      may_overlap(options_, wanted.columns, wanted.column_block, context_);
  return moving;
}

/// Collective.
std::unique_ptr<Schedule> ProductPlanner::make_schedule(const ProductOptions& wanted, const Widths& widths) {
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

/// For the rows of a column-major Y; none if Y is row-major.
std::optional<Buffer> ProductPlanner::memory_for_y(const ProductOptions& wanted) const {
  if (wanted.y_order == DenseOrder::row_major) return std::nullopt;
  const std::int64_t bytes = rows_.count() * wanted.columns * static_cast<std::int64_t>(size_of(sum_type(options_.type)));
  require_memory(context_.device(), bytes, "a row-major copy of Y");
  return Buffer(context_.device(), static_cast<std::size_t>(bytes));
}

void ProductPlanner::require(const ProductOptions& wanted) const {
  Communicator& communicator = context_.communicator();
  const auto columns_of_ranks = communicator.all_gather(wanted.columns);
  communicator.run_agreed([&] {
    require_same_columns(columns_of_ranks);
    require_columns(options_.type, wanted);
    require_kernel_for(wanted.columns, wanted.plan.value_or(options_.plan).kernel, context_.device().backend);
    if (wanted.exchange && communicator.size() > 1) require_exchange_over(*wanted.exchange, *map_);
    if (wanted.plan && wanted.plan->storage == StoredEntries::half && options_.plan.storage == StoredEntries::all)
      throw Error(ErrorKind::usage, "symmetric storage must be asked for when the matrix is made", "storage");
  });
}

/// Entries that arrive late, if the rows before the boundary may be multiplied meanwhile.
std::vector<RowPlan> ProductPlanner::plan_rows(const ProductOptions& wanted, const Schedule& schedule,
                                               const Widths& widths) {
  Communicator& communicator = context_.communicator();
  const std::optional<std::int64_t> first_late = schedule.first_late_entry();
  const ExchangeContext moving = exchange_context(wanted, widths);
  const bool time_counts = first_late && moving.overlapped && wanted.columns > 1;
  const double arriving_seconds = time_counts ? time_exchange(schedule.exchange(), moving) : 0;
  std::optional<LateX> late;
  if (first_late && boundary_.rows > 0) late = {*first_late, arriving_seconds};
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const RowPlanRequest request{schedule.width(),
                               wanted.conversion,
                               wanted.plan.value_or(options_.plan),
                               PlanCache{options_.cache_directory, context_.placement().ranks[rank].device},
                               late,
                               {}};
  const bool may_split = schedule.overlaps_two_blocks() && (wanted.columns == 1 || options_.overlap == Overlap::yes);
  const bool none_before = !rows_.stored();
  try {
    return communicator.run_agreed([&] {
      std::vector<RowPlan> made = rows_.plan(request, may_split, boundary_.rows);
      context_.stream().synchronize();  // products may run on another stream
      return made;
    });
  } catch (const std::exception&) {
    rows_.undo_first(none_before);  // on all ranks, wherever it went wrong
    throw;
  }
}

/// Of this rank: the kernels may differ.
std::string ProductPlanner::why_rows_wait(const ProductOptions& wanted, const Schedule& schedule,
                                          const std::vector<RowPlan>& plans, bool overlapped) const {
  if (context_.communicator().size() == 1) return {};
  if (options_.overlap == Overlap::no) return "rows wait for x, as asked for";
  if (schedule.width() < wanted.columns)
    return "blocks of columns overlap instead: one moves while the one before it is multiplied";
  if (!may_overlap(options_, options_.right_hand_sides, options_.column_block, context_) ||
      !may_overlap(options_, wanted.columns, wanted.column_block, context_))
    return "kernels for several right-hand sides multiply all rows at once unless overlap is asked for";
  if (overlapped || boundary_.rows == 0) return boundary_.why_rows_wait;
  return fmt::format("the rows are stored in one block, and {} waits for all of x", plans[0].kernel());
}

std::unique_ptr<Product> ProductPlanner::product(const DistributedMatrix& matrix, const ProductOptions& wanted) {
  require(wanted);
  if (context_.nccl() != nullptr) context_.nccl()->free_retired();  // else their memory counts as taken
  std::optional<Buffer> y_by_rows = context_.communicator().run_agreed([&] { return memory_for_y(wanted); });
  const bool first = !rows_.stored() && first_widths_->all == wanted.columns &&
                     options_.column_block == wanted.column_block && !wanted.exchange && !wanted.plan &&
                     wanted.y_order == DenseOrder::row_major;
  const Widths widths = first ? *first_widths_ : choose_widths(wanted, [&] {
    return entries_held(wanted.exchange.value_or(options_.exchange), context_.communicator(), *map_);
  });
  std::unique_ptr<Schedule> schedule = make_schedule(wanted, widths);
  std::vector<RowPlan> plans = plan_rows(wanted, *schedule, widths);
  const bool overlapped = plans.size() == 2 ? schedule->overlaps_two_blocks()
                                            : schedule->first_late_entry() && boundary_.rows > 0 && plans[0].begins_early();
  std::string why_wait = why_rows_wait(wanted, *schedule, plans, overlapped);
  auto product =
      std::make_unique<Product>(matrix, wanted.columns, std::move(schedule), std::move(plans), std::move(y_by_rows));
  product->why_column_block = widths.why;
  product->why_rows_wait = std::move(why_wait);
  product->overlapped_nnz = overlapped ? boundary_.interior_nnz : 0;
  return product;
}

}  // namespace shardmat
