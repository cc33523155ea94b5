// One matrix in each kind of file and from a generator, opened on all ranks; and what is refused.
#include "runtime/source/matrix_source.h"
#include "partition/shard/shard_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/base/parallel.h"
#include "partition/generators/generator.h"
#include "partition/source/partitioner.h"
#include "runtime/context/context.h"
#include "tests/partition/readers/test_files.h"
#include "tests/partition/test_matrices.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

namespace fs = std::filesystem;

const std::string kHeader = "%%MatrixMarket matrix coordinate real general\n";

/// The matrix of tests/data/npz/csr.npz.
HostCsr example() { return test::csr(5, 4, {0, 2, 2, 3, 7, 8}, {0, 3, 1, 0, 1, 2, 3, 2}, {1.5, -2, 3, 4, 5, 6, 7, 1e-3}); }
const std::string kExample = kHeader + "5 4 8\n1 1 1.5\n1 4 -2\n3 2 3\n4 1 4\n4 2 5\n4 3 6\n4 4 7\n5 3 1e-3\n";

/// Rank 0 writes the files of a test for all ranks.
class MatrixSourceTest : public testing::Test {
 protected:
  MatrixSourceTest() {
    if (world().rank() == 0) directory_ = std::make_unique<test::TemporaryDirectory>();
    path_ = world().broadcast(world().rank() == 0 ? (*directory_ / "").string() : std::string());
  }
  ~MatrixSourceTest() override { world().barrier(); }

  std::string write(const std::string& name, const std::string& text) {
    if (world().rank() == 0) std::ofstream(path_ / name, std::ios::binary) << text;
    world().barrier();
    return path_ / name;
  }
  std::string write_shard(const std::string& name, const HostCsr& matrix, RowOrder order) {
    world().run_agreed([&] {
      if (world().rank() != 0) return;
      WriteOptions options;
      options.order = order;
      write_shard_file(path_ / name, *test::source_of(matrix), options);
    });
    return path_ / name;
  }
  std::string path(const std::string& name) const { return path_ / name; }

 private:
  std::unique_ptr<test::TemporaryDirectory> directory_;
  fs::path path_;
};

/// Each rank reads its own rows, and all rows where any rank may.
void expect_rows_of(const HostCsr& a, const MatrixSource& source) {
  ASSERT_EQ(source.rows->rows(), a.rows);
  ASSERT_EQ(source.rows->cols(), a.cols);
  const auto starts = make_partition("nnz", a.row_ptr, world().size()).row_starts;
  const auto rank = static_cast<std::size_t>(world().rank());
  const std::int64_t begin = starts[rank], end = starts[rank + 1];
  const auto whole = test::source_of(a);
  EXPECT_TRUE(test::same(source.rows->read_rows(begin, end), whole->read_rows(begin, end))) << "rows from " << begin;
  if (!source.by_part) {
    EXPECT_TRUE(test::same(source.rows->read_rows(0, a.rows), a));
  }
}

TEST_F(MatrixSourceTest, GeneratorsMakeTheRowsOfEachRank) {
  const MatrixSource source = open_matrix("random:n=40,cols=70", world());
  const auto generator = make_generator("random:n=40,cols=70");
  expect_rows_of(generator->read_rows(0, 40), source);
  EXPECT_EQ(source.access, "each rank, which generates its own rows");
  EXPECT_EQ(source.file, nullptr);
  EXPECT_FALSE(source.by_part);
  EXPECT_EQ(order_text(source), "no");
}

TEST_F(MatrixSourceTest, ShardFilesGiveAnyRowsToAnyRank) {
  const std::string path = write_shard("a.h5", example(), RowOrder::as_source);
  const MatrixSource source = open_matrix(path, world());
  expect_rows_of(example(), source);
  EXPECT_EQ(source.rows->name(), path);
  EXPECT_EQ(source.access, "each rank, its own rows");
  EXPECT_EQ(source.file, source.rows.get());
  EXPECT_FALSE(source.by_part);
}

TEST_F(MatrixSourceTest, TellsTheOrderOfAFile) {
  const HostCsr square = test::random_matrix(30, 30, 8, 5);
  for (const auto& [order, text] : {std::pair{RowOrder::as_source, "no"},
                                    {RowOrder::by_length, "globally in the file"},
                                    {RowOrder::rcm, "reverse Cuthill-McKee in the file"}}) {
    const MatrixSource source = open_matrix(write_shard("order.h5", square, order), world());
    EXPECT_EQ(order_text(source), text);
    EXPECT_EQ(source.rows->permuted(), order != RowOrder::as_source);
    world().barrier();  // the file is written anew
  }
}

