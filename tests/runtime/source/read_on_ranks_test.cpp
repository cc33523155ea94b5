// Matrix files of other programs read by all ranks, against the same file read by one process.
#include "runtime/source/read_on_ranks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "kernels/base/error.h"
#include "partition/readers/reader.h"
#include "partition/shard/shard_file.h"
#include "partition/source/partitioner.h"
#include "runtime/order/row_share.h"
#include "runtime/run/multiply.h"
#include "runtime/source/matrix_source.h"
#include "tests/partition/readers/test_files.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

/// A file that rank 0 writes for all ranks, in a directory of its own.
class ReadOnRanks : public testing::Test {
 protected:
  ReadOnRanks() {
    std::string name = std::filesystem::temp_directory_path() / "shardmat-read-on-ranks-XXXXXX";
    if (world().rank() == 0 && ::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no directory for files";
    directory_ = world().broadcast(name);
  }
  ~ReadOnRanks() override {
    world().barrier();
    if (world().rank() == 0) std::filesystem::remove_all(directory_);
  }

  std::filesystem::path write(const std::string& name, const std::string& text) {
    if (world().rank() == 0) std::ofstream(directory_ / name, std::ios::binary) << text;
    world().barrier();
    return directory_ / name;
  }

  /// What all ranks together keep differs from read_matrix() in this; empty if in nothing.
  std::string difference(const std::filesystem::path& path, std::int64_t round_bytes, const std::string& method = "nnz") {
    const HostCsr expected = read_matrix(path);
    const ReadMatrix found = read_on_ranks(path, {false, method, {}, round_bytes}, world());
    const RowSource& rows = *found.rows;
    if (rows.rows() != expected.rows || rows.cols() != expected.cols || rows.permuted()) return "shape";
    if (rows.name() != path.string()) return "name " + rows.name();
    const auto rank = static_cast<std::size_t>(world().rank());
    const auto starts = make_partition(method, expected.row_ptr, world().size()).row_starts;
    const auto shares = even_starts(expected.rows, world().size());
    for (const auto& range : {starts, shares}) {
      const HostVector<std::int64_t> lengths = rows.row_lengths(range[rank], range[rank + 1]);
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        const std::size_t row = static_cast<std::size_t>(range[rank]) + i;
        if (lengths[i] != expected.row_ptr[row + 1] - expected.row_ptr[row]) return fmt::format("length of row {}", row);
      }
    }
    const CsrView mine = expected.view().rows_between(starts[rank], starts[rank + 1]);
    const HostCsr part = rows.read_rows(starts[rank], starts[rank + 1]);
    if (part.rows != mine.rows || part.cols != mine.cols) return "shape of the part";
    if (!std::equal(part.col_idx.begin(), part.col_idx.end(), mine.col_idx.begin(), mine.col_idx.end())) return "columns";
    if (!std::equal(part.values.begin(), part.values.end(), mine.values.begin(), mine.values.end())) return "values";
    std::string shown = "nothing shown";
    rows.visit_rows(starts[rank], starts[rank + 1], [&](const CsrView& view) {
      shown =
          std::equal(view.values.begin(), view.values.end(), part.values.begin(), part.values.end()) ? "" : "shown values";
    });
    return shown;
  }

  /// In one round, and in rounds of a few lines.
  void expect_same(const std::string& text, const std::string& what) {
    const std::filesystem::path path = write("a.mtx", text);
    for (const std::int64_t round : {std::int64_t{1} << 20, std::max<std::int64_t>(200, std::ssize(text) / 20)})
      EXPECT_EQ(difference(path, round), "") << what;
    EXPECT_EQ(difference(path, 1 << 20, "rows"), "") << what;
    EXPECT_EQ(difference(write("a.mtx.gz", test::gzip(text)), std::ssize(text) / 4 + 100), "") << what << ", compressed";
    world().barrier();
  }

  /// All ranks throw what read_matrix() throws, in rounds of all sizes.
  void expect_error(const std::string& text, const std::string& says) {
    const std::filesystem::path path = write("wrong.mtx", text);
    const std::string expected = error_of(ErrorKind::input, [&] { read_matrix(path); });
    EXPECT_NE(expected.find(says), std::string::npos) << expected;
    const std::string setting = setting_of([&] { read_matrix(path); });
    for (const std::int64_t round : {1 << 20, 200}) {
      const auto on_ranks = [&] { read_on_ranks(path, {false, "nnz", {}, round}, world()); };
      EXPECT_EQ(error_of(ErrorKind::input, on_ranks), expected);
      EXPECT_EQ(setting_of(on_ranks), setting) << expected;
    }
    const std::filesystem::path compressed = write("wrong.mtx.gz", test::gzip(text));
    const std::string same = error_of(ErrorKind::input, [&] { read_matrix(compressed); });
    EXPECT_EQ(error_of(ErrorKind::input, [&] { read_on_ranks(compressed, {false, "nnz", {}, 400}, world()); }), same);
    world().barrier();
  }

