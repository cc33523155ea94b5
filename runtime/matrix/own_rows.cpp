#include "runtime/matrix/own_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/first_where.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "partition/source/partitioner.h"
#include "runtime/context/context_scope.h"
#include "runtime/maps/range_route.h"
#include "runtime/matrix/load_part.h"
#include "runtime/matrix/value_route.h"
#include "runtime/matrix/vectors.h"
#include "runtime/order/find_node_blocks.h"

namespace shardmat {
namespace {

/// The rows of one rank, in its order.
class RowRanges {
 public:
  RowRanges(RowRange range, std::span<const RowRange> further) : ranges_{range} {
    for (const RowRange& one : further)
      if (one.count != 0) ranges_.push_back(one);
    for (const RowRange& one : ranges_) count_ += one.count;
  }
  RowRanges(RowRange range) : RowRanges(range, {}) {}

  std::span<const RowRange> ranges() const { return ranges_; }
  std::int64_t count() const { return count_; }
  /// Global number of row i.
  std::int64_t number(std::int64_t i) const {
    std::size_t range = 0;
    for (; range + 1 < ranges_.size() && i >= ranges_[range].count; ++range) i -= ranges_[range].count;
    return ranges_[range].first + i;
  }
  HostVector<std::int64_t> numbers() const {
    HostVector<std::int64_t> all;
    all.reserve(static_cast<std::size_t>(count_));
    for (const RowRange& range : ranges_)
      for (std::int64_t i = 0; i < range.count; ++i) all.push_back(range.first + i);
    return all;
  }
  /// Divides the first row and the length of every range.
  std::int64_t divisor() const {
    std::int64_t divisor = ranges_[0].first;
    for (const RowRange& range : ranges_)
      if (ranges_.size() > 1) divisor = std::gcd(divisor, std::gcd(range.first, range.count));
    return divisor;
  }

 private:
  std::vector<RowRange> ranges_;
  std::int64_t count_ = 0;
};

/// The rows of all ranks: global numbers become internal ones, in which each rank's rows follow those of the rank before.
class Tiling {
 public:
  /// Collective; the same error on all ranks.
  Tiling(const RowRanges& mine, std::int64_t cols, Communicator& communicator) : cols_(cols) {
    struct Said {
      RowRange range;
      std::int64_t cols, ranges;
    };
    const RowRange first = mine.ranges().front();
    const std::vector<Said> all = communicator.all_gather(Said{first, cols, std::ssize(mine.ranges())});
    std::int64_t most = 0;
    for (const Said& said : all) most = std::max(most, said.ranges);
    const auto slot = static_cast<std::size_t>(most), rank_here = static_cast<std::size_t>(communicator.rank());
    std::vector<RowRange> ranges(slot * all.size());
    for (std::size_t rank = 0; rank < all.size(); ++rank) ranges[rank * slot] = all[rank].range;
    if (most > 1) {
      std::copy(mine.ranges().begin(), mine.ranges().end(), ranges.begin() + static_cast<std::ptrdiff_t>(rank_here * slot));
      communicator.all_gather_slots(ranges.data(), slot * sizeof(RowRange));
    }
    communicator.run_agreed([&] {
      starts_.push_back(0);
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        std::int64_t rows = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(all[rank].ranges); ++i) {
          const RowRange& said = ranges[rank * slot + i];
          if (said.count < 0 || said.first < 0 || all[rank].cols < 0)
            refuse(fmt::format("rank {} gives {} rows from row {} on and {} columns; none may be negative", rank, said.count,
                               said.first, all[rank].cols));
          if (said.count > 0)
            ranges_.push_back({said.first, said.first + said.count, starts_.back() + rows, static_cast<int>(rank)});
          rows += said.count;
        }
        if (all[rank].cols != cols)
          refuse(
              fmt::format("rank {} gives {} columns for the whole matrix, and another rank {}", rank, all[rank].cols, cols));
        by_rank_.push_back({all[rank].range.first, rows});
        starts_.push_back(starts_.back() + rows);
      }
      several_ = most > 1;
      std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
      std::int64_t next = 0;
      for (const Range& range : ranges_) {
        if (range.first > next)
          refuse(
              fmt::format("rows {} to {} belong to no rank; the ranks' rows must tile the matrix", next, range.first - 1));
        if (range.first < next)
          refuse(fmt::format("row {} belongs to rank {} and to another rank; the ranks' rows must tile the matrix",
                             range.first, range.rank));
        next = range.end;
      }
    });
  }

