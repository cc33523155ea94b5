#include "runtime/matrix/own_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "partition/partitioner.h"
#include "runtime/matrix/value_route.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
namespace {

/// The rows of all ranks: global numbers become internal ones, in which each rank's rows follow those of the rank before.
class Tiling {
 public:
  /// Collective; the same error on all ranks.
  Tiling(RowRange mine, std::int64_t cols, Communicator& communicator) : cols_(cols) {
    struct Said {
      std::int64_t first, count, cols;
    };
    const std::vector<Said> all = communicator.all_gather(Said{mine.first, mine.count, cols});
    communicator.together([&] {
      starts_.push_back(0);
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const Said& said = all[rank];
        if (said.count < 0 || said.first < 0 || said.cols < 0)
          refuse(fmt::format("rank {} gives {} rows from row {} on and {} columns; none may be negative", rank, said.count,
                             said.first, said.cols));
        if (said.cols != cols)
          refuse(fmt::format("rank {} gives {} columns for the whole matrix, and another rank {}", rank, said.cols, cols));
        if (said.count > 0) ranges_.push_back({said.first, said.first + said.count, starts_.back(), static_cast<int>(rank)});
        starts_.push_back(starts_.back() + said.count);
      }
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
  const std::vector<std::int64_t>& starts() const { return starts_; }
  int owner(std::int64_t row) const { return of(row).rank; }
  std::int64_t internal(std::int64_t row) const {
    const Range& range = of(row);
    return range.internal + row - range.first;
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

/// The first row of which check(i) says that it is wrong.
template <class Check>
std::optional<std::int64_t> first_wrong(std::int64_t count, const Check& wrong) {
  std::int64_t found = count;
  std::mutex mutex;
  parallel_ranges(count, 1 << 10, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (!wrong(i)) continue;
      const std::lock_guard lock(mutex);
      found = std::min(found, i);
      return;
    }
  });
  return found == count ? std::nullopt : std::optional(found);
}

void require_offsets(const HostVector<std::int64_t>& row_ptr, const OwnRows& given) {
  const std::int64_t rows = given.range.count;
  if (std::ssize(row_ptr) != rows + 1)
    throw Error(ErrorKind::input,
                fmt::format("{} row offsets came for {} rows; there must be one more than rows", row_ptr.size(), rows));
  for (std::int64_t i = 0; i < rows; ++i)
    if (row_ptr[static_cast<std::size_t>(i) + 1] < row_ptr[static_cast<std::size_t>(i)])
      throw Error(ErrorKind::input,
                  fmt::format("row {} ends before it begins: its offsets are {} and {}", given.range.first + i,
                              row_ptr[static_cast<std::size_t>(i)], row_ptr[static_cast<std::size_t>(i) + 1]));
  if (row_ptr.back() - row_ptr.front() != std::ssize(given.columns))
    throw Error(ErrorKind::input, fmt::format("the row offsets span {} nonzeros, but {} columns came",
                                              row_ptr.back() - row_ptr.front(), given.columns.size()));
}

/// Columns in range, none twice in a row, finite values.
void require_entries(const HostCsr& csr, std::int64_t first_row, ValueType type) {
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
  if (const auto row = first_wrong(csr.rows, wrong)) {
    const auto [begin, end] = of_row(*row);
    for (std::size_t k = begin; k < end; ++k) {
      if (csr.col_idx[k] < 0 || csr.col_idx[k] >= csr.cols)
        throw Error(ErrorKind::input, fmt::format("row {} has column {}, but the matrix has columns 0 to {}",
                                                  first_row + *row, csr.col_idx[k], csr.cols - 1));
      if (!std::isfinite(csr.values[k]))
        throw Error(ErrorKind::input, fmt::format("row {} has the value {} in column {}; values must be finite",
                                                  first_row + *row, csr.values[k], csr.col_idx[k]));
    }
    throw Error(ErrorKind::input, fmt::format("row {} has column {} twice; add the two values up, or give triplets, whose "
                                              "duplicates are added up",
                                              first_row + *row, twice(begin, end).value_or(-1)));
  }
  require_in_range(type, csr.values, "the values of own rows");
}

/// Everything of a part but its rows.
LoadedPart describe_part(const Tiling& tiling, RowRange range, std::int64_t cols, Context& context) {
  LoadedPart part;
  part.rows = tiling.rows(), part.cols = cols;
  part.first_row = range.first;
  part.row_starts = tiling.starts();
  part.x_starts = tiling.square() ? part.row_starts : even_starts(cols, context.communicator().size());
  part.partition_origin = "given";
  const auto rows = static_cast<std::size_t>(range.count);
  part.local_order.resize(rows), part.row_ids.resize(rows);
  std::iota(part.local_order.begin(), part.local_order.end(), std::int64_t{0});
  std::iota(part.row_ids.begin(), part.row_ids.end(), range.first);
  if (tiling.square()) {
    part.x_ids = part.row_ids;
  } else {
    const auto rank = static_cast<std::size_t>(context.communicator().rank());
    part.x_ids.resize(static_cast<std::size_t>(part.x_starts[rank + 1] - part.x_starts[rank]));
    std::iota(part.x_ids.begin(), part.x_ids.end(), part.x_starts[rank]);
  }
  return part;
}

void finish(LoadedPart& part, const Tiling& tiling, Communicator& communicator) {
  part.value_starts.assign(part.csr.row_ptr.begin(), part.csr.row_ptr.end() - 1);
  tiling.renumber_columns(part.csr.col_idx);
  part.nnz = communicator.all_reduce(part.csr.nnz(), Reduction::sum);
}

}  // namespace

LoadedPart take_rows(const OwnRows& given, Context& context, ValueType type) {
  Communicator& communicator = context.communicator();
  const Tiling tiling(given.range, given.cols, communicator);
  LoadedPart part = communicator.together([&] {
    require_host_memory(40 * given.range.count + 16 * std::ssize(given.columns), "this rank's own rows");
    LoadedPart taken = describe_part(tiling, given.range, given.cols, context);
    HostCsr& csr = taken.csr;
    csr.rows = given.range.count, csr.cols = given.cols;
    csr.row_ptr = to_host_numbers(given.row_ptr, given.device, context);
    require_offsets(csr.row_ptr, given);
    const std::int64_t offset = csr.row_ptr.front();
    for (std::int64_t& at : csr.row_ptr) at -= offset;
    csr.col_idx = to_host_numbers(given.columns, given.device, context);
    csr.values = to_host_values(given.values, std::ssize(given.columns), given.values_type, given.device, context);
    require_entries(csr, given.range.first, type);
    return taken;
  });
  finish(part, tiling, communicator);
  return part;
}

namespace {

/// Rows in CSR from triplets that arrived, and which of them are added up for each nonzero.
struct Assembled {
  HostCsr csr;
  HostVector<std::int64_t> order, starts;
};

Assembled assemble(const HostVector<ValueRoute::Place>& places, RowRange range, std::int64_t cols) {
  require_host_memory(16 * range.count + 40 * std::ssize(places), "the rows of the triplets");
  Assembled made;
  const auto rows = static_cast<std::size_t>(range.count);
  HostVector<std::int64_t> first(rows + 1);  // of each row among the triplets, sorted by rows
  std::fill(first.begin(), first.end(), std::int64_t{0});
  for (const auto& place : places) ++first[static_cast<std::size_t>(place.row - range.first) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  HostVector<std::int64_t> next(first.begin(), first.end());
  made.order.resize(places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    made.order[static_cast<std::size_t>(next[static_cast<std::size_t>(places[i].row - range.first)]++)] =
        static_cast<std::int64_t>(i);
  const auto column = [&](std::int64_t i) { return places[static_cast<std::size_t>(i)].column; };
  made.csr.rows = range.count, made.csr.cols = cols;
  made.csr.row_ptr.resize(rows + 1);
  made.csr.row_ptr[0] = 0;
  parallel_ranges(range.count, 256, [&](std::int64_t begin, std::int64_t end) {
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
  if (const auto found = first_wrong(std::ssize(rows), wrong)) {
    const auto i = static_cast<std::size_t>(*found);
    throw Error(ErrorKind::input,
                fmt::format("triplet {} is ({}, {}, {}), but the matrix is {} × {} and values must be finite", i, rows[i],
                            columns[i], values[i], tiling.rows(), cols));
  }
}

}  // namespace

LoadedPart take_triplets(const OwnTriplets& given, Context& context, ValueType type) {
  Communicator& communicator = context.communicator();
  const Tiling tiling(given.range, given.cols, communicator);
  HostVector<double> values;
  HostVector<ValueRoute::Place> places;
  std::vector<int> owner;
  communicator.together([&] {
    require_host_memory(60 * std::ssize(given.rows), "this rank's triplets");
    const auto rows = to_host_numbers(given.rows, given.device, context),
               columns = to_host_numbers(given.columns, given.device, context);
    values = to_host_values(given.values, std::ssize(given.rows), given.values_type, given.device, context);
    require_triplets(rows, columns, values, tiling, given.cols);
    places.resize(rows.size()), owner.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      places[i] = {rows[i], columns[i]};
      owner[i] = tiling.owner(rows[i]);
    }
  });
  ValueRoute::Arrival arrival;
  auto route = std::make_shared<ValueRoute>(owner, places, communicator, arrival);
  LoadedPart part = communicator.together([&] {
    LoadedPart taken = describe_part(tiling, given.range, given.cols, context);
    Assembled made = assemble(arrival.places, given.range, given.cols);
    taken.csr = std::move(made.csr);
    route->set_sums(std::move(made.order), std::move(made.starts));
    return taken;
  });
  part.csr.values = route->bring(values, communicator);
  communicator.together([&] {
    if (!std::all_of(part.csr.values.begin(), part.csr.values.end(), [](double value) { return std::isfinite(value); }))
      throw Error(ErrorKind::input, "triplets of the same place add up to more than f64 holds");
    require_in_range(type, part.csr.values, "the sums of the triplets");
  });
  part.route = std::move(route);
  finish(part, tiling, communicator);
  return part;
}

}  // namespace shardmat
