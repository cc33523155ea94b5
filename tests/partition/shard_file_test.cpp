#include "partition/shard/shard_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "partition/files/checksum.h"
#include "partition/hdf5/shard_file_format.h"
#include "tests/partition/shard_file_fixture.h"

namespace shardmat {
namespace {

using namespace test;

TEST(Checksum, IsXxh64) {
  EXPECT_EQ(xxh64("", 0), 0xEF46DB3751D8E999u);
  EXPECT_EQ(xxh64("a", 1), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(xxh64("abc", 3), 0x44BC2CF5AD770999u);
  const std::string text = "Call me Ishmael. Some years ago--never mind how long precisely-";
  EXPECT_EQ(xxh64(text.data(), text.size()), 0x02A2E85470D6FD96u);
}

TEST_F(ShardFileTest, RoundTrip) {
  const HostCsr m = test::random_matrix(200, 150, 12, 1);
  WriteOptions options;
  options.parts = {4, 1, 4, 300};
  options.source_checksum = "xxh64:0123456789abcdef";
  const auto written = write(m, options);
  EXPECT_EQ(directory_.files(), std::vector<std::string>{"a.h5"});
  const auto file = ShardFile::open(path());
  EXPECT_EQ(file->rows(), 200);
  EXPECT_EQ(file->cols(), 150);
  EXPECT_EQ(file->nnz(), m.nnz());
  EXPECT_EQ(file->name(), path().string());
  EXPECT_EQ(file->how(), "a test");
  EXPECT_EQ(file->source(), "bar.mtx");
  EXPECT_EQ(file->source_checksum(), options.source_checksum);
  EXPECT_FALSE(file->permuted());
  EXPECT_FALSE(file->plain_binsparse());
  EXPECT_EQ(file->permutation(5, 7), (HostVector<std::int64_t>{5, 6}));
  EXPECT_TRUE(same(file->read_rows(0, 200), m));
  EXPECT_TRUE(same(file->read_rows(17, 90), source_of(m)->read_rows(17, 90)));
  EXPECT_EQ(file->read_rows(200, 200).rows, 0);
  EXPECT_EQ(file->row_lengths(17, 90), source_of(m)->row_lengths(17, 90));
  EXPECT_THROW(file->read_rows(0, 201), Error);
  file->verify();
  ASSERT_EQ(written.size(), 4u);
  EXPECT_EQ(written[0].partition.row_starts, written[2].partition.row_starts);
  EXPECT_EQ(written[3].partition.parts(), 300);
  ASSERT_EQ(file->partitions().size(), 3u);
  EXPECT_EQ(file->partitions()[1].partition.row_starts, written[0].partition.row_starts);
  EXPECT_EQ(file->partitions()[1].partition.method, "nnz");
  EXPECT_EQ(file->partitions()[1].quality, written[0].quality);
  EXPECT_EQ(written[0].quality, evaluate(*file, written[0].partition));
}

TEST_F(ShardFileTest, EmptyAndOddShapes) {
  const HostCsr zero;
  HostCsr no_nonzeros;
  no_nonzeros.rows = 5;
  no_nonzeros.cols = 3;
  no_nonzeros.row_ptr.assign(6, 0);
  HostCsr no_columns = no_nonzeros;
  no_columns.cols = 0;
  for (const HostCsr& m : {zero, no_nonzeros, no_columns, test::from_rows(1, {{{0, 2.5}}})}) {
    for (const bool sort : {false, true}) {
      WriteOptions options;
      options.parts = {1, 2, 8};
      options.order = sort ? RowOrder::by_length : RowOrder::as_source;
      write(m, options);
      const auto file = ShardFile::open(path());
      EXPECT_TRUE(same(file->read_rows(0, m.rows), m));
      test::expect_reads_into(*file, m);
      EXPECT_EQ(file->partitions().size(), 3u);
      file->verify();
    }
  }
}

TEST_F(ShardFileTest, UnknownsStayInTheOriginalOrder) {
  const auto m = std::make_shared<const HostCsr>(test::random_matrix(90, 90, 12, 1));
  const auto list = std::make_shared<UnknownList>();
  for (std::int64_t i = 0; i < m->rows; ++i) list->push_back({(std::int64_t{1} << 40) - i, i % 4});
  for (const RowOrder order : {RowOrder::as_source, RowOrder::by_length, RowOrder::rcm}) {
    WriteOptions options;
    options.order = order;
    write_shard_file(path(), *make_memory_source(m, "bar.sti", list), options);
    const auto file = ShardFile::open(path());
    ASSERT_TRUE(file->unknowns());
    EXPECT_EQ(*file->unknowns(), *list);
    write_shard_file(path("again.h5"), *file, {});  // in the stored order
    EXPECT_EQ(*ShardFile::open(path("again.h5"))->unknowns(), *list);
    ShardFile::open(path("again.h5"))->verify();
  }
  const auto plain = ShardFile::open(path())->fingerprint();
  WriteOptions options;
  options.order = RowOrder::rcm;
  write(*m, options);
  EXPECT_FALSE(ShardFile::open(path())->unknowns());
  EXPECT_EQ(ShardFile::open(path())->fingerprint(), plain);  // of the matrix alone, as older programs expect
  write_shard_file(path(), *make_memory_source(std::make_shared<const HostCsr>(), "none", std::make_shared<UnknownList>()),
                   {});
  EXPECT_EQ(*ShardFile::open(path())->unknowns(), UnknownList());
}

/// More than a block of each table.
class ManyFacts final : public NodeFacts {
 public:
  static constexpr std::int64_t kNodes = 70'000;
  std::int64_t placed_nodes() const override { return kNodes; }
  HostVector<double> coordinates(std::int64_t begin, std::int64_t end) const override { return numbers(begin, end, 3); }
  bool has_axes() const override { return true; }
  HostVector<double> axes(std::int64_t begin, std::int64_t end) const override { return numbers(begin, end, 9); }
  int near_null_count() const override { return 2; }
  HostVector<double> near_null_vectors(std::int64_t begin, std::int64_t end) const override {
    return numbers(begin, end, 2);
  }
  std::vector<MidEdge> mid_edges() const override {
    std::vector<MidEdge> list;
    for (std::int64_t node = 2; node < kNodes; ++node) list.push_back({node, 0, 1});
    return list;
  }

 private:
  static HostVector<double> numbers(std::int64_t begin, std::int64_t end, std::int64_t columns) {
    HostVector<double> all;
    for (std::int64_t i = columns * begin; i < columns * end; ++i) all.push_back(1.0 / static_cast<double>(1 + i));
    return all;
  }
};

TEST_F(ShardFileTest, NodesStayInTheOriginalOrder) {
  const ManyFacts facts;
  HostCsr m = test::random_matrix(2 * ManyFacts::kNodes, 2 * ManyFacts::kNodes, 3, 1);
  for (const RowOrder order : {RowOrder::as_source, RowOrder::by_length}) {
    WriteOptions options;
    options.order = order;
    options.nodes = &facts;
    write(m, options);
    write_shard_file(path("again.h5"), *ShardFile::open(path()), {});
    const auto file = ShardFile::open(path("again.h5"));
    ASSERT_EQ(file->placed_nodes(), ManyFacts::kNodes);
    EXPECT_EQ(file->coordinates(0, ManyFacts::kNodes), facts.coordinates(0, ManyFacts::kNodes));
    EXPECT_EQ(file->coordinates(65'535, 65'537), facts.coordinates(65'535, 65'537));
    EXPECT_TRUE(file->coordinates(5, 5).empty());
    ASSERT_TRUE(file->has_axes());
    EXPECT_EQ(file->axes(65'535, 65'537), facts.axes(65'535, 65'537));
    EXPECT_EQ(file->mid_edges(), facts.mid_edges());
    EXPECT_EQ(file->near_null_count(), 2);
    EXPECT_EQ(file->near_null_vectors(139'000, 140'000), facts.near_null_vectors(139'000, 140'000));
    file->verify();
  }
  write(m);
  const auto without = ShardFile::open(path());
  EXPECT_EQ(without->placed_nodes() + without->near_null_count(), 0);
  EXPECT_TRUE(without->mid_edges().empty());
  EXPECT_FALSE(without->has_axes());
  EXPECT_TRUE(without->axes(0, 1).empty());

  WriteOptions options;
  options.nodes = &facts;
  for (const auto& [name, byte] :
       {std::pair("coordinates", 24 * 65'536), {"axes", 72 * 65'536}, {"near_null_vectors", 16 * 65'537 + 8}}) {
    write(m, options);
    flip_byte(path(), (std::string("/shardmat/") + name).c_str(), byte);
    const auto bad = ShardFile::open(path());
    EXPECT_EQ(bad->coordinates(0, 1000), facts.coordinates(0, 1000));  // of a block that is right
    EXPECT_EQ(bad->near_null_vectors(0, 1000), facts.near_null_vectors(0, 1000));
    const auto says = std::string("/shardmat/") + name + ": the checksum of its rows [65536, ";
    const auto read = [&, of = std::string(name)] {
      if (of == "coordinates") bad->coordinates(66'000, 66'001);
      else if (of == "axes") bad->axes(66'000, 66'001);
      else bad->near_null_vectors(131'071, 131'072);
    };
    EXPECT_SAYS(input_error(read), says);
    EXPECT_SAYS(input_error([&] { ShardFile::open(path())->verify(); }), says);
  }
  write(m, options);
  flip_byte(path(), "/shardmat/mid_edges", 0);
  EXPECT_SAYS(input_error([&] { ShardFile::open(path())->mid_edges(); }), "mid_edges: the checksum of its rows [0, 65536)");
  EXPECT_SAYS(input_error([&] { ShardFile::open(path())->verify(); }), "mid_edges: the checksum of its rows [0, 65536)");
  flip_byte(path(), "/shardmat/mid_edges", 0);
  ShardFile::open(path())->verify();
  edit(path(), [](hid_t file) { H5Ldelete(file, "/shardmat/mid_edges_checksums", H5P_DEFAULT); });
  EXPECT_SAYS(input_error([&] { ShardFile::open(path()); }), "/shardmat/mid_edges_checksums is missing");
  HostCsr other = test::random_matrix(3, 3, 2, 1);
  write(other, options);
  EXPECT_SAYS(input_error([&] { ShardFile::open(path()); }), "coordinates has shape [70000, 3], which does not fit");
}

TEST(Unknowns, AreCounted) {
  const UnknownStatistics none = statistics_of({});
  EXPECT_EQ(none.count + none.nodes + std::ssize(none.dofs), 0);
  const UnknownStatistics some = statistics_of({{5, 2}, {-1, 1}, {5, 11}, {5, 2}, {7, 3}, {7, 12}});
  EXPECT_EQ(some.count, 6);
  EXPECT_EQ(some.nodes, 3);
  EXPECT_EQ(some.dofs, (std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 3}, {11, 12}}));
  EXPECT_EQ(unknowns_file("there/A.mtx"), "there/A.mtx.dof");
}

TEST_F(ShardFileTest, SeveralBlocksAndSlices) {
  HostCsr m;
  m.rows = 3000;
  m.cols = 4000;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t j = 0; j < (i == 7 ? 4000 : 1 + i % 3500); ++j) {
      m.col_idx.push_back(j);
      m.values.push_back(static_cast<double>(i * j % 1001) + 0.5);
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  WriteOptions options;
  options.parts = {3};
  std::int64_t last_done = 0;
  options.progress = [&](std::string_view phase, std::int64_t done, std::int64_t total) {
    if (phase != "writing") return;
    EXPECT_EQ(total, m.nnz());
    EXPECT_GT(done, last_done);
    last_done = done;
  };
  write(m, options);
  EXPECT_EQ(last_done, m.nnz());
  ShardFile::open(path())->verify();
  EXPECT_TRUE(same(ShardFile::open(path())->read_rows(1000, 3000), source_of(m)->read_rows(1000, 3000)));
  test::expect_reads_into(*ShardFile::open(path()), m);
  // The flipped value lies in the last block; its rows are named.
  flip_byte(path(), "/values", 8 * (m.nnz() - 1));
  const std::string error = input_error([&] { ShardFile::open(path())->verify(); });
  EXPECT_SAYS(error, "/values");
  EXPECT_SAYS(error, ", 3000) differs");
  EXPECT_EQ(error.find("rows [0,"), std::string::npos) << error;
  // Whoever reads a row of the block finds out, and nobody else.
  const auto damaged = ShardFile::open(path());
  EXPECT_TRUE(same(damaged->read_rows(10, 1000), source_of(m)->read_rows(10, 1000)));
  for (int again = 0; again < 2; ++again)
    EXPECT_SAYS(input_error([&] { damaged->read_rows(2900, 2901); }), ", 3000) differs");
  // The same when rows are read into arrays: parts of blocks are compared, too, and the first wrong block is named.
  const std::vector<std::int64_t> one{0}, two{1, 0};
  EXPECT_EQ(test::read_into(*damaged, 10, two, {false, true}).nnz(), 11 + 12);
  for (const test::Widths widths : {test::Widths{false, false}, {false, true}, {true, true}})
    EXPECT_SAYS(input_error([&] { test::read_into(*damaged, 2900, one, widths); }), ", 3000) differs");
  flip_byte(path(), "/indices_1", 0);
  std::vector<std::int64_t> all(3000);
  std::iota(all.begin(), all.end(), std::int64_t{0});
  EXPECT_SAYS(input_error([&] {
                test::read_into(*ShardFile::open(path()), 0, all, {false, true});
              }),
              "/indices_1: the checksum of rows [0, ");
}

TEST_F(ShardFileTest, ReadsOneHugeRowAndMoreBlocksThanThreads) {
  // Rows 1 and 2 are longer than a block.
  std::vector<std::vector<std::pair<std::int64_t, double>>> rows(6);
  rows[0] = {{5, 1.5}};
  for (std::int64_t j = 0; j < 1'200'000; ++j) {
    rows[1].emplace_back(j, static_cast<double>(j));
    if (j % 9 != 0) rows[2].emplace_back(j, 0.5);
  }
  rows[5] = {{0, -1}, {1'199'999, 4}};
  const HostCsr m = test::from_rows(1'200'000, rows);
  write(m);
  test::expect_reads_into(*ShardFile::open(path()), m);
}

TEST_F(ShardFileTest, SlicesEndWithBlocks) {
  const HostCsr m = test::random_matrix(3000, 4000, 4000, 1);  // of 1.5 million nonzeros and more
  write(m);
  const auto file = ShardFile::open(path());
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(Hdf5File::open(path()).dataset("/shardmat/block_rows").size()));
  Hdf5File::open(path()).dataset("/shardmat/block_rows").read(0, std::ssize(blocks), blocks.data());
  ASSERT_GT(blocks.size(), 2u);
  EXPECT_EQ(file->best_end(0, blocks[1] - 1), blocks[1] - 1);
  EXPECT_EQ(file->best_end(0, blocks[1]), blocks[1]);
  EXPECT_EQ(file->best_end(0, blocks[1] + 1), blocks[1]);
  EXPECT_EQ(file->best_end(blocks[1], blocks[1] + 1), blocks[1] + 1);
  EXPECT_EQ(file->best_end(5, m.rows), blocks[blocks.size() - (blocks.back() == m.rows ? 1 : 2)]);
}

TEST_F(ShardFileTest, WideMatrixKeepsWideColumns) {
  const std::int64_t cols = (std::int64_t{1} << 31) + 10;
  const HostCsr wide = test::from_rows(cols, {{{3, 1.0}, {cols - 1, 2.0}}, {}, {{0, 3.0}}});
  write(wide);
  EXPECT_EQ(Hdf5File::open(path()).dataset("/indices_1").type(), Hdf5Type::i64);
  EXPECT_TRUE(same(ShardFile::open(path())->read_rows(0, 3), wide));
  test::expect_reads_into(*ShardFile::open(path()), wide);
  HostCsr narrow = wide;
  narrow.cols = std::int64_t{1} << 31;
  narrow.col_idx[1] = narrow.cols - 1;
  write(narrow);
  EXPECT_EQ(Hdf5File::open(path()).dataset("/indices_1").type(), Hdf5Type::i32);
  EXPECT_TRUE(same(ShardFile::open(path())->read_rows(0, 3), narrow));
  test::expect_reads_into(*ShardFile::open(path()), narrow);
}

TEST_F(ShardFileTest, DescriptorIsBinsparse) {
  const HostCsr m = test::random_matrix(20, 30, 5, 1);
  write(m);
  const auto json = nlohmann::json::parse(Hdf5File::open(path()).string_attribute("/", "binsparse"))["binsparse"];
  EXPECT_EQ(json["version"], "0.1");
  EXPECT_EQ(json["format"], "CSR");
  EXPECT_EQ(json["shape"], (nlohmann::json{20, 30}));
  EXPECT_EQ(json["number_of_stored_values"], m.nnz());
  EXPECT_EQ(json["data_types"]["indices_1"], "int32");
}

TEST_F(ShardFileTest, NonfiniteOnlyWhenAllowedAndRemembered) {
  HostCsr m = test::random_matrix(20, 20, 5, 1);
  m.values[3] = std::nan("");
  EXPECT_SAYS(input_error([&] { write(m); }), "accept values that are not finite");
  EXPECT_EQ(setting_of([&] { write(m); }), "allow_nonfinite");
  EXPECT_TRUE(directory_.files().empty());
  WriteOptions options;
  options.allow_nonfinite = true;
  write(m, options);
  const auto file = ShardFile::open(path());
  EXPECT_TRUE(file->allows_nonfinite());
  file->verify();
  EXPECT_TRUE(std::isnan(file->read_rows(0, 20).values[3]));
}

// --- Another order
// ---------------------------------------------------------------------------------------------------

/// Undoes the stored permutation: the matrix in its original order.
HostCsr in_original_order(const ShardFile& file) {
  const auto order = file.permutation(0, file.rows());
  const bool square = file.rows() == file.cols();
  std::vector<std::vector<std::pair<std::int64_t, double>>> rows(order.size());
  const HostCsr stored = file.read_rows(0, file.rows());
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto& row = rows[static_cast<std::size_t>(order[i])];
    for (auto k = static_cast<std::size_t>(stored.row_ptr[i]); k < static_cast<std::size_t>(stored.row_ptr[i + 1]); ++k)
      row.emplace_back(square ? order[static_cast<std::size_t>(stored.col_idx[k])] : stored.col_idx[k], stored.values[k]);
    std::sort(row.begin(), row.end());
  }
  return test::from_rows(file.cols(), rows);
}

TEST_F(ShardFileTest, GlobalSortIsUndoneByThePermutation) {
  for (const std::int64_t cols : {200, 90}) {
    const HostCsr m = test::random_matrix(200, cols, 12, 1);
    WriteOptions options;
    options.order = RowOrder::by_length;
    options.parts = {5};
    write(m, options);
    const auto file = ShardFile::open(path());
    EXPECT_TRUE(file->permuted());
    file->verify();
    const auto lengths = file->row_lengths(0, 200);
    EXPECT_TRUE(std::is_sorted(lengths.rbegin(), lengths.rend()));
    EXPECT_TRUE(same(in_original_order(*file), m));
  }
}

TEST_F(ShardFileTest, ReorderingIsUndoneByThePermutation) {
  const HostCsr m = test::random_matrix(200, 200, 12, 1);
  WriteOptions options;
  options.order = RowOrder::rcm;
  options.parts = {5};
  write(m, options);
  const auto file = ShardFile::open(path());
  EXPECT_TRUE(file->permuted());
  EXPECT_EQ(file->row_order(), RowOrder::rcm);
  file->verify();
  EXPECT_TRUE(same(in_original_order(*file), m));
  write_shard_file(path("again.h5"), *file, WriteOptions{});
  EXPECT_EQ(ShardFile::open(path("again.h5"))->row_order(), RowOrder::rcm);
  EXPECT_THROW(write(test::random_matrix(20, 30, 3, 1), options), Error);
}

TEST_F(ShardFileTest, RepartitioningComposesPermutations) {
  const HostCsr m = test::random_matrix(200, 200, 12, 1);
  WriteOptions sorted, unsorted;
  sorted.order = RowOrder::by_length;
  write(m, sorted);
  const auto first = ShardFile::open(path());
  write_shard_file(path("again.h5"), *first, sorted);
  write_shard_file(path("kept.h5"), *first, unsorted);
  for (const char* name : {"again.h5", "kept.h5"}) {
    const auto file = ShardFile::open(path(name));
    EXPECT_TRUE(file->permuted());
    EXPECT_EQ(file->permutation(0, 200), first->permutation(0, 200));
    EXPECT_EQ(file->fingerprint(), first->fingerprint());
    EXPECT_TRUE(same(in_original_order(*file), m));
    file->verify();
  }
}

TEST_F(ShardFileTest, SortsAFileAsItSortsMemory) {
  const HostCsr m = test::random_matrix(3000, 3000, 40, 1);
  WriteOptions options;
  write(m, options, "plain.h5");
  options.order = RowOrder::by_length;
  write(m, options, "memory.h5");
  write_shard_file(path("file.h5"), *ShardFile::open(path("plain.h5")), options);
  EXPECT_EQ(ShardFile::open(path("file.h5"))->fingerprint(), ShardFile::open(path("memory.h5"))->fingerprint());
}

TEST_F(ShardFileTest, ReplacesTheFileItReads) {
  const HostCsr m = test::random_matrix(50, 50, 12, 1);
  write(m);
  WriteOptions options;
  options.parts = {3};
  write_shard_file(path(), *ShardFile::open(path()), options);
  EXPECT_EQ(ShardFile::open(path())->partitions().size(), 1u);
  EXPECT_TRUE(same(ShardFile::open(path())->read_rows(0, 50), m));
}

TEST_F(ShardFileTest, FingerprintNamesTheContent) {
  HostCsr m = test::random_matrix(50, 50, 12, 1);
  write(m);
  const auto fingerprint = ShardFile::open(path())->fingerprint();
  WriteOptions options;
  options.parts = {3};
  write(m, options);
  EXPECT_EQ(ShardFile::open(path())->fingerprint(), fingerprint);
  m.values[7] += 1;
  write(m);
  EXPECT_NE(ShardFile::open(path())->fingerprint(), fingerprint);
}

// --- Plain Binsparse files
// -------------------------------------------------------------------------------------------

TEST_F(ShardFileTest, ReadsPlainBinsparseOfOtherTypes) {
  HostCsr m = test::random_matrix(40, 30, 6, 1);
  for (double& value : m.values) value = std::floor(value);
  const auto check = [&] {
    const auto file = ShardFile::open(path());
    EXPECT_TRUE(file->plain_binsparse());
    EXPECT_TRUE(file->partitions().empty());
    EXPECT_FALSE(file->permuted());
    EXPECT_NE(file->fingerprint(), 0u);
    EXPECT_EQ(file->fingerprint(), ShardFile::open(path())->fingerprint());
    file->verify();
    EXPECT_TRUE(same(file->read_rows(0, 40), m));
    test::expect_reads_into(*file, m);
  };
  write_plain<std::int64_t, double>(m, plain_descriptor(m));
  check();
  write_plain<std::int32_t, double>(m, plain_descriptor(m));
  check();
  write_plain<std::uint64_t, float>(m, plain_descriptor(m));
  check();
  write_plain<std::int32_t, std::int32_t>(m, plain_descriptor(m));
  check();
}

TEST_F(ShardFileTest, RefusesBinsparseThatIsNotPlainRealCsr) {
  const HostCsr m = test::random_matrix(40, 30, 6, 1);
  const auto error_with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json descriptor = plain_descriptor(m);
    descriptor[key] = value;
    write_plain<std::int64_t, double>(m, descriptor);
    return input_error([&] { ShardFile::open(path()); });
  };
  EXPECT_SAYS(error_with("format", "CSC"), "Binsparse matrix of format CSC and no shard file; make one with");
  EXPECT_SAYS(error_with("format", 7), "format 7; CSR, CSC");
  EXPECT_SAYS(error_with("structure", "symmetric_lower"), "symmetric_lower");
  EXPECT_SAYS(error_with("data_types", nlohmann::json{{"values", "complex[float64]"}}), "complex");
  EXPECT_SAYS(error_with("data_types", nlohmann::json{{"values", "iso[float64]"}}), "iso");
  EXPECT_SAYS(error_with("shape", nlohmann::json{40}), "shape");
  EXPECT_SAYS(error_with("shape", nlohmann::json{-1, 30}), "shape");
  EXPECT_SAYS(error_with("shape", nlohmann::json{41, 30}), "/pointers_to_1 has shape [41] but must have [42]");
  EXPECT_SAYS(error_with("number_of_stored_values", m.nnz() + 1), "/indices_1 has shape");
  EXPECT_SAYS(error_with("number_of_stored_values", "many"), "number_of_stored_values");
}