  std::int64_t rows() const { return starts_.back(); }
  bool square() const { return rows() == cols_; }
  /// Throws Error(usage) if a rank has several ranges.
  void require_one_range() const {
    if (several_)
      throw Error(
          ErrorKind::usage,
          "a partitioner can spread only rows that follow each other on each rank, or on the ranks that share an owner; "
          "leave out the partitioner",
          "method");
  }
  const std::vector<std::int64_t>& starts() const { return starts_; }
  /// Of every rank. REQUIRES: one range a rank.
  std::span<const RangeRoute::Range> by_rank() const { return by_rank_; }
  int owner(std::int64_t row) const { return of(row).rank; }
  std::int64_t internal(std::int64_t row) const {
    const Range& range = of(row);
    return range.internal + row - range.first;
  }
  /// Counts the rows of `places` from internal row `start` on.
  template <class Places>
  void renumber_rows(Places& places, std::int64_t start) const {
    Range last{0, 0, 0, 0};
    for (auto& place : places) {
      if (place.row < last.first || place.row >= last.end) last = of(place.row);
      place.row += last.internal - last.first - start;
    }
  }
  /// Columns of a square matrix are numbered as its rows, others stay.
  void renumber_columns(std::span<std::int64_t> columns) const {
    if (!square()) return;
    parallel_ranges(std::ssize(columns), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      Range last{0, 0, 0, 0};
      for (std::int64_t k = begin; k < end; ++k) {
        std::int64_t& column = columns[static_cast<std::size_t>(k)];
        if (column < last.first || column >= last.end) last = of(column);
        column += last.internal - last.first;
      }
    });
  }

 private:
  struct Range {
    std::int64_t first, end, internal;
    int rank;
  };
  [[noreturn]] static void refuse(const std::string& why) { throw Error(ErrorKind::input, why); }
  const Range& of(std::int64_t row) const {
    const auto above = std::upper_bound(ranges_.begin(), ranges_.end(), row,
                                        [](std::int64_t r, const Range& range) { return r < range.first; });
    return *(above - 1);
  }

  std::int64_t cols_;
  std::vector<std::int64_t> starts_;
  std::vector<Range> ranges_;  ///< ascending; none empty
  std::vector<RangeRoute::Range> by_rank_;
  bool several_ = false;
};

HostVector<std::int64_t> to_host_numbers(std::span<const std::int64_t> from, Device device, Context& context) {
  if (device.backend == Backend::cuda && !(device == context.device()))
    throw Error(ErrorKind::usage, "own rows lie on a GPU that is not the one of this rank; give a copy in host memory");
  HostVector<std::int64_t> numbers(from.size());
  if (device.backend == Backend::host) std::copy(from.begin(), from.end(), numbers.begin());
  else if (!from.empty()) copy_to_host(numbers.data(), from.data(), from.size_bytes(), context.stream());
  return numbers;
}

HostVector<double> to_host_values(const void* from, std::int64_t count, ValueType type, Device device, Context& context) {
  if (is_half(type)) throw Error(ErrorKind::usage, fmt::format("own values must be f64 or f32, and are {}", name(type)));
  if (from == nullptr && count > 0) throw Error(ErrorKind::usage, "own values have no memory (null pointer)");
  if (device.backend == Backend::cuda) return to_host(from, count, type, context.stream());
  return dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* values = static_cast<const T*>(from);
    return HostVector<double>(values, values + count);
  });
}

