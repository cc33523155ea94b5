#include "runtime/maps/row_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/base/error.h"
#include "partition/files/checksum.h"
#include "partition/source/partitioner.h"
#include "runtime/context/context.h"
#include "runtime/context/row_maps.h"
#include "runtime/maps/range_route.h"

namespace shardmat {

HostVector<std::int64_t> RowMapParts::ids_by_place() const {
  if (places.empty()) return ids;
  HostVector<std::int64_t> ordered(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ordered[static_cast<std::size_t>(places[i])] = ids[i];
  return ordered;
}

RowMapParts even_share(std::int64_t size, int ranks, int rank) {
  RowMapParts share{size, even_starts(size, ranks), {}, {}, nullptr};
  const std::int64_t first = share.starts[static_cast<std::size_t>(rank)];
  share.ids.resize(static_cast<std::size_t>(share.starts[static_cast<std::size_t>(rank) + 1] - first));
  std::iota(share.ids.begin(), share.ids.end(), first);
  return share;
}

RowMap::RowMap(RowMapParts parts, Context& context) : context_(context), parts_(std::move(parts)) {
  const std::uint64_t mine =
      xxh64(parts_.ids.data(), parts_.ids.size() * sizeof(std::int64_t), static_cast<std::uint64_t>(parts_.size));
  const std::vector<std::uint64_t> of_ranks = context.communicator().all_gather(mine);
  number_ = xxh64(of_ranks.data(), of_ranks.size() * sizeof(std::uint64_t));
  if (number_ == 0) number_ = 1;
  const HostVector<std::int64_t>& ids = parts_.ids;
  is_range_ = !ids.empty();
  for (std::size_t i = 1; i < ids.size(); ++i) is_range_ = is_range_ && ids[i] == ids[i - 1] + 1;
  HostVector<std::int64_t>& places = parts_.places;
  bool in_place = true;
  for (std::size_t i = 0; i < places.size(); ++i) in_place = in_place && places[i] == static_cast<std::int64_t>(i);
  if (in_place) places = HostVector<std::int64_t>();
}

bool RowMap::equals(const RowMap& other) const {
  const RowMapParts &a = parts_, &b = other.parts_;
  return a.size == b.size && a.starts == b.starts && a.ids == b.ids && a.places == b.places && a.route == b.route;
}

std::shared_ptr<const RowMap> RowMap::make(RowMapParts parts, Context& context) {
  std::shared_ptr<const RowMap> made(new RowMap(std::move(parts), context));
  RowMaps& maps = context.row_maps();
  std::erase_if(maps.known, [](const auto& one) { return one.second.expired(); });
  // Ranks may let go of a map at different times, so that all must tell which one they found.
  std::pair<std::int64_t, std::shared_ptr<const RowMap>> found{-1, nullptr};
  for (const auto& [turn, one] : maps.known)
    if (const auto map = one.lock(); map && map->number() == made->number() && map->equals(*made)) found = {turn, map};
  const std::vector<std::int64_t> turns = context.communicator().all_gather(found.first);
  const bool alike = std::all_of(turns.begin(), turns.end(), [&](std::int64_t turn) { return turn == turns.front(); });
  if (alike && found.second) return found.second;
  maps.known.emplace_back(maps.made++, made);
  return made;
}

HostVector<std::int64_t> RowMap::places_of_rows() const {
  if (!in_source_order()) return parts_.places;
  HostVector<std::int64_t> places(parts_.ids.size());
  std::iota(places.begin(), places.end(), std::int64_t{0});
  return places;
}

HostVector<std::int64_t> RowMap::rows_by_place() const {
  HostVector<std::int64_t> rows(parts_.ids.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[static_cast<std::size_t>(place(i))] = static_cast<std::int64_t>(i);
  return rows;
}

std::int64_t RowMap::own_rows() const { return parts_.route == nullptr ? local_rows() : parts_.route->given(); }

void require_row_map(const char* what, std::uint64_t number, const RowMap& wanted, const char* side) {
  if (number == 0 || number == wanted.number()) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} lies on row map {:016x}, but {} of the matrix on row map {:016x}: its entries lie on other "
                          "ranks or in another order. Make the matrix on the maps of the other one (MatrixOptions::y_rows, "
                          "x_rows), or copy the vector by own() and set_own()",
                          what, number, side, wanted.number()));
}

}  // namespace shardmat
