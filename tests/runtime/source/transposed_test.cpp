// The transposes of matrices from memory, files of other programs and shard files in any order, against a plain transpose.
#include "runtime/source/transposed.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "kernels/base/error.h"
#include "partition/generators/generator.h"
#include "partition/shard/shard_file.h"
#include "partition/source/partitioner.h"
#include "tests/partition/test_matrices.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

/// Aᵀ by a plain loop.
HostCsr transpose_of(const HostCsr& a) {
  std::vector<std::vector<std::pair<std::int64_t, double>>> rows(static_cast<std::size_t>(a.cols));
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k)
      rows[static_cast<std::size_t>(a.col_idx[k])].emplace_back(i, a.values[k]);
  return test::from_rows(a.rows, rows);
}

/// This rank's part, and the lengths of its even share.
void expect_part(const HostCsr& expected, const std::string& method, const MatrixSource& source) {
  ASSERT_EQ(source.rows->rows(), expected.rows);
  ASSERT_EQ(source.rows->cols(), expected.cols);
  EXPECT_EQ(source.by_part, world().size() > 1);
  const auto whole = test::source_of(expected);
  const auto rank = static_cast<std::size_t>(world().rank());
  const auto starts = make_partition(method, expected.row_ptr, world().size()).row_starts;
  EXPECT_TRUE(
      test::same(source.rows->read_rows(starts[rank], starts[rank + 1]), whole->read_rows(starts[rank], starts[rank + 1])));
  const auto shares = even_starts(expected.rows, world().size());
  EXPECT_EQ(source.rows->row_lengths(shares[rank], shares[rank + 1]), whole->row_lengths(shares[rank], shares[rank + 1]));
}

OpenOptions transposed_options(const std::string& method) {
  OpenOptions options;
  options.transposed = true, options.method = method;
  return options;
}

TEST(Transposed, GeneratorsOfAnyShape) {
  for (const char* specification : {"random:n=40,cols=70", "random:n=70,cols=20", "poisson:n=4", "rmat:scale=7"})
    for (const char* method : {"nnz", "rows"}) {
      SCOPED_TRACE(std::string(specification) + " " + method);
      const auto generator = make_generator(specification);
      expect_part(transpose_of(generator->read_rows(0, generator->rows())), method,
                  open_matrix(specification, world(), transposed_options(method)));
    }
}

class TransposedFile : public testing::Test {
 protected:
  TransposedFile() {
    if (world().rank() == 0) directory_ = std::make_unique<test::TemporaryDirectory>();
    path_ = world().broadcast(world().rank() == 0 ? (*directory_ / "").string() : std::string());
  }
  ~TransposedFile() override { world().barrier(); }

  std::string write_shard(const HostCsr& matrix, RowOrder order) {
    world().run_agreed([&] {
      if (world().rank() != 0) return;
      WriteOptions options;
      options.order = order;
      write_shard_file(path_ / "a.h5", *test::source_of(matrix), options);
    });
    return path_ / "a.h5";
  }

  std::filesystem::path path_;

 private:
  std::unique_ptr<test::TemporaryDirectory> directory_;
};

TEST_F(TransposedFile, OfAnotherProgram) {
  const std::string path = path_ / "a.mtx";
  if (world().rank() == 0)
    std::ofstream(path) << "%%MatrixMarket matrix coordinate real general\n3 4 5\n1 4 2\n3 1 1\n3 4 5\n2 2 7\n3 4 1\n";
  world().barrier();
  const HostCsr a = test::from_rows(4, {{{3, 2.0}}, {{1, 7.0}}, {{0, 1.0}, {3, 6.0}}});  // one entry comes twice
  expect_part(transpose_of(a), "nnz", open_matrix(path, world(), transposed_options("nnz")));
}

TEST_F(TransposedFile, InAnyOrder) {
  const HostCsr square = test::random_matrix(45, 45, 9, 5), wide = test::random_matrix(30, 50, 9, 6);
  for (const RowOrder order : {RowOrder::as_source, RowOrder::by_length, RowOrder::rcm}) {
    const std::string path = write_shard(square, order);
    const MatrixSource source = open_matrix(path, world(), transposed_options("nnz")), file = open_matrix(path, world());
    expect_part(transpose_of(file.rows->read_rows(0, 45)), "nnz", source);  // in the order of the file
    EXPECT_EQ(source.rows->row_order(), order);
    const auto starts = make_partition("nnz", transpose_of(file.rows->read_rows(0, 45)).row_ptr, world().size()).row_starts;
    const auto rank = static_cast<std::size_t>(world().rank());
    EXPECT_EQ(source.rows->permutation(starts[rank], starts[rank + 1]),
              file.rows->permutation(starts[rank], starts[rank + 1]));
    world().barrier();  // the file is written anew
  }
  const MatrixSource source = open_matrix(write_shard(wide, RowOrder::by_length), world(), transposed_options("nnz"));
  expect_part(transpose_of(wide), "nnz", source);  // columns in the original order of the rows
  EXPECT_FALSE(source.rows->permuted());
}

TEST(Transposed, ValuesAreEditedByWholeRows) {
  const HostCsr a = test::random_matrix(60, 60, 9, 7);
  MatrixSource source;
  source.rows = test::source_of(a);
  HostCsr expected = a;
  for (std::size_t i = 0; i < 60; ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[i]); k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
      expected.values[k] = a.values[k] + 1000.0 * static_cast<double>(i);
  const EditRows edit = [](std::int64_t first_row, const CsrView& rows, std::span<double> values) {
    for (std::int64_t i = 0; i < rows.rows; ++i)
      for (auto k = rows.row_ptr[static_cast<std::size_t>(i)]; k < rows.row_ptr[static_cast<std::size_t>(i) + 1]; ++k)
        values[static_cast<std::size_t>(k)] += 1000.0 * static_cast<double>(first_row + i);
  };
  expect_part(transpose_of(expected), "nnz", transposed(source, "nnz", world(), edit));
  const std::string message = error_of(ErrorKind::input, [&] {
    transposed(source, "nnz", world(), [](std::int64_t first_row, const CsrView&, std::span<double>) {
      if (first_row == 0) throw Error(ErrorKind::input, "no such weight");
    });
  });
  EXPECT_NE(message.find("no such weight"), std::string::npos) << message;
}

TEST(Transposed, WithoutRowsOrEntries) {
  for (const HostCsr& a :
       {test::from_rows(0, {}), test::from_rows(5, {}), test::from_rows(0, {{}, {}}), test::from_rows(3, {{}, {}, {}})}) {
    MatrixSource source;
    source.rows = test::source_of(a);
    expect_part(transpose_of(a), "nnz", transposed(source, "nnz", world()));
  }
}

}  // namespace
}  // namespace shardmat
