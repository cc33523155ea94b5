// This rank's rows, against the whole matrix.
#include "runtime/matrix/load_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "partition/shard/shard_file.h"
#include "runtime/source/matrix_source.h"
#include "tests/partition/test_matrices.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

using test::whole_matrix;

const char* const kMatrices[] = {"elasticity:n=5", "random:n=40,cols=70", "rmat:scale=7"};

LoadedPart load(const MatrixSource& source, LocalSort sort, const std::string& method = "nnz") {
  PartOptions options;
  options.sort = sort, options.method = method;
  return load_part(source, context_of(kHost64), options);
}

MatrixSource memory(const HostCsr& matrix) {
  MatrixSource source;
  source.rows = test::source_of(matrix, "memory");
  return source;
}

std::size_t this_rank() { return static_cast<std::size_t>(world().rank()); }

/// Columns with values, ascending.
std::vector<std::pair<std::int64_t, double>> entries_of(const CsrView& a, std::int64_t row) {
  std::vector<std::pair<std::int64_t, double>> entries;
  const auto i = static_cast<std::size_t>(row);
  for (auto k = static_cast<std::size_t>(a.row_ptr[i]); k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
    entries.emplace_back(a.col_idx[k], a.values[k]);
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// Each row is the row of `a` that its id names.
void expect_rows_of(const HostCsr& a, const LoadedPart& part) {
  ASSERT_EQ(std::ssize(part.y.ids), part.csr.rows);
  ASSERT_EQ(std::ssize(part.csr.row_ptr), part.csr.rows + 1);
  EXPECT_EQ(part.csr.cols, a.cols);
  for (std::int64_t i = 0; i < part.csr.rows; ++i) {
    const std::int64_t id = part.y.ids[static_cast<std::size_t>(i)];
    ASSERT_EQ(entries_of(part.csr.view(), i), entries_of(a.view(), id)) << "row " << id;
  }
}

void expect_tiles(const std::vector<std::int64_t>& starts, std::int64_t count) {
  ASSERT_EQ(std::ssize(starts), world().size() + 1);
  EXPECT_EQ(starts.front(), 0);
  EXPECT_EQ(starts.back(), count);
  EXPECT_TRUE(std::is_sorted(starts.begin(), starts.end()));
  for (const std::int64_t start : starts) EXPECT_EQ(world().broadcast(std::to_string(start)), std::to_string(start));
}

TEST(LoadPart, PartsTileTheRows) {
  for (const char* specification : kMatrices)
    for (const char* method : {"nnz", "rows"}) {
      SCOPED_TRACE(testing::Message() << specification << " by " << method);
      const HostCsr a = whole_matrix(specification);
      const LoadedPart part = load(open_matrix(specification, world()), LocalSort::none, method);
      EXPECT_EQ(part.rows, a.rows);
      EXPECT_EQ(part.cols, a.cols);
      EXPECT_EQ(part.nnz, a.nnz());
      expect_tiles(part.y.starts, a.rows);
      expect_tiles(part.of_x().starts, a.cols);
      EXPECT_EQ(part.first_row, part.y.starts[this_rank()]);
      EXPECT_EQ(part.csr.rows, part.y.starts[this_rank() + 1] - part.first_row);
      EXPECT_EQ(part.partition_origin, "computed when loading");
    }
}

TEST(LoadPart, NumbersAndValuesBelongToTheRows) {
  for (const char* specification : kMatrices)
    for (const LocalSort sort : {LocalSort::none, LocalSort::by_length}) {
      SCOPED_TRACE(specification);
      const HostCsr a = whole_matrix(specification);
      const LoadedPart part = load(open_matrix(specification, world()), sort);
      EXPECT_EQ(part.sort, sort);
      expect_rows_of(a, part);
      if (sort == LocalSort::none) {
        EXPECT_TRUE(part.y.places.empty());
      } else {
        HostVector<std::int64_t> ascending(part.y.ids.size());
        std::iota(ascending.begin(), ascending.end(), std::int64_t{0});
        EXPECT_TRUE(std::is_permutation(part.y.places.begin(), part.y.places.end(), ascending.begin(), ascending.end()));
      }
      const std::int64_t first_value = a.row_ptr[static_cast<std::size_t>(part.first_row)];
      for (std::size_t i = 0; i < part.y.ids.size(); ++i) {
        ASSERT_EQ(part.y.ids[i], part.first_row + part.y.place(i));
        ASSERT_EQ(part.value_starts[i], a.row_ptr[static_cast<std::size_t>(part.y.ids[i])] - first_value);
      }
      if (a.rows == a.cols) {
        EXPECT_TRUE(part.x.ids.empty());
        continue;
      }
      ASSERT_EQ(std::ssize(part.x.ids), part.x.starts[this_rank() + 1] - part.x.starts[this_rank()]);
      for (std::size_t i = 0; i < part.x.ids.size(); ++i)
        ASSERT_EQ(part.x.ids[i], part.x.starts[this_rank()] + static_cast<std::int64_t>(i));
    }
}

/// Descending lengths; rows of equal length stay in the order of the source.
TEST(LoadPart, SortsByLength) {
  const LoadedPart part = load(open_matrix("rmat:scale=7", world()), LocalSort::by_length);
  ASSERT_GT(part.csr.rows, 1);
  const auto length = [&](std::size_t i) { return part.csr.row_ptr[i + 1] - part.csr.row_ptr[i]; };
  for (std::size_t i = 0; i + 1 < part.y.ids.size(); ++i) {
    ASSERT_GE(length(i), length(i + 1)) << i;
    if (length(i) == length(i + 1)) {
      ASSERT_LT(part.y.ids[i], part.y.ids[i + 1]) << i;
    }
  }
}

/// A part takes 12 bytes a nonzero (8 in f32), and the values of f32 are rounded, however the rows are sorted.
TEST(LoadPart, KeepsNoMoreThanItsTypeNeeds) {
  for (const char* specification : kMatrices) {
    HostCsr a = whole_matrix(specification);
    for (const ValueType type : {ValueType::f64, ValueType::f32, ValueType::f16}) {
      if (type == ValueType::f32)
        for (double& value : a.values) value = static_cast<double>(static_cast<float>(value));
      else a = whole_matrix(specification);
      for (const LocalSort sort : {LocalSort::none, LocalSort::by_length}) {
        PartOptions options;
        options.sort = sort, options.type = type;
        const LoadedPart part = load_part(open_matrix(specification, world()), context_of(kHost64), options);
        expect_rows_of(a, part);
        EXPECT_EQ(part.csr.bytes(), 8 * (part.csr.rows + 1) + (type == ValueType::f32 ? 8 : 12) * part.csr.nnz());
      }
    }
  }
}

/// A file brings its partition, its wish for a local order, and original row numbers.
TEST(LoadPart, TakesWhatAFileStores) {
  const HostCsr a = whole_matrix("rmat:scale=6");
  std::unique_ptr<test::TemporaryDirectory> directory;
  std::string path;
  world().run_agreed([&] {
    if (world().rank() != 0) return;
    directory = std::make_unique<test::TemporaryDirectory>();
    path = (*directory / "a.h5").string();
    WriteOptions options;
    options.parts = {world().size()}, options.order = RowOrder::rcm, options.sort_local = true;
    write_shard_file(path, *test::source_of(a), options);
  });
  path = world().broadcast(path);
  {
    const MatrixSource source = open_matrix(path, world());
    LoadedPart stored = load(source, LocalSort::as_file), computed = load(source, LocalSort::none, "rows");
    EXPECT_EQ(stored.partition_origin, "stored in the file");
    EXPECT_EQ(stored.sort, LocalSort::by_length);
    EXPECT_EQ(computed.partition_origin, "computed when loading");
    EXPECT_EQ(computed.sort, LocalSort::none);
    const HostVector<std::int64_t> original = source.rows->permutation(0, a.rows);  // of columns, too: `a` is square
    for (LoadedPart* part : {&stored, &computed}) {
      part->csr.change_columns([&](auto columns) {
        using Column = typename decltype(columns)::value_type;
        for (auto& column : columns) column = static_cast<Column>(original[static_cast<std::size_t>(column)]);
      });
      EXPECT_TRUE(part->x.ids.empty());
      expect_tiles(part->y.starts, a.rows);
      expect_rows_of(a, *part);
      std::vector<std::int64_t> times(static_cast<std::size_t>(a.rows));  // that a row is in a part
      for (const std::int64_t id : part->y.ids) ++times[static_cast<std::size_t>(id)];
      world().all_reduce(std::span<std::int64_t>(times), Reduction::sum);
      EXPECT_EQ(times, std::vector<std::int64_t>(times.size(), 1));
    }
  }
  world().barrier();
}

TEST(LoadPart, RanksWithoutRows) {
  for (const std::int64_t rows : {0, 1}) {
    HostCsr a;
    a.rows = rows, a.cols = 3;
    a.row_ptr.assign(1, 0);
    if (rows == 1) a.row_ptr.push_back(2), a.col_idx = {0, 2}, a.values = {1.5, -2};
    for (const LocalSort sort : {LocalSort::none, LocalSort::by_length}) {
      const LoadedPart part = load(memory(a), sort);
      expect_tiles(part.y.starts, rows);
      expect_rows_of(a, part);
      EXPECT_EQ(part.nnz, a.nnz());
      EXPECT_EQ(part.csr.nnz(), part.csr.rows == 1 ? 2 : 0);
      EXPECT_EQ(world().all_reduce(part.csr.rows, Reduction::sum), rows);
      EXPECT_EQ(world().all_reduce(static_cast<std::int64_t>(part.x.ids.size()), Reduction::sum), 3);
    }
  }
}

/// Of generators, of files without tables, of the transpose: the same size as one rank finds.
TEST(LoadPart, PartsBeginAtNodes) {
  const std::pair<const char*, int> cases[] = {{"elasticity:n=5", 3},
                                               {"elasticity:n=6,clamp=0.2", 3},
                                               {"poisson27:n=5", 1},
                                               {"rmat:scale=7", 1},
                                               {"random:n=40,cols=70", 1}};
  for (const auto& [specification, size] : cases)
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(testing::Message() << specification << (transposed ? ", transposed" : ""));
      OpenOptions open;
      open.transposed = transposed;
      const LoadedPart part = load(open_matrix(specification, world(), open), LocalSort::none);
      EXPECT_EQ(part.node_block_size, size);
      EXPECT_EQ(part.node_block_origin, "found in the pattern");
      EXPECT_TRUE(part.nodes_are_whole);
      for (const std::int64_t start : part.y.starts) EXPECT_EQ(start % size, 0);
    }
  PartOptions given;
  given.node_block_size = 5;
  const MatrixSource source = open_matrix("elasticity:n=5", world());
  const LoadedPart part = load_part(source, context_of(kHost64), given);
  EXPECT_EQ(part.node_block_origin, "given");
  for (const std::int64_t start : part.y.starts) EXPECT_EQ(start % 5, 0);
  given.node_block_size = 7;
  const std::string message = error_of(ErrorKind::usage, [&] { load_part(source, context_of(kHost64), given); });
  EXPECT_NE(message.find("375 rows are no whole number of nodes of 7"), std::string::npos) << message;
}

TEST(LoadPart, UnknownMethodsAreRefusedOnAllRanks) {
  const MatrixSource source = open_matrix("banded:n=50", world());
  const std::string message = error_of(ErrorKind::usage, [&] { load(source, LocalSort::none, "nzz"); });
  EXPECT_NE(message.find("'nzz' is no way to partition; did you mean 'nnz'?"), std::string::npos) << message;
  EXPECT_EQ(load(source, LocalSort::none).nnz, whole_matrix("banded:n=50").nnz()) << "the ranks do not fit together";
}

/// One rank has the value; all refuse.
TEST(LoadPart, ValuesBeyondTheTypeAreRefusedOnAllRanks) {
  HostCsr a = whole_matrix("banded:n=50");
  a.values.back() = 1e300;
  const MatrixSource source = memory(a);
  PartOptions options;
  options.type = ValueType::f32;
  const std::string message = error_of(ErrorKind::input, [&] { load_part(source, context_of(kHost64), options); });
  EXPECT_NE(message.find("the values of memory"), std::string::npos) << message;
  EXPECT_NE(message.find("1e+300"), std::string::npos) << message;
  expect_rows_of(a, load(source, LocalSort::none));
}

}  // namespace
}  // namespace shardmat