  std::filesystem::path directory_;
};

const std::string kGeneral = "%%MatrixMarket matrix coordinate real general\n";

std::string text_of(const HostCsr& matrix) {
  std::string text = fmt::format("{}{} {} {}\n", kGeneral, matrix.rows, matrix.cols, matrix.nnz());
  for (std::size_t i = 0; i < static_cast<std::size_t>(matrix.rows); ++i)
    for (auto k = static_cast<std::size_t>(matrix.row_ptr[i]); k < static_cast<std::size_t>(matrix.row_ptr[i + 1]); ++k)
      text += fmt::format("{} {} {}\n", i + 1, matrix.col_idx[k] + 1, matrix.values[k]);
  return text;
}

/// Entries of a lower triangle in a scattered order, some of them twice.
std::string triangle(const std::string& field, const std::string& symmetry, std::int64_t n, bool twice) {
  const std::int64_t first = symmetry == "skew-symmetric" ? 1 : 0;
  std::string entries;
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t row = k * 7 % n;
    for (std::int64_t below = first; below <= row; below += 1 + row % 5)
      for (int time = 0; time < (twice && (row + below) % 3 == 0 ? 2 : 1); ++time, ++count)
        entries += fmt::format("{} {}{}\n", row + 1, row - below + 1,
                               field == "pattern"   ? ""
                               : field == "integer" ? fmt::format(" {}", row - 2 * below - 3)
                                                    : fmt::format(" {}e-3", 17 * row - 31 * below + 1));
  }
  return fmt::format("%%MatrixMarket matrix coordinate {} {}\n% text\n{} {} {}\n{}", field, symmetry, n, n, count, entries);
}

