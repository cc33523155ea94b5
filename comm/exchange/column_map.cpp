#include "comm/exchange/column_map.h"

#include <utility>

#include "kernels/base/error.h"

namespace shardmat {

ColumnMap::ColumnMap(Halo halo)
    : layout_(ColumnLayout::compact),
      length_(halo.length()),
      own_(halo.own),
      first_own_(0),
      received_(halo.received),
      map_(std::move(halo)) {}

ColumnMap::ColumnMap(GatheredLayout layout, int rank)
    : layout_(ColumnLayout::gathered),
      length_(layout.length()),
      own_(layout.part_size(rank)),
      first_own_(layout.stride * rank),
      received_(layout.stride * (layout.parts() - 1)),
      map_(std::move(layout)) {}

void ColumnMap::require_columns_known() const {
  if (forgotten_) throw Error(ErrorKind::internal, "columns are to be renumbered with a map that has forgotten them");
}

void ColumnMap::renumber(std::span<std::int64_t> columns) const {
  require_columns_known();
  std::visit([&](const auto& map) { map.renumber(columns); }, map_);
}

void ColumnMap::renumber(std::span<std::int32_t> columns) const {
  require_columns_known();
  std::visit([&](const auto& map) { map.renumber(columns); }, map_);
}

void ColumnMap::forget_columns() {
  forgotten_ = true;
  std::visit([](auto& map) { map.forget_columns(); }, map_);
}

std::shared_ptr<ColumnMap> make_column_map(ColumnLayout layout, Communicator& communicator, const XParts& parts,
                                           const ColumnView& columns) {
  if (layout == ColumnLayout::compact) return std::make_shared<ColumnMap>(make_halo(communicator, parts, columns));
  return std::make_shared<ColumnMap>(make_gathered_layout(communicator, parts), communicator.rank());
}

}  // namespace shardmat