/// Columns in range, none twice in a row, finite values.
void require_entries(const HostCsr& csr, const RowRanges& rows, ValueType type) {
  const auto of_row = [&](std::int64_t i) {
    const auto begin = static_cast<std::size_t>(csr.row_ptr[static_cast<std::size_t>(i)]),
               end = static_cast<std::size_t>(csr.row_ptr[static_cast<std::size_t>(i) + 1]);
    return std::pair(begin, end);
  };
  const auto twice = [&](std::size_t begin, std::size_t end) -> std::optional<std::int64_t> {
    bool ascending = true;
    for (std::size_t k = begin + 1; k < end; ++k) ascending = ascending && csr.col_idx[k - 1] < csr.col_idx[k];
    if (ascending) return std::nullopt;
    std::vector<std::int64_t> sorted(csr.col_idx.begin() + static_cast<std::ptrdiff_t>(begin),
                                     csr.col_idx.begin() + static_cast<std::ptrdiff_t>(end));
    std::sort(sorted.begin(), sorted.end());
    const auto same = std::adjacent_find(sorted.begin(), sorted.end());
    return same == sorted.end() ? std::nullopt : std::optional(*same);
  };
  const auto wrong = [&](std::int64_t i) {
    const auto [begin, end] = of_row(i);
    for (std::size_t k = begin; k < end; ++k)
      if (csr.col_idx[k] < 0 || csr.col_idx[k] >= csr.cols || !std::isfinite(csr.values[k])) return true;
    return twice(begin, end).has_value();
  };
  if (const auto row = first_where(csr.rows, 1 << 10, wrong)) {
    const auto [begin, end] = of_row(*row);
    for (std::size_t k = begin; k < end; ++k) {
      if (csr.col_idx[k] < 0 || csr.col_idx[k] >= csr.cols)
        throw Error(ErrorKind::input, fmt::format("row {} has column {}, but the matrix has columns 0 to {}",
                                                  rows.number(*row), csr.col_idx[k], csr.cols - 1));
      if (!std::isfinite(csr.values[k]))
        throw Error(ErrorKind::input, fmt::format("row {} has the value {} in column {}; values must be finite",
                                                  rows.number(*row), csr.values[k], csr.col_idx[k]));
    }
    throw Error(ErrorKind::input, fmt::format("row {} has column {} twice; add the two values up, or give triplets, whose "
                                              "duplicates are added up",
                                              rows.number(*row), twice(begin, end).value_or(-1)));
  }
  require_in_range(type, csr.values, "the values of own rows");
}

/// Checked.
HostCsr copy_rows_of(const OwnRows& given, const RowRanges& rows, Context& context, ValueType type) {
  require_host_memory(40 * rows.count() + 16 * std::ssize(given.columns), "this rank's own rows");
  HostCsr csr;
  csr.rows = rows.count(), csr.cols = given.cols;
  csr.row_ptr = to_host_numbers(given.row_ptr, given.device, context);
  require_offsets(csr.row_ptr, given);
  const std::int64_t offset = csr.row_ptr.front();
  for (std::int64_t& at : csr.row_ptr) at -= offset;
  csr.col_idx = to_host_numbers(given.columns, given.device, context);
  csr.values = to_host_values(given.values.data, std::ssize(given.columns), given.values.type, given.device, context);
  require_entries(csr, rows, type);
  return csr;
}

/// Everything of a part but its rows.
LoadedPart describe_part(const Tiling& tiling, const RowRanges& mine, std::int64_t cols, Context& context) {
  LoadedPart part;
  part.rows = part.y.size = tiling.rows(), part.cols = cols;
  part.first_row = mine.divisor();  // in diagonal blocks of a size that divides it, each row keeps its place
  part.y.starts = tiling.starts();
  part.partition_origin = "given";
  part.y.ids = mine.numbers();
  const Communicator& ranks = context.communicator();
  if (!part.square()) part.x = even_share(cols, ranks.size(), ranks.rank());
  return part;
}

/// Collective: the unknowns of a node, given or as the pattern of these rows tells.
std::int64_t find_nodes(std::int64_t given, const HostCsr& csr, const RowRanges& rows, const Tiling& tiling,
                        Communicator& communicator) {
  if (given > 0 || !tiling.square()) return std::max<std::int64_t>(1, given);
  return find_node_block_size(
      tiling.rows(), csr.view(), [&](std::int64_t row) { return rows.number(row); }, communicator);
}

