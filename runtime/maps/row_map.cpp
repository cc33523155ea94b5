#include "runtime/maps/row_map.h"

#include <fmt/format.h>

#include <utility>

#include "kernels/base/error.h"
#include "partition/checksum.h"
#include "runtime/context.h"
#include "runtime/matrix/range_route.h"

namespace shardmat {

RowMap::RowMap(RowMapParts parts, Context& context) : context_(context), parts_(std::move(parts)) {
  const std::uint64_t mine =
      xxh64(parts_.ids.data(), parts_.ids.size() * sizeof(std::int64_t), static_cast<std::uint64_t>(parts_.size));
  const std::vector<std::uint64_t> of_ranks = context.communicator().all_gather(mine);
  number_ = xxh64(of_ranks.data(), of_ranks.size() * sizeof(std::uint64_t));
  if (number_ == 0) number_ = 1;
}

std::shared_ptr<const RowMap> RowMap::make(RowMapParts parts, Context& context) {
  return std::shared_ptr<const RowMap>(new RowMap(std::move(parts), context));
}

std::int64_t RowMap::own_rows() const { return parts_.route == nullptr ? local_rows() : parts_.route->given(); }

void require_row_map(const char* what, std::uint64_t number, const RowMap& wanted, const char* side) {
  if (number == 0 || number == wanted.number()) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} lies on row map {:016x}, but {} of the matrix on row map {:016x}: its entries lie on other "
                          "ranks or in another order. Copy it by DistributedVector::own() and set_own()",
                          what, number, side, wanted.number()));
}

}  // namespace shardmat