TEST_F(ShardFileTest, RefusesWrongRowsOfPlainFilesOnReading) {
  const HostCsr good = test::from_rows(4, {{{0, 1}, {3, 2}}, {}, {{0, 3}, {1, 4}, {2, 5}}});
  const auto error_of = [&](const HostCsr& m) {
    write_plain<std::int64_t, double>(m, plain_descriptor(m));
    const std::string error = input_error([&] { ShardFile::open(path())->verify(); });
    EXPECT_EQ(input_error([&] { ShardFile::open(path())->read_rows(0, m.rows); }), error);
    const auto read_into = [&] { return test::read_into(*ShardFile::open(path()), 0, {0, 1, 2}, {false, true}); };
    const bool has_lengths = m.row_ptr[2] >= m.row_ptr[1];  // which read_into() asks for
    if (has_lengths) {
      EXPECT_EQ(input_error(read_into), error);
    }
    write_plain<std::int32_t, double>(m, plain_descriptor(m));
    if (has_lengths) {
      EXPECT_EQ(input_error(read_into), error);
    }
    return error;
  };
  HostCsr m = good;
  m.row_ptr[1] = 4;
  EXPECT_SAYS(error_of(m), "/pointers_to_1: row 1 has a negative length (4 to 2)");
  m = good;
  m.col_idx[4] = 4;
  EXPECT_SAYS(error_of(m), "row 2: column 4 is out of range");
  m = good;
  m.values[1] = std::numeric_limits<double>::infinity();
  EXPECT_SAYS(error_of(m), "row 0");
  EXPECT_TRUE(std::isinf(ShardFile::open(path(), true)->read_rows(0, 3).values[1]));
}