/// Collective. Whether all ranks have whole nodes.
void note_nodes(LoadedPart& part, std::int64_t given, std::int64_t size, const RowRanges& mine, Communicator& communicator) {
  part.node_block_size = size;
  part.node_block_origin = given > 0 ? "given" : "found in the pattern";
  const bool whole = mine.count() == 0 || (part.first_row % size == 0 && mine.count() % size == 0);
  part.nodes_are_whole = communicator.all_reduce(whole ? 1 : 0, Reduction::min) == 1;
}

/// Gives the part its rows.
void finish(LoadedPart& part, HostCsr csr, ValueType type, const Tiling& tiling, Communicator& communicator) {
  communicator.run_agreed([&] {
    tiling.renumber_columns(csr.col_idx);
    require_host_memory(CompactCsr::entry_bytes(csr.cols, type) * csr.nnz() + 8 * csr.rows, "this rank's own rows");
    part.csr = CompactCsr(csr.view(), type);
    part.value_starts.assign(csr.row_ptr.begin(), csr.row_ptr.end() - 1);
  });
  part.nnz = communicator.all_reduce(part.csr.nnz(), Reduction::sum);
}

/// Throws Error(usage) on all ranks unless all name the same partitioner or none.
void require_method(std::string_view method, Communicator& communicator) {
  const std::vector<std::string> all = communicator.all_gather(std::string(method));
  communicator.run_agreed([&] {
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw Error(ErrorKind::usage,
                    fmt::format("rank 0 asks for the partitioner '{}' and rank {} for '{}'; all ranks must give the same",
                                all[0], rank, all[rank]));
    constexpr std::int64_t kNoRows[] = {0};
    if (!method.empty()) make_partition(method, kNoRows, 1);
  });
}

HostVector<std::int64_t> lengths_of(std::span<const std::int64_t> row_ptr) {
  HostVector<std::int64_t> lengths(row_ptr.size() - 1);
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = row_ptr[i + 1] - row_ptr[i];
  return lengths;
}

HostVector<std::int64_t> offsets_of(std::span<const std::int64_t> lengths) {
  HostVector<std::int64_t> offsets(lengths.size() + 1);
  offsets[0] = 0;
  std::partial_sum(lengths.begin(), lengths.end(), offsets.begin() + 1);
  return offsets;
}

/// Collective: this rank's rows by the partitioner. `lengths`: of the rows that it has in `tiling`.
RowRange cut(std::span<const std::int64_t> lengths, const Tiling& tiling, std::string_view method,
             std::int64_t node_block_size, Communicator& communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.size()), rank = static_cast<std::size_t>(communicator.rank());
  std::vector<RangeRoute::Range> on_root(ranks);
  on_root[0] = {0, tiling.rows()};
  const RangeRoute route(tiling.by_rank(), on_root, communicator.rank());
  const HostVector<std::int64_t> all = route.bring<std::int64_t>(lengths, 1, communicator);
  std::vector<std::int64_t> starts(ranks + 1);
  communicator.run_agreed([&] {
    if (rank != 0) return;
    require_host_memory(8 * tiling.rows(), "counting the nonzeros of all rows");
    starts = make_partition(method, offsets_of(all), communicator.size(), node_block_size).row_starts;
  });
  communicator.broadcast(std::span<std::int64_t>(starts));
  return {starts[rank], starts[rank + 1] - starts[rank]};
}