TEST_F(ReadOnRanks, keeps_the_rows_that_one_process_reads) {
  for (const auto& [name, matrix] : test::matrix_zoo())
    if (matrix.nnz() < 20'000) expect_same(text_of(matrix), name);
}

TEST_F(ReadOnRanks, expands_symmetric_files_and_sums_duplicates) {
  for (const char* field : {"real", "integer", "pattern"})
    for (const char* symmetry : {"general", "symmetric", "skew-symmetric"})
      for (const bool twice : {false, true})
        if (field != std::string("pattern") || symmetry != std::string("skew-symmetric"))
          expect_same(triangle(field, symmetry, 60, twice), fmt::format("{} {} {}", field, symmetry, twice));
}

/// The bytes of y = A x of a matrix file, without measurements, so that the same kernel is taken each time.
std::string product_of(const std::filesystem::path& matrix, const std::filesystem::path& y) {
  MultiplyOptions options;
  options.matrix = matrix;
  options.output = y;
  options.iterations = 0;
  options.verify = true;
  options.load.plan.measure = false;
  options.backend = BackendChoice::host;
  const MultiplyReport report = multiply(world(), options);
  EXPECT_TRUE(report.verification && report.verification->passed) << matrix;
  std::ifstream file(y, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(ReadOnRanks, products_have_the_bits_of_those_from_the_shard_file) {
  const std::vector<std::pair<std::string, std::string>> files{
      {"symmetric.mtx", triangle("real", "symmetric", 60, true)},
      {"skew.mtx", triangle("real", "skew-symmetric", 70, true)},
      {"pattern.mtx", triangle("pattern", "symmetric", 50, false)},
      {"integer.mtx", triangle("integer", "general", 80, true)},
      {"wide.mtx", kGeneral + "4 90 5\n1 90 0.1\n3 1 0.3\n3 90 0.7\n1 2 1e-3\n3 45 -0.2\n"},
      {"tall.mtx", kGeneral + "90 4 5\n90 1 0.1\n1 3 0.3\n90 3 0.7\n2 1 1e-3\n45 3 -0.2\n"}};
  for (const auto& [name, text] : files) {
    const std::filesystem::path path = write(name, text);
    const std::filesystem::path shard = directory_ / (name + ".h5");
    if (world().rank() == 0) {
      const auto source = make_memory_source(std::make_shared<const HostCsr>(read_matrix(path)), name);
      WriteOptions options;
      options.parts = {world().size()};
      write_shard_file(shard, *source, options);
    }
    world().barrier();
    const std::string expected = product_of(shard, directory_ / "shard.npy");
    EXPECT_EQ(product_of(path, directory_ / "text.npy"), expected) << name;
    world().barrier();
  }
}

TEST_F(ReadOnRanks, divides_what_is_left_when_duplicates_are_summed) {
  std::string entries;  // of the first row a thousand that become one
  for (int i = 0; i < 1000; ++i) entries += fmt::format("1 1 {}e-2\n", i);
  for (int i = 2; i <= 40; ++i) entries += fmt::format("{} {} 1.5\n{} 1 2\n", i, i, i);
  expect_same(fmt::format("{}40 40 {}\n{}", kGeneral, 1000 + 2 * 39, entries), "duplicates");
}

TEST_F(ReadOnRanks, reads_text_of_all_shapes) {
  expect_same(kGeneral + "0 0 0\n", "no rows");
  expect_same(kGeneral + "5 0 0\n", "no columns");
  expect_same(kGeneral + "100 3 0\n", "no entries");
  expect_same(kGeneral + "2 2 1\n2 1 -0", "no last line end");
  expect_same(kGeneral + "% c\n\n3 4 2\n\n\n3 4 1\r\n% between\n  1   2  3.5  \n\n\n", "blank lines");
}

TEST_F(ReadOnRanks, the_first_fault_of_the_file_is_every_ranks_error) {
  std::string good;
  for (int i = 1; i <= 300; ++i) good += fmt::format("{} 1 1.25\n", i);
  const auto of = [&](const std::string& more) { return fmt::format("{}400 3 {}\n{}{}", kGeneral, 302, good, more); };
  expect_error(of("401 1 1\n0 1 1\n"), "wrong.mtx:303: the row index \"401\" is out of range");
  expect_error(of("1 2 x\n1 3 y\n"), "wrong.mtx:303: the value \"x\" is no number");
  expect_error(of("1 2 1\n1 3 nan\n"), "wrong.mtx:304: the value \"nan\" is not finite");
  expect_error(of("1 2 1\n"), "wrong.mtx:2: the size line promises 302 entries, the file has 301");
  expect_error(of("1 2 1\n1 3 1\n2 3 1\n"), "has 303");
  expect_error(of("1 2 1e308\n1 2 1e308\n"), "row 0");
  expect_error("1 9 x\n" + good, "wrong.mtx:1: ");
  expect_error("%%MatrixMarket matrix array real general\n1 1\n1\n", "array");
  std::string early = of("1 2 1\n1 3 1\n");
  early.replace(early.find("17 1 1.25"), 4, "17 9");
  expect_error(early + "0 0 0\n", "wrong.mtx:19: the column index \"9\"");
  expect_error("%%MatrixMarket matrix coordinate real skew-symmetric\n9 9 3\n2 1 1\n3 3 1\n4 1 1\n", "wrong.mtx:4: ");
  expect_error("%%MatrixMarket matrix coordinate real symmetric\n9 9 3\n2 1 1\n3 1 1\n4 5 1\n", "wrong.mtx:5: ");
}

TEST_F(ReadOnRanks, a_file_that_is_missing_or_a_directory) {
  for (const auto& name : {directory_ / "none.mtx", directory_}) {
    const std::string expected = error_of(ErrorKind::input, [&] { read_matrix(name); });
    EXPECT_EQ(error_of(ErrorKind::input, [&] { open_matrix(name, world()); }), expected);
  }
}

TEST_F(ReadOnRanks, sizes_beyond_all_memory_are_refused_before_it_is_taken) {
  const auto path = write("huge.mtx", kGeneral + "100000000000000 100000000000000 1\n1 1 1\n");
  EXPECT_NE(error_of(ErrorKind::resources, [&] { read_on_ranks(path, {}, world()); }).find("huge.mtx"), std::string::npos);
  world().barrier();
}

TEST_F(ReadOnRanks, rows_of_other_ranks_are_refused) {
  if (world().size() == 1) GTEST_SKIP() << "needs several ranks";
  const auto path = write("a.mtx", triangle("real", "general", 50, false));
  const MatrixSource source = open_matrix(path, world());
  EXPECT_TRUE(source.by_part);
  EXPECT_EQ(source.access, fmt::format("{} ranks, from a.mtx; kept in memory, also for the verification", world().size()));
  EXPECT_NE(error_of(ErrorKind::internal, [&] { source.rows->read_rows(0, 50); }).find("a.mtx"), std::string::npos);
  EXPECT_EQ(source.rows->read_rows(50, 50).rows, 0);
}

TEST_F(ReadOnRanks, shares_of_rows_may_be_taken_where_parts_are_even) {
  const auto path = write("a.mtx", triangle("real", "symmetric", 50, true));
  const HostCsr expected = read_matrix(path);
  const MatrixSource source = open_matrix(path, world(), {false, "rows", {}});
  const RowShare share = take_share(*source.rows, world());
  std::int64_t nnz = 0;
  for_each_round(share, world(), [&](std::int64_t, const HostCsr& rows) { nnz += rows.nnz(); });
  EXPECT_EQ(world().all_reduce(nnz, Reduction::sum), expected.nnz());
}

}  // namespace
}  // namespace shardmat
