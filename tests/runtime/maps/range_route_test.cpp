// Rows on their way between two tilings.
#include "runtime/maps/range_route.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "partition/source/partitioner.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

using Ranges = std::vector<RangeRoute::Range>;

/// Tilings of so many rows: even, backwards from rank to rank, all on the last rank.
std::vector<Ranges> tilings(std::int64_t rows) {
  const auto size = static_cast<std::size_t>(world().size());
  const std::vector<std::int64_t> starts = even_starts(rows, world().size());
  Ranges even(size), backwards(size), last(size, {7, 0});
  for (std::size_t p = 0; p < size; ++p) even[p] = {starts[p], starts[p + 1] - starts[p]};
  for (std::size_t p = 0; p < size; ++p) backwards[p] = even[size - 1 - p];
  last.back() = {0, rows};
  return {even, backwards, last};
}

/// `each` values of each row of the range; row i has i % 3 of them if each is 0.
HostVector<std::int64_t> values_of(RangeRoute::Range range, std::int64_t each) {
  HostVector<std::int64_t> values;
  for (std::int64_t i = range.first; i < range.first + range.count; ++i)
    for (std::int64_t j = 0; j < (each == 0 ? i % 3 : each); ++j) values.push_back(10 * i + j);
  return values;
}

HostVector<std::int64_t> offsets_of(RangeRoute::Range range) {
  HostVector<std::int64_t> offsets{4};  // any first offset
  for (std::int64_t i = range.first; i < range.first + range.count; ++i) offsets.push_back(offsets.back() + i % 3);
  return offsets;
}

TEST(RangeRoute, BringsRowsThereAndBack) {
  const auto rank = static_cast<std::size_t>(world().rank());
  for (const std::int64_t rows : {0, 1, 50})
    for (const Ranges& before : tilings(rows))
      for (const Ranges& after : tilings(rows)) {
        const RangeRoute route(before, after, world().rank());
        EXPECT_EQ(route.given(), before[rank].count);
        EXPECT_EQ(route.taken(), after[rank].count);
        for (const std::int64_t each : {1, 4}) {
          const auto given = values_of(before[rank], each), taken = values_of(after[rank], each);
          EXPECT_EQ(route.bring<std::int64_t>(given, each, world()), taken);
          EXPECT_EQ(route.bring_back<std::int64_t>(taken, each, world()), given);
        }
        const RangeRoute items = route.of_items(offsets_of(before[rank]), offsets_of(after[rank]));
        EXPECT_EQ(items.bring<std::int64_t>(values_of(before[rank], 0), 1, world()), values_of(after[rank], 0));
      }
}

TEST(RangeRoute, AnotherNumberOfValuesIsRefusedOnAllRanks) {
  const std::vector<Ranges> all = tilings(20);
  const RangeRoute route(all[0], all[1], world().rank());
  HostVector<double> values(static_cast<std::size_t>(route.given()));
  if (world().rank() == world().size() - 1) values.push_back(1);
  EXPECT_NE(error_of(ErrorKind::internal, [&] { route.bring<double>(values, 1, world()); }).find("values are to move"),
            std::string::npos);
}

}  // namespace
}  // namespace shardmat