/// Collective: rows go to the ranks that the partitioner chooses.
LoadedPart spread(HostCsr csr, ValueType type, const Tiling& given, std::string_view method, std::int64_t node_block_size,
                  Context& context) {
  Communicator& communicator = context.communicator();
  const HostVector<std::int64_t> lengths = communicator.run_agreed([&] {
    require_host_memory(16 * csr.rows, "the lengths of this rank's rows");
    return lengths_of(csr.row_ptr);
  });
  const RowRange range = cut(lengths, given, method, node_block_size, communicator);
  const Tiling tiling(range, csr.cols, communicator);
  LoadedPart part = communicator.run_agreed([&] { return describe_part(tiling, range, csr.cols, context); });
  part.partition_origin = "computed when loading";
  const auto rows = std::make_shared<const RangeRoute>(given.by_rank(), tiling.by_rank(), communicator.rank());
  const HostVector<std::int64_t> taken = rows->bring<std::int64_t>(lengths, 1, communicator);
  HostCsr own;
  own.rows = range.count, own.cols = csr.cols;
  own.row_ptr = communicator.run_agreed([&] { return offsets_of(taken); });
  const RangeRoute nonzeros = rows->of_items(csr.row_ptr, own.row_ptr);
  own.col_idx = nonzeros.bring<std::int64_t>(csr.col_idx, 1, communicator);
  csr.col_idx = decltype(csr.col_idx)();
  own.values = nonzeros.bring<double>(csr.values, 1, communicator);
  csr.values = decltype(csr.values)();
  part.y.route = rows, part.route = std::make_shared<const RowValueRoute>(nonzeros);
  finish(part, std::move(own), type, tiling, communicator);
  return part;
}

}  // namespace

void require_offsets(std::span<const std::int64_t> row_ptr, const OwnRows& given) {
  const RowRanges own(given.range, given.further);
  const std::int64_t rows = own.count();
  if (std::ssize(row_ptr) != rows + 1)
    throw Error(ErrorKind::input,
                fmt::format("{} row offsets came for {} rows; there must be one more than rows", row_ptr.size(), rows));
  for (std::int64_t i = 0; i < rows; ++i)
    if (row_ptr[static_cast<std::size_t>(i) + 1] < row_ptr[static_cast<std::size_t>(i)])
      throw Error(ErrorKind::input,
                  fmt::format("row {} ends before it begins: its offsets are {} and {}", own.number(i),
                              row_ptr[static_cast<std::size_t>(i)], row_ptr[static_cast<std::size_t>(i) + 1]));
  if (row_ptr.back() - row_ptr.front() != std::ssize(given.columns))
    throw Error(ErrorKind::input, fmt::format("the row offsets span {} nonzeros, but {} columns came",
                                              row_ptr.back() - row_ptr.front(), given.columns.size()));
}

MatrixPart::MatrixPart(LoadedPart rows) : rows_(std::make_unique<LoadedPart>(std::move(rows))) {}
MatrixPart::MatrixPart(MatrixPart&&) noexcept = default;
MatrixPart& MatrixPart::operator=(MatrixPart&&) noexcept = default;
MatrixPart::~MatrixPart() = default;

MatrixPart take_rows(const OwnRows& given, Context& context, ValueType type, std::string_view method,
                     std::int64_t node_block_size) {
  const ContextScope scope(context);
  Communicator& communicator = context.communicator();
  require_method(method, communicator);
  const RowRanges mine(given.range, given.further);
  const Tiling tiling(mine, given.cols, communicator);
  HostCsr csr = communicator.run_agreed([&] {
    if (!method.empty()) tiling.require_one_range();
    require_node_block_size(node_block_size, tiling.rows());
    return copy_rows_of(given, mine, context, type);
  });
  const std::int64_t size = find_nodes(node_block_size, csr, mine, tiling, communicator);
  if (!method.empty()) {
    LoadedPart part = spread(std::move(csr), type, tiling, method, size, context);
    note_nodes(part, node_block_size, size, RowRange{part.first_row, std::ssize(part.y.ids)}, communicator);
    return part;
  }
  LoadedPart part = communicator.run_agreed([&] { return describe_part(tiling, mine, given.cols, context); });
  note_nodes(part, node_block_size, size, mine, communicator);
  finish(part, std::move(csr), type, tiling, communicator);
  return part;
}

