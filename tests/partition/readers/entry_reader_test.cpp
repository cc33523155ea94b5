// Shares of a file: together they are the matrix that one process reads, wherever the shares are cut.
#include "partition/readers/entry_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <tuple>
#include <vector>

#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::error_of;
using test::expect_same;
using test::gzip;

/// What count() and read() give for all shares, as a matrix.
HostCsr assembled(const std::filesystem::path& path, int shares, const ReadLimits& limits) {
  std::mutex mutex;
  std::vector<MatrixEntry> entries;
  HostCsr matrix;
  std::vector<std::int64_t> counted;
  std::int64_t stored = 0, batches = 0;
  for (int share = 0; share < shares; ++share) {
    const auto reader = open_entries(path, {}, limits);
    matrix.rows = reader->rows(), matrix.cols = reader->cols();
    counted.resize(static_cast<std::size_t>(matrix.rows));
    stored += reader->count({share, shares},
                            [&](std::span<const RowCount> counts) {
                              const std::scoped_lock lock(mutex);
                              for (const RowCount& found : counts)
                                counted[static_cast<std::size_t>(found.row)] += found.count;
                            },
                            {});
    reader->read(
        {share, shares},
        [&](std::span<const MatrixEntry> found) {
          const std::scoped_lock lock(mutex);
          entries.insert(entries.end(), found.begin(), found.end());
        },
        [&](std::string_view, std::int64_t done, std::int64_t total) {
          ++batches;
          EXPECT_LE(done, total);
        });
    if (share + 1 == shares) reader->require_promised(stored);
    EXPECT_LE(std::ssize(entries), reader->most_entries());
  }
  EXPECT_GT(batches, 0);
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.row < b.row; });
  matrix.row_ptr.assign(static_cast<std::size_t>(matrix.rows) + 1, 0);
  for (const MatrixEntry& entry : entries) {
    ++matrix.row_ptr[static_cast<std::size_t>(entry.row) + 1];
    matrix.col_idx.push_back(entry.col);
    matrix.values.push_back(entry.value);
  }
  for (std::size_t i = 0; i < counted.size(); ++i) {
    EXPECT_EQ(matrix.row_ptr[i + 1], counted[i]);
    matrix.row_ptr[i + 1] += matrix.row_ptr[i];
  }
  sort_rows_and_sum_duplicates(matrix);
  return matrix;
}

/// Pieces of a line or two, a few in a batch.
ReadLimits tiny() { return {9, 40, std::int64_t{1} << 40}; }

class EntryReaderTest : public test::FilesTest {};

TEST_F(EntryReaderTest, SharesTogetherAreTheMatrix) {
  const std::string symmetric =
      "%%MatrixMarket matrix coordinate real symmetric\n% comment\n4 4 6\n4 2 1.5\n1 1 2\n\n% more\n3 3 -1\n4 2 0.25\n"
      "  3   1  7e2  \r\n2 2 4";
  const auto path = write("a.mtx", symmetric);
  const HostCsr expected = read_matrix(path);
  ASSERT_TRUE(open_entries(path, {}, {})->is_divisible());
  for (int shares = 1; shares <= static_cast<int>(symmetric.size()); ++shares) {
    SCOPED_TRACE(shares);
    expect_same(assembled(path, shares, tiny()), expected);
  }
}

TEST_F(EntryReaderTest, CompressedTextIsOneShare) {
  const std::string pattern = "%%MatrixMarket matrix coordinate pattern general\n3 5 4\n3 5\n1 1\n3 1\n3 5\n";
  const auto path = write("a.mtx.gz", gzip(pattern));
  EXPECT_FALSE(open_entries(path, {}, {})->is_divisible());
  for (const ReadLimits& limits : {ReadLimits{}, tiny()}) expect_same(assembled(path, 1, limits), read_matrix(path));
}

TEST_F(EntryReaderTest, FaultsHaveTheirPlaceInTheWholeText) {
  const std::string text = "%%MatrixMarket matrix coordinate real general\n9 9 4\n1 1 1\n2 2 2\n3 10 3\n4 4 x\n";
  const auto path = write("a.mtx", text);
  for (const int shares : {1, 2, 3, 7}) {
    int faults = 0;
    for (int share = 0; share < shares; ++share) {
      const auto reader = open_entries(path, {}, tiny());
      const auto ignore = [](auto) {};
      try {
        reader->count({share, shares}, ignore, {});
      } catch (const TextFault& fault) {
        ++faults;
        EXPECT_EQ(fault.offset, static_cast<std::int64_t>(text.find("3 10")));
        EXPECT_SAYS(error_of([&] { reader->fail(fault); }), "a.mtx:5: the column index");
      }
    }
    EXPECT_EQ(faults, 1) << shares;
  }
}

TEST_F(EntryReaderTest, CountsThatTheSizeLineDoesNotPromise) {
  const auto path = write("a.mtx", "%%MatrixMarket matrix coordinate real general\n9 9 4\n1 1 1\n");
  EXPECT_SAYS(error_of([&] { assembled(path, 2, {}); }), "a.mtx:2", "promises 4 entries, the file has 1");
}

#ifdef SHARDMAT_HAVE_LIBZIP

TEST_F(EntryReaderTest, ArchivesOfEveryFormat) {
  for (const char* name : {"csr", "csc", "coo"}) {
    const std::filesystem::path path = std::filesystem::path(SHARDMAT_TEST_DATA) / "npz" / (std::string(name) + ".npz");
    EXPECT_FALSE(open_entries(path, {}, {})->is_divisible());
    for (const ReadLimits& limits : {ReadLimits{}, tiny()}) expect_same(assembled(path, 1, limits), read_matrix(path));
  }
}

#endif

}  // namespace
}  // namespace shardmat