TEST_F(ShardFileTest, ReadingIntoArraysRefusesValuesOutOfRange) {
  HostCsr m = test::random_matrix(3000, 40, 40, 1);
  const auto at = static_cast<std::size_t>(m.row_ptr[2000]);
  m.values[at] = -1e39;
  write(m);
  std::vector<std::int64_t> order(3000);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto read = [&](test::Widths widths) { return test::read_into(*ShardFile::open(path()), 0, order, widths); };
  EXPECT_EQ(read({false, true}).values, m.values);
  EXPECT_SAYS(input_error([&] { read({false, false}); }), "entry " + std::to_string(at + 1) + " of the values of ");
  std::rotate(order.begin(), order.begin() + 2000, order.end());
  EXPECT_SAYS(input_error([&] { read({false, false}); }), "entry 1 of the values of ");
}

TEST_F(ShardFileTest, ReadsVariableLengthDescriptor) {
  const HostCsr m = test::random_matrix(40, 30, 6, 1);
  write_plain<std::int64_t, double>(m, plain_descriptor(m));
  edit(path(), [&](hid_t file) {
    const std::string text = nlohmann::json{{"binsparse", plain_descriptor(m)}}.dump();
    const char* data = text.c_str();
    H5Adelete(file, "binsparse");
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t a = H5Acreate2(file, "binsparse", type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, type, static_cast<const void*>(&data));
    H5Aclose(a), H5Sclose(space), H5Tclose(type);
  });
  EXPECT_TRUE(same(ShardFile::open(path())->read_rows(0, 40), m));
}

}  // namespace
}  // namespace shardmat