namespace {

/// Rows in CSR from triplets that arrived, and which of them are added up for each nonzero.
struct Assembled {
  HostCsr csr;
  HostVector<std::int64_t> order, starts;
};

/// Rows of `places` are counted from this rank's first.
Assembled assemble(const HostVector<TripletRoute::Place>& places, std::int64_t row_count, std::int64_t cols) {
  require_host_memory(16 * row_count + 40 * std::ssize(places), "the rows of the triplets");
  Assembled made;
  const auto rows = static_cast<std::size_t>(row_count);
  HostVector<std::int64_t> first(rows + 1);  // of each row among the triplets, sorted by rows
  std::fill(first.begin(), first.end(), std::int64_t{0});
  for (const auto& place : places) ++first[static_cast<std::size_t>(place.row) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  HostVector<std::int64_t> next(first.begin(), first.end());
  made.order.resize(places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    made.order[static_cast<std::size_t>(next[static_cast<std::size_t>(places[i].row)]++)] = static_cast<std::int64_t>(i);
  const auto column = [&](std::int64_t i) { return places[static_cast<std::size_t>(i)].column; };
  made.csr.rows = row_count, made.csr.cols = cols;
  made.csr.row_ptr.resize(rows + 1);
  made.csr.row_ptr[0] = 0;
  parallel_ranges(row_count, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto from = made.order.begin() + first[static_cast<std::size_t>(row)],
                 to = made.order.begin() + first[static_cast<std::size_t>(row) + 1];
      std::stable_sort(from, to, [&](std::int64_t a, std::int64_t b) { return column(a) < column(b); });
      std::int64_t distinct = 0;
      for (auto i = from; i != to; ++i) distinct += i == from || column(*i) != column(*(i - 1)) ? 1 : 0;
      made.csr.row_ptr[static_cast<std::size_t>(row) + 1] = distinct;
    }
  });
  std::partial_sum(made.csr.row_ptr.begin(), made.csr.row_ptr.end(), made.csr.row_ptr.begin());
  made.csr.col_idx.reserve(static_cast<std::size_t>(made.csr.row_ptr.back()));
  made.starts.reserve(static_cast<std::size_t>(made.csr.row_ptr.back()) + 1);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::int64_t i = first[row]; i < first[row + 1]; ++i) {
      const std::int64_t here = column(made.order[static_cast<std::size_t>(i)]);
      if (i > first[row] && here == made.csr.col_idx.back()) continue;
      made.csr.col_idx.push_back(here);
      made.starts.push_back(i);
    }
  made.starts.push_back(std::ssize(places));
  return made;
}

void require_triplets(const HostVector<std::int64_t>& rows, const HostVector<std::int64_t>& columns,
                      const HostVector<double>& values, const Tiling& tiling, std::int64_t cols) {
  if (rows.size() != columns.size())
    throw Error(ErrorKind::input, fmt::format("{} rows of triplets came with {} columns", rows.size(), columns.size()));
  const auto wrong = [&](std::int64_t k) {
    const auto i = static_cast<std::size_t>(k);
    return rows[i] < 0 || rows[i] >= tiling.rows() || columns[i] < 0 || columns[i] >= cols || !std::isfinite(values[i]);
  };
  if (const auto found = first_where(std::ssize(rows), 1 << 10, wrong)) {
    const auto i = static_cast<std::size_t>(*found);
    throw Error(ErrorKind::input,
                fmt::format("triplet {} is ({}, {}, {}), but the matrix is {} × {} and values must be finite", i, rows[i],
                            columns[i], values[i], tiling.rows(), cols));
  }
}

/// Triplets in host memory, checked.
struct Triplets {
  HostVector<TripletRoute::Place> places;
  HostVector<double> values;
};

Triplets copy_triplets(const OwnTriplets& given, const Tiling& tiling, Context& context) {
  require_host_memory(60 * std::ssize(given.rows), "this rank's triplets");
  const auto rows = to_host_numbers(given.rows, given.device, context),
             columns = to_host_numbers(given.columns, given.device, context);
  Triplets triplets;
  triplets.values = to_host_values(given.values.data, std::ssize(given.rows), given.values.type, given.device, context);
  require_triplets(rows, columns, triplets.values, tiling, given.cols);
  triplets.places.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) triplets.places[i] = {rows[i], columns[i]};
  return triplets;
}