TEST_F(MatrixSourceTest, FilesOfOtherProgramsAreKeptByPart) {
  const std::string text = write("a.mtx", kExample), compressed = write("a.mtx.gz", test::gzip(kExample));
  for (const std::string& path : {text, compressed}) {
    SCOPED_TRACE(path);
    const MatrixSource source = open_matrix(path, world());
    expect_rows_of(example(), source);
    EXPECT_EQ(source.rows->name(), path);
    EXPECT_NE(source.access.find("from " + fs::path(path).filename().string()), std::string::npos) << source.access;
    EXPECT_EQ(source.file, nullptr);
    EXPECT_EQ(source.by_part, world().size() > 1);
    EXPECT_EQ(order_text(source), "no");
  }
}

TEST_F(MatrixSourceTest, OpensNpz) {
  const std::string path = std::string(SHARDMAT_TEST_DATA) + "/npz/csr.npz";
#ifdef SHARDMAT_HAVE_LIBZIP
  const MatrixSource source = open_matrix(path, world());
  expect_rows_of(example(), source);
  EXPECT_EQ(source.by_part, world().size() > 1);
#else
  const std::string message = error_of(ErrorKind::input, [&] { open_matrix(path, world()); });
  EXPECT_NE(message.find("libzip"), std::string::npos) << message;
#endif
}

TEST_F(MatrixSourceTest, TakesNonfiniteValuesIfAllowed) {
  const std::string path = write("nan.mtx", kHeader + "2 2 2\n1 1 1\n2 2 nan\n");
  EXPECT_EQ(setting_of([&] { open_matrix(path, world()); }), "allow_nonfinite");
  OpenOptions options;
  options.allow_nonfinite = true, options.method = "rows";
  const MatrixSource source = open_matrix(path, world(), options);
  const auto starts = make_partition("rows", HostVector<std::int64_t>{0, 1, 2}, world().size()).row_starts;
  const auto rank = static_cast<std::size_t>(world().rank());
  std::int64_t nonfinite = 0;
  for (const double value : source.rows->read_rows(starts[rank], starts[rank + 1]).values) nonfinite += std::isnan(value);
  EXPECT_EQ(world().all_reduce(nonfinite, Reduction::sum), 1);
}

TEST_F(MatrixSourceTest, ReadsWithTheThreadsOfTheContext) {
  const std::string path = write("a.mtx", kExample);
  const Context three(world(), BackendChoice::host, 3);
  const ThreadCount two(2);
  std::int64_t with_three = 0, with_others = 0;
  OpenOptions options;
  options.progress = [&](std::string_view, std::int64_t, std::int64_t) {
    ++(thread_count() == 3 ? with_three : with_others);
  };
  expect_rows_of(example(), open_matrix(path, three, options));
  EXPECT_GT(world().all_reduce(with_three, Reduction::sum), 0);
  EXPECT_EQ(with_others, 0);
  EXPECT_EQ(thread_count(), 2);
}

/// All ranks get the same words, and can go on.
TEST_F(MatrixSourceTest, ErrorsNameTheFileOnAllRanks) {
  const std::pair<std::string, std::string> wrong[] = {
      {path("none.h5"), "there is no such file"},
      {path("none.mtx"), "there is no such file"},
      {path("none.mtx.gz"), "there is no such file"},
      {path("none"), "there is no such file"},
      {write("text.h5", "no matrix\n"), ""},
      {write("text.mtx", "no matrix\n"), ""},
      {write("text.mtx.gz", kExample), ""},
      {write("text.npz", "no archive"), ""},
      {write("text.txt", "no matrix\n"), ".txt is no matrix file that can be read"},
      {write("x.npy", "no matrix"), "a .npy file holds a dense array"}};
  for (const auto& [path, says] : wrong) {
    SCOPED_TRACE(path);
    const std::string message = error_of(ErrorKind::input, [&, &name = path] { open_matrix(name, world()); });
    EXPECT_NE(message.find(path), std::string::npos) << message;
    EXPECT_NE(message.find(says), std::string::npos) << message;
    EXPECT_EQ(world().broadcast(message), message);
  }
  expect_rows_of(example(), open_matrix(write("a.mtx", kExample), world()));
}

}  // namespace
}  // namespace shardmat
