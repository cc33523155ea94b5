#include "partition/batched/batch_source.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/partition/batched/test_batches.h"

namespace shardmat {
namespace {

using test::error_of;

class BatchSourceTest : public test::FilesTest {};

TEST_F(BatchSourceTest, MemoryGivesWhatItHolds) {
  const auto source = test::memory(test::example_batch());
  EXPECT_EQ(source->name(), "test");
  test::expect_same(source->read(0, 3), test::example_batch());
  test::expect_consistent(*source);
  test::expect_consistent(*test::memory({}));
  EXPECT_EQ(test::memory({})->count(), 0);
}

TEST_F(BatchSourceTest, MemoryRefusesAWrongBatch) {
  HostBatch batch = test::example_batch();
  batch.col_idx[3] = 2;
  EXPECT_SAYS(error_of([&] { test::memory(batch); }), "test: matrix 2, entry 0", "column 2", "[0, 2)");
}

TEST_F(BatchSourceTest, ChunksAreAsLongAsTheyMayBe) {
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  const auto chunks = [](const BatchSource& source, std::int64_t begin, std::int64_t end, std::int64_t most) {
    Ranges ranges;
    for_each_chunk(
        source, begin, end, [&](std::int64_t from, std::int64_t to) { ranges.emplace_back(from, to); }, most);
    return ranges;
  };
  const auto source = test::memory(test::example_batch());  // 3, 0 and 1 nonzeros in 3, 0 and 2 columns
  EXPECT_EQ(chunks(*source, 0, 3, 5), (Ranges{{0, 3}}));
  EXPECT_EQ(chunks(*source, 0, 3, 4), (Ranges{{0, 2}, {2, 3}}));
  EXPECT_EQ(chunks(*source, 0, 3, 1), (Ranges{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(chunks(*source, 1, 3, 100), (Ranges{{1, 3}}));
  EXPECT_EQ(chunks(*source, 2, 2, 100), Ranges{});
}

TEST_F(BatchSourceTest, SaysWhatItUnderstands) {
  const std::string near = write("collection.h5", "").string();
  EXPECT_SAYS(error_of([&] { open_batch(path("colection.h5").string()); }), "colection.h5: there is no such file", near);
  EXPECT_SAYS(error_of([&] { open_batch(write("a.csv", "1,2").string()); }), "a.csv", "batch:", "molecules:", ".h5", ".npz",
              "_A.txt", ".mtx");
  EXPECT_SAYS(error_of([&] { open_batch(directory_.string()); }), "a folder of .mtx files");
  EXPECT_SAYS(error_of([] { open_batch("bach:count=3"); }, ErrorKind::usage), "no generator \"bach\"",
              "did you mean batch?");
  EXPECT_SAYS(error_of([] { open_batch(""); }), "empty");
}

}  // namespace
}  // namespace shardmat
