// Columns of a client's memory become a block, and back, wherever a rank's entries of them lie.
#include "runtime/service/engine/column_transfer.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "runtime/service/engine/memories.h"
#include "tests/runtime/contexts.h"

namespace shardmat::service {
namespace {

constexpr std::int64_t kSize = 1000;

HostVector<std::int64_t> entries_from(std::int64_t first, std::int64_t count) {
  HostVector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

HostVector<std::int64_t> every_third() {
  HostVector<std::int64_t> ids;
  for (std::int64_t id = kSize - 1; id >= 0; id -= 3) ids.push_back(id);
  return ids;
}

template <class T>
void expect_there_and_back(const Case& c, const RowMap& map, std::int64_t columns, std::int64_t given) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  const Arena arena = Arena::create(1 << 20);
  Memories memories(arena, context.device());
  const std::uint64_t bytes = kSize * sizeof(T);
  std::mt19937 random(static_cast<unsigned>(columns * 100 + given));
  std::vector<const std::byte*> x;
  std::vector<UnpackedColumn> y;
  std::vector<std::vector<T>> before;
  for (std::int64_t j = 0; j < given; ++j) {
    const auto from = memories.at({0, static_cast<std::uint64_t>(2 * j) * bytes, 0}, bytes);
    const auto to = memories.at({0, static_cast<std::uint64_t>(2 * j + 1) * bytes, 0}, bytes);
    for (std::int64_t i = 0; i < 2 * kSize; ++i)
      reinterpret_cast<T*>(from.data())[i] = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
    before.emplace_back(reinterpret_cast<T*>(to.data()), reinterpret_cast<T*>(to.data()) + kSize);
    x.push_back(from.data());
    y.push_back({j % 5 == 3 ? nullptr : to.data(), j % 2 == 0 ? 1.0 : -0.5, j % 3 == 0 ? 0.0 : 0.75});
  }
  const std::int64_t rows = std::ssize(map.ids());
  Buffer memory(context.device(), static_cast<std::size_t>(rows * columns) * sizeof(T));
  fill_bytes(memory.data(), 0xff, memory.bytes(), stream);  // NaN
  const Dense block{memory.data(), rows, columns, columns, DenseOrder::row_major, c.type, context.device()};
  ColumnTransfer transfer(stream);
  transfer.take(x, map, block);
  std::vector<T> there(static_cast<std::size_t>(rows * columns));
  copy_to_host(there.data(), memory.data(), memory.bytes(), stream);
  stream.synchronize();
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t id = map.ids()[static_cast<std::size_t>(i)];
      const T expected = j < given ? reinterpret_cast<const T*>(x[static_cast<std::size_t>(j)])[id] : T(0);
      ASSERT_EQ(there[static_cast<std::size_t>(i * columns + j)], expected) << "entry " << id << " of column " << j;
    }
  transfer.give(block, map, y);
  for (std::int64_t j = 0; j < given; ++j) {
    const auto at = static_cast<std::size_t>(j);
    std::vector<T> expected = before[at];
    for (std::int64_t i = 0; y[at].y != nullptr && i < rows; ++i) {
      T& one = expected[static_cast<std::size_t>(map.ids()[static_cast<std::size_t>(i)])];
      const T product = static_cast<T>(y[at].alpha) * there[static_cast<std::size_t>(i * columns + j)];
      one = static_cast<T>(static_cast<double>(product) + y[at].beta * static_cast<double>(one));
    }
    const T* const result = reinterpret_cast<const T*>(x[at]) + kSize;
    for (std::int64_t i = 0; i < kSize; ++i)
      ASSERT_NEAR(result[i], expected[static_cast<std::size_t>(i)], 1e-6) << "entry " << i << " of column " << j;
  }
}

void moves_columns(const Case& c) {
  for (const HostVector<std::int64_t>& ids :
       {entries_from(0, kSize), entries_from(17, 333), entries_from(5, 1), every_third(), HostVector<std::int64_t>()}) {
    const auto map = RowMap::make({kSize, {}, ids, {}, nullptr}, context_of(c));
    for (const std::int64_t columns : {1, 2, 3, 8, 32})
      for (const std::int64_t given : {std::int64_t{1}, columns - 1, columns}) {
        SCOPED_TRACE(testing::Message() << ids.size() << " entries, " << given << " of " << columns << " columns");
        if (c.type == ValueType::f32) expect_there_and_back<float>(c, *map, columns, given);
        else expect_there_and_back<double>(c, *map, columns, given);
      }
  }
}
SHARDMAT_VECTOR_TEST(ColumnTransfer, MovesColumns, moves_columns)

}  // namespace
}  // namespace shardmat::service
