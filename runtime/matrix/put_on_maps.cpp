#include "runtime/matrix/put_on_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "runtime/maps/row_runs.h"
#include "runtime/matrix/reorder_rows.h"

namespace shardmat {
namespace {

void require_map(const char* name, const RowMap* map, std::int64_t size, const char* side, const Context& context) {
  if (map == nullptr) return;
  if (map->size() != size)
    throw Error(ErrorKind::usage, fmt::format("{} has {} rows, but the matrix has {} {}", name, map->size(), size, side),
                name);
  if (&map->context() != &context)
    throw Error(ErrorKind::usage,
                fmt::format("{} is of another context than the matrix; make both matrices in one context", name), name);
}

/// Where the rows of the map are among those of the part.
HostVector<std::int64_t> find_rows(const HostVector<std::int64_t>& of_part, const RowMap& map, int rank) {
  const HostVector<std::int64_t>& of_map = map.ids();
  require_host_memory(24 * std::ssize(of_part), "the order of this rank's rows");
  if (of_part == map.ids_by_place()) return map.places_of_rows();  // no search in what came in the order of the source
  const auto sorted = [](const HostVector<std::int64_t>& ids) {
    HostVector<std::int64_t> order(ids.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return ids[static_cast<std::size_t>(a)] < ids[static_cast<std::size_t>(b)];
    });
    return order;
  };
  const HostVector<std::int64_t> in_part = sorted(of_part), in_map = sorted(of_map);
  HostVector<std::int64_t> order(of_map.size());
  const auto refuse = [&](const char* has, std::int64_t row, const char* lacks) {
    throw Error(ErrorKind::usage,
                fmt::format("y_rows: {} row {} to rank {}, but {} does not. Give each rank the rows of the map (its ids())",
                            has, row, rank, lacks),
                "y_rows");
  };
  for (std::size_t i = 0; i < std::max(in_part.size(), in_map.size()); ++i) {
    const std::int64_t mine = i < in_part.size() ? of_part[static_cast<std::size_t>(in_part[i])] : INT64_MAX,
                       wanted = i < in_map.size() ? of_map[static_cast<std::size_t>(in_map[i])] : INT64_MAX;
    if (mine < wanted) refuse("the matrix gives", mine, "the map");
    if (wanted < mine) refuse("the map gives", wanted, "the matrix");
    order[static_cast<std::size_t>(in_map[i])] = in_part[i];
  }
  return order;
}

void order_rows(LoadedPart& part, const RowMap& map, Communicator& communicator) {
  communicator.run_agreed([&] {
    if (part.y.ids != map.ids()) {
      const HostVector<std::int64_t> order = find_rows(part.y.ids, map, communicator.rank());
      part.value_starts = in_order(part.value_starts, order);
      reorder_rows(part.csr, order);
      part.y.ids = map.ids();
    }
    part.y.places = map.places();
  });
  part.y.starts = map.starts();
}

/// Positions are original indices.
bool is_natural(std::int64_t first, const HostVector<std::int64_t>& ids) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] != first + static_cast<std::int64_t>(i)) return false;
  return true;
}

/// `ids`, `starts`: of this part in the order of the source, before its rows were ordered anew.
void number_columns(LoadedPart& part, const HostVector<std::int64_t>& ids, const std::vector<std::int64_t>& starts,
                    const RowMap& map, Communicator& communicator) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const std::int64_t first = starts[rank], first_of_map = map.starts()[rank];
  const HostVector<std::int64_t> ids_of_map = communicator.run_agreed([&] { return map.ids_by_place(); });
  const bool natural = is_natural(first, ids) && is_natural(first_of_map, ids_of_map),
             alike = starts == map.starts() && ids == ids_of_map;
  int of_all[] = {natural ? 1 : 0, alike ? 1 : 0};
  communicator.all_reduce(std::span<int>(of_all), Reduction::min);
  if (of_all[0] == 0 && of_all[1] == 0) {
    const auto from = RowRuns::make(first, ids, communicator), to = RowRuns::make(first_of_map, ids_of_map, communicator);
    communicator.run_agreed([&] {
      if (!from || !to)
        throw Error(
            ErrorKind::usage,
            "the columns of the matrix and the rows of x_rows are both in orders without long runs of rows that follow "
            "each other; make both matrices from files in one order",
            "x_rows");
      part.csr.change_columns([&](auto columns) { from->to_ids(columns), to->to_positions(columns); });
    });
  }
  if (!part.square()) part.x.starts = map.starts();
}

}  // namespace

void require_maps(std::int64_t rows, std::int64_t cols, const RowMap* y_rows, const RowMap* x_rows, Context& context) {
  context.communicator().run_agreed([&] {
    require_map("y_rows", y_rows, rows, "rows", context);
    require_map("x_rows", x_rows, cols, "columns", context);
    if (rows == cols && y_rows != nullptr && x_rows != nullptr && y_rows->number() != x_rows->number())
      throw Error(ErrorKind::usage, "y_rows and x_rows are different maps, but a square matrix has one for both", "x_rows");
  });
}

void put_on_maps(LoadedPart& part, const RowMap* y_rows, const RowMap* x_rows, Communicator& communicator) {
  if (part.square()) y_rows = x_rows = y_rows != nullptr ? y_rows : x_rows;
  HostVector<std::int64_t> ids;
  const std::vector<std::int64_t> starts = part.of_x().starts;
  if (x_rows != nullptr) ids = communicator.run_agreed([&] { return part.of_x().ids_by_place(); });
  if (y_rows != nullptr) order_rows(part, *y_rows, communicator);
  if (x_rows != nullptr) number_columns(part, ids, starts, *x_rows, communicator);
}

}  // namespace shardmat
