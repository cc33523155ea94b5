// HDF5 files of ranks: a file a rank, and groups in one file.
#include "partition/readers/rank_hdf5.h"

#include <gtest/gtest.h>

#include "partition/hdf5/writer.h"
#include "partition/input_kind.h"
#include "partition/readers/reader.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::csr;
using test::error_of;
using test::expect_same;

/// What one rank writes; COO if there are no pointers.
struct Rank {
  HostVector<std::int64_t> pointers, rows, columns;
  HostVector<double> values;
  std::int64_t start = -1;
};

const Rank kFirst{{0, 2, 3}, {}, {3, 0, 1}, {1, 2, 3}};
const Rank kSecond{{0, 1}, {}, {2}, {4}};
HostCsr whole() { return csr(3, 4, {0, 2, 3, 4}, {0, 3, 1, 2}, {2, 1, 3, 4}); }

void put(Hdf5Writer& out, const std::string& name, const HostVector<std::int64_t>& numbers) {
  out.create_dataset<std::int64_t>(name, {std::ssize(numbers)}).write(0, std::ssize(numbers), numbers.data());
}

void put(Hdf5Writer& out, const std::string& group, const Rank& rank) {
  if (!rank.pointers.empty()) put(out, group + "/row_ptr", rank.pointers);
  else put(out, group + "/rows", rank.rows);
  put(out, group + "/columns", rank.columns);
  out.create_dataset<double>(group + "/values", {std::ssize(rank.values)})
      .write(0, std::ssize(rank.values), rank.values.data());
  if (rank.start >= 0) out.write_attribute<std::int64_t>(group.empty() ? "/" : group, "row_start", rank.start);
}

class RankHdf5Test : public test::FilesTest {
 protected:
  std::string pattern() const { return path("A.%03d.h5").string(); }

  std::string files(const std::vector<Rank>& ranks) const {
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) std::filesystem::remove(entry);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      Hdf5Writer out(path("A.00" + std::to_string(i) + ".h5"));
      put(out, "", ranks[i]);
      out.close();
    }
    return pattern();
  }
  std::string groups(const std::vector<Rank>& ranks) const {
    std::filesystem::remove(path("g.h5"));
    Hdf5Writer out(path("g.h5"));
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::string group = "/rank_0000" + std::to_string(i);
      out.create_group(group);
      put(out, group, ranks[i]);
    }
    out.close();
    return path("g.h5").string();
  }
  std::string error(const std::vector<Rank>& ranks) const {
    return error_of([&] { read_matrix(files(ranks)); });
  }
};

TEST_F(RankHdf5Test, CsrOfFilesAndGroups) {
  expect_same(read_matrix(files({kFirst, kSecond})), whole());
  EXPECT_EQ(kind_of_input(pattern()), InputKind::foreign);
  const std::string file = groups({kFirst, kSecond});
  EXPECT_EQ(reader_of(file).name, "rank-hdf5");
  expect_same(read_matrix(file), whole());
  Rank first = kFirst, second = kSecond;
  first.start = 1, second.start = 0;  // not in the order of the ranks
  expect_same(read_matrix(files({first, second})), csr(3, 4, {0, 1, 3, 4}, {2, 0, 3, 1}, {4, 2, 1, 3}));
}

TEST_F(RankHdf5Test, CooAndDuplicatesOfSeveralRanks) {
  const Rank a{{}, {0, 1, 0}, {3, 1, 0}, {1, 3, 2}}, b{{}, {2}, {2}, {4}}, shared{{}, {2, 1}, {2, 1}, {4, 0.5}};
  expect_same(read_matrix(files({a, b})), whole());
  EXPECT_SAYS(error({a, shared}), "A.001.h5: its rows 1 to 2 overlap those of", "A.000.h5", "0 to 1");
  ReadOptions sum;
  sum.choices.sum_duplicates = true;
  expect_same(read_matrix(pattern(), sum), csr(3, 4, {0, 2, 3, 4}, {0, 3, 1, 2}, {2, 1, 3.5, 4}));
}

TEST_F(RankHdf5Test, OverlapsAndGapsNameBothFiles) {
  Rank first = kFirst, second = kSecond;
  first.start = 0, second.start = 1;
  EXPECT_SAYS(error({first, second}), "A.001.h5: its rows begin at 1", "A.000.h5", "end at 1", "an overlap");
  ReadOptions sum;
  sum.choices.sum_duplicates = true;
  expect_same(read_matrix(pattern(), sum), csr(2, 4, {0, 2, 4}, {0, 3, 1, 2}, {2, 1, 3, 4}));
  second.start = 3;
  EXPECT_SAYS(error({first, second}), "A.001.h5: its rows begin at 3", "A.000.h5", "a gap");
  first.start = 1;
  EXPECT_SAYS(error({first, second}), "A.000.h5: its rows begin at 1", "must begin at 0");
  second.start = -1;
  EXPECT_SAYS(error({first, second}), "1 of 2 ranks say where their rows begin");
}

TEST_F(RankHdf5Test, OtherNamesByAMap) {
  for (const char* name : {"B.0.h5", "B.1.h5"}) {
    Hdf5Writer out(path(name));
    out.create_group("/A");
    put(out, "/A/ia", {0, 1});
    put(out, "/A/ja", {1});
    put(out, "/A/a", {7});
    out.close();
  }
  ReadOptions options;
  options.choices.map = "rowptr=/A/ia,columns=/A/ja,values=/A/a";
  expect_same(read_matrix(path("B.%d.h5"), options), csr(2, 2, {0, 1, 2}, {1, 1}, {7, 7}));
  expect_same(read_matrix(path("B.0.h5"), options), csr(1, 2, {0, 1}, {1}, {7}));
  EXPECT_EQ(kind_of_input(path("B.0.h5"), options.choices), InputKind::foreign);
  EXPECT_SAYS(error_of([&] { read_matrix(path("B.%d.h5")); }), "B.0.h5", "neither /row_ptr", "as rowptr=/A/ia");
  const auto wrong = [&](const std::string& map) {
    options.choices.map = map;
    return error_of([&] { read_matrix(path("B.%d.h5"), options); }, ErrorKind::usage);
  };
  EXPECT_SAYS(wrong("ia=/A/ia"), "'ia=/A/ia'");
  EXPECT_SAYS(wrong("rowptr=/A/ia,columns=/A/ja"), "must name columns, values");
  EXPECT_SAYS(wrong("rowptr=/A/ia,rows=/A/ia,columns=/A/ja,values=/A/a"), "one of rowptr");
}

TEST_F(RankHdf5Test, DamageNamesTheArray) {
  Rank wrong = kSecond;
  wrong.columns = {-1};
  EXPECT_SAYS(error({kFirst, wrong}), "A.001.h5: dataset /columns", "column -1");
  wrong = kSecond, wrong.pointers = {0, 2};
  EXPECT_SAYS(error({kFirst, wrong}), "A.001.h5: dataset /row_ptr", "rank's 1 entries");
  wrong = kSecond, wrong.values = {1, 2};
  EXPECT_SAYS(error({kFirst, wrong}), "A.001.h5", "1 columns, 2 values");
  files({kFirst, kSecond});
  std::filesystem::remove(path("A.000.h5"));
  EXPECT_SAYS(error_of([&] { read_matrix(pattern()); }), "A.%03d.h5", "no such file");
  files({kFirst, kSecond, kSecond});
  std::filesystem::remove(path("A.001.h5"));
  EXPECT_SAYS(error_of([&] { read_matrix(pattern()); }), "A.001.h5", "rank 1 is missing");
}

}  // namespace
}  // namespace shardmat