/// The pattern of the rows that a rank owns, and the way of the triplets to it.
struct Pattern {
  std::shared_ptr<TripletRoute> route;
  HostCsr csr;
};

/// Collective: triplets go to the owners of their rows in `tiling`.
Pattern send_triplets(const Triplets& triplets, const Tiling& tiling, std::int64_t cols, Communicator& communicator) {
  const std::vector<int> owner = communicator.run_agreed([&] {
    std::vector<int> owners(triplets.places.size());
    for (std::size_t i = 0; i < owners.size(); ++i) owners[i] = tiling.owner(triplets.places[i].row);
    return owners;
  });
  TripletRoute::Arrival arrival;
  Pattern pattern;
  pattern.route = std::make_shared<TripletRoute>(owner, triplets.places, communicator, arrival);
  communicator.run_agreed([&] {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const std::int64_t start = tiling.starts()[rank], rows = tiling.starts()[rank + 1] - start;
    tiling.renumber_rows(arrival.places, start);
    Assembled made = assemble(arrival.places, rows, cols);
    pattern.csr = std::move(made.csr);
    pattern.route->set_sums(std::move(made.order), std::move(made.starts));
  });
  return pattern;
}

/// Collective: this rank's rows by the partitioner. Each rank counts the nonzeros of an even share of the rows, wherever the
/// caller's ranges are.
RowRange cut_triplets(const Triplets& triplets, const Tiling& given, std::int64_t cols, std::string_view method,
                      std::int64_t& node_block_size, Communicator& communicator) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const std::vector<std::int64_t> shares = even_starts(given.rows(), communicator.size());
  const RowRange share{shares[rank], shares[rank + 1] - shares[rank]};
  const Tiling counting(share, cols, communicator);
  const HostCsr pattern = send_triplets(triplets, counting, cols, communicator).csr;
  const auto lengths = communicator.run_agreed([&] { return lengths_of(pattern.row_ptr); });
  node_block_size = find_nodes(node_block_size, pattern, share, counting, communicator);
  return cut(lengths, counting, method, node_block_size, communicator);
}

}  // namespace

MatrixPart take_triplets(const OwnTriplets& given, Context& context, ValueType type, std::string_view method,
                         std::int64_t node_block_size) {
  const ContextScope scope(context);
  Communicator& communicator = context.communicator();
  require_method(method, communicator);
  const RowRanges wanted(given.range, given.further);
  const Tiling asked(wanted, given.cols, communicator);
  const Triplets triplets = communicator.run_agreed([&] {
    if (!method.empty()) asked.require_one_range();
    require_node_block_size(node_block_size, asked.rows());
    return copy_triplets(given, asked, context);
  });
  std::int64_t size = node_block_size;
  const RowRanges mine = method.empty() ? wanted : cut_triplets(triplets, asked, given.cols, method, size, communicator);
  const Tiling tiling = method.empty() ? asked : Tiling(mine, given.cols, communicator);
  Pattern pattern = send_triplets(triplets, tiling, given.cols, communicator);
  if (method.empty()) size = find_nodes(size, pattern.csr, mine, tiling, communicator);
  LoadedPart part = communicator.run_agreed([&] { return describe_part(tiling, mine, given.cols, context); });
  note_nodes(part, node_block_size, size, mine, communicator);
  HostCsr csr = std::move(pattern.csr);
  csr.values = pattern.route->bring(triplets.values, communicator);
  communicator.run_agreed([&] {
    if (!std::all_of(csr.values.begin(), csr.values.end(), [](double value) { return std::isfinite(value); }))
      throw Error(ErrorKind::input, "triplets of the same place add up to more than f64 holds");
    require_in_range(type, csr.values, "the sums of the triplets");
  });
  part.route = std::move(pattern.route);
  if (!method.empty()) {
    part.partition_origin = "computed when loading";
    part.y.route = std::make_shared<const RangeRoute>(asked.by_rank(), tiling.by_rank(), communicator.rank());
  }
  finish(part, std::move(csr), type, tiling, communicator);
  return part;
}

}  // namespace shardmat
