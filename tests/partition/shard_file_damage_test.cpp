// Shard files that are not what they should be, and writing that fails.
#include <gtest/gtest.h>

#include "tests/partition/file_size_limit.h"
#include "tests/partition/shard_file_fixture.h"

// HDF5 1.10 leaks 312 bytes each time it meets a damaged object header.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace shardmat {
namespace {

using namespace test;

TEST_F(ShardFileTest, RefusesWhatIsNoShardFile) {
  EXPECT_SAYS(input_error([&] { ShardFile::open(path("none.h5")); }), "no such file");
  EXPECT_SAYS(input_error([&] { ShardFile::open(path("none.h5").parent_path()); }), "is a directory");
  std::ofstream(path()) << "%%MatrixMarket matrix coordinate real general\n1 1 0\n";
  EXPECT_SAYS(input_error([&] { ShardFile::open(path()); }), "cannot open it as an HDF5 file");
  std::ofstream(path("empty.h5")).flush();
  input_error([&] { ShardFile::open(path("empty.h5")); });
  Hdf5Writer(path()).close();
  EXPECT_SAYS(input_error([&] { ShardFile::open(path()); }), "no matrix: its root has no attribute 'binsparse'");
}

TEST_F(ShardFileTest, RefusesTruncation) {
  const HostCsr m = test::random_matrix(500, 500, 12, 1);
  write(m);
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path()));
  std::filesystem::resize_file(path(),
                               static_cast<std::uintmax_t>(size - 1));  // of the description, which HDF5 can give, too
  EXPECT_TRUE(same(ShardFile::open(path())->read_rows(0, 500), m));
  for (const std::int64_t left : {size / 2, std::int64_t{100}, std::int64_t{1}}) {
    std::filesystem::resize_file(path(), static_cast<std::uintmax_t>(left));
    EXPECT_SAYS(input_error([&] { ShardFile::open(path()); }), path().string());
  }
}

TEST_F(ShardFileTest, RefusesNewerVersionAndMissingParts) {
  const HostCsr m = test::random_matrix(50, 50, 6, 1);
  write(m);
  set_attribute(path(), "/shardmat", "format_version", 2);
  EXPECT_SAYS(input_error([&] { ShardFile::open(path()); }), "version 2");
  for (const char* name : {"/pointers_to_1", "/indices_1", "/values", "/shardmat/checksums", "/shardmat/block_rows"}) {
    write(m);
    edit(path(), [&](hid_t file) { H5Ldelete(file, name, H5P_DEFAULT); });
    EXPECT_SAYS(input_error([&] { ShardFile::open(path()); }), std::string(name) + " is missing");
  }
  write(m);
  set_attribute(path(), "/shardmat", "rows", 51);
  EXPECT_SAYS(input_error([&] { ShardFile::open(path()); }), "other sizes");
}

TEST_F(ShardFileTest, RefusesWrongTypesAndShapes) {
  const HostCsr m = test::random_matrix(50, 50, 6, 1);
  const auto replace = [&](const char* name, auto tag, std::vector<std::int64_t> shape) {
    write(m);
    edit(path(), [&](hid_t file) {
      H5Ldelete(file, name, H5P_DEFAULT);
      const std::vector<hsize_t> dims(shape.begin(), shape.end());
      const hid_t space = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
      const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
      H5Dclose(H5Dcreate2(file, name, std::is_same_v<decltype(tag), char> ? H5T_C_S1 : H5T_NATIVE_DOUBLE, space, H5P_DEFAULT,
                          list, H5P_DEFAULT));
      H5Sclose(space), H5Pclose(list);
    });
    return input_error([&] { ShardFile::open(path()); });
  };
  EXPECT_SAYS(replace("/indices_1", 1.0, {m.nnz()}), "/indices_1 must hold whole numbers");
  EXPECT_SAYS(replace("/values", 'a', {m.nnz()}), "/values must hold real numbers");
  EXPECT_SAYS(replace("/values", 1.0, {m.nnz(), 2}), "/values has shape");
  EXPECT_SAYS(replace("/pointers_to_1", 1.0, {50}), "/pointers_to_1 has shape [50]");
}

TEST_F(ShardFileTest, RefusesUnknownsOfOtherSizesAndTypes) {
  const auto m = std::make_shared<const HostCsr>(test::random_matrix(50, 50, 6, 1));
  const auto list = std::make_shared<const UnknownList>(50, NodeUnknown{7, 3});
  const auto replace = [&](hid_t type, std::vector<hsize_t> shape) {
    write_shard_file(path(), *make_memory_source(m, "bar.sti", list), {});
    edit(path(), [&](hid_t file) {
      H5Ldelete(file, "/shardmat/unknowns", H5P_DEFAULT);
      const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
      const hid_t all = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_alloc_time(all, H5D_ALLOC_TIME_EARLY);
      H5Dclose(H5Dcreate2(file, "/shardmat/unknowns", type, space, H5P_DEFAULT, all, H5P_DEFAULT));
      H5Sclose(space), H5Pclose(all);
    });
    return input_error([&] { ShardFile::open(path()); });
  };
  EXPECT_SAYS(replace(H5T_NATIVE_INT64, {49, 2}), "/shardmat/unknowns has shape [49, 2] but must have [50, 2]");
  EXPECT_SAYS(replace(H5T_NATIVE_INT64, {100}), "/shardmat/unknowns has shape [100]");
  EXPECT_SAYS(replace(H5T_NATIVE_DOUBLE, {50, 2}), "/shardmat/unknowns must hold whole numbers");
  EXPECT_SAYS(replace(H5T_NATIVE_INT64, {50, 2}), "checksum");
  EXPECT_EQ(input_error([&] { make_memory_source(std::make_shared<const HostCsr>(), "none", list); }, ErrorKind::internal),
            "none: 50 unknowns of 0 rows");
}

TEST_F(ShardFileTest, RefusesPartitionsOfAnotherMatrix) {
  const HostCsr m = test::random_matrix(50, 50, 6, 1);
  HostCsr other = m;
  other.values[0] += 1;
  WriteOptions options;
  options.parts = {3};
  write(other, options, "other.h5");
  write(m, {});
  edit(path(), [&](hid_t file) {
    const hid_t from = H5Fopen(path("other.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    H5Ocopy(from, "/shardmat/partitions/nnz-3", file, "/shardmat/partitions/nnz-3", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(from);
  });
  EXPECT_SAYS(input_error([&] { ShardFile::open(path()); }), "nnz-3 was made for another matrix");

  write(m, options);
  edit(path(), [&](hid_t file) {
    H5Lmove(file, "/shardmat/partitions/nnz-3", file, "/shardmat/partitions/nnz-4", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_SAYS(input_error([&] { ShardFile::open(path()); }), "nnz-4");

  // The matrix replaced under its tables is found by its checksums.
  write(m, options);
  edit(path(), [&](hid_t file) {
    const hid_t from = H5Fopen(path("other.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    H5Ldelete(file, "/values", H5P_DEFAULT);
    H5Ocopy(from, "/values", file, "/values", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(from);
  });
  EXPECT_SAYS(input_error([&] { ShardFile::open(path())->verify(); }), "/values: the checksum of rows [0, 50) differs");
}

TEST_F(ShardFileTest, EveryFlippedByteIsFoundAndNamed) {
  const HostCsr m = test::random_matrix(60, 60, 6, 1);
  WriteOptions options;
  options.parts = {3};
  options.order = RowOrder::by_length;
  struct Flip {
    const char *dataset, *named;
    std::int64_t bytes;
  };
  const std::int64_t nnz = m.nnz();
  const auto unknowns = std::make_shared<UnknownList>();
  for (std::int64_t i = 0; i < m.rows; ++i) unknowns->push_back({i / 3 + 1, i % 3 + 1});
  const auto source = make_memory_source(std::make_shared<const HostCsr>(m), "bar.sti", unknowns);
  for (const auto& [dataset, named, bytes] :
       {Flip{"/pointers_to_1", "/pointers_to_1", 8 * 61}, Flip{"/indices_1", "/indices_1", 4 * nnz},
        Flip{"/values", "/values", 8 * nnz}, Flip{"/shardmat/permutation", "/shardmat/permutation", 8 * 60},
        Flip{"/shardmat/permutation_checksums", "/shardmat/permutation", 8},
        Flip{"/shardmat/unknowns", "/shardmat/unknowns", 16 * 60}, Flip{"/shardmat/checksums", "/shardmat/checksums", 24},
        Flip{"/shardmat/block_rows", "/shardmat/block_rows", 16},
        Flip{"/shardmat/partitions/nnz-3/row_starts", "nnz-3/row_starts", 32}}) {
    write_shard_file(path("good.h5"), *source, options);
    std::vector<std::int64_t> all(60);
    std::iota(all.begin(), all.end(), std::int64_t{0});
    for (std::int64_t i = 0; i < 24; ++i) {
      std::filesystem::copy_file(path("good.h5"), path(), std::filesystem::copy_options::overwrite_existing);
      flip_byte(path(), dataset, i * (bytes - 1) / 23, static_cast<unsigned char>(1 << i % 8));
      EXPECT_SAYS(input_error([&] { ShardFile::open(path())->verify(); }), named);
      if (named == std::string("/indices_1") || named == std::string("/values")) {
        EXPECT_SAYS(input_error([&] { test::read_into(*ShardFile::open(path()), 0, all, {false, true}); }), named);
      }
    }
  }
}

/// Whatever single byte changes, opening, reading and verifying end in an Error or in the same rows.
TEST_F(ShardFileTest, AnyFlippedByteIsHarmless) {
  const HostCsr m = test::random_matrix(20, 20, 4, 1);
  WriteOptions options;
  options.parts = {2};
  write(m, options, "good.h5");
  std::ifstream good(path("good.h5"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(good), {}};
  for (std::size_t i = 0; i < bytes.size(); i += 19) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
    std::ofstream(path(), std::ios::binary).write(bad.data(), static_cast<std::streamsize>(bad.size()));
    try {
      const auto file = ShardFile::open(path());
      file->verify();
      EXPECT_TRUE(same(file->read_rows(0, 20), m)) << "byte " << i;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input) << e.what();
    }
  }
}

// --- Writing that fails
// ----------------------------------------------------------------------------------------------

TEST_F(ShardFileTest, FullDiskLeavesNothingBehind) {
  const HostCsr m = test::random_matrix(20000, 500, 40, 1);
  WriteOptions options;
  options.parts = {3};
  for (const rlim_t bytes : {100, 1000, 100000, 1000000, 3000000}) {
    {
      const test::FileSizeLimit full(bytes);
      EXPECT_SAYS(input_error([&] { write(m, options); }, ErrorKind::resources), "File too large");
    }
    EXPECT_TRUE(directory_.files().empty()) << bytes;
  }
  write(m, options);
  ShardFile::open(path())->verify();
}

TEST_F(ShardFileTest, FailedWriteKeepsTheOldFile) {
  const HostCsr m = test::random_matrix(50, 50, 6, 1);
  write(m);
  HostCsr wrong = m;
  wrong.col_idx[0] = 1000;
  EXPECT_SAYS(input_error([&] { write(wrong); }), "column 1000 is out of range");
  WriteOptions sorted;
  sorted.order = RowOrder::by_length;
  EXPECT_SAYS(input_error([&] { write(wrong, sorted); }), "column 1000 is out of range");
  EXPECT_EQ(directory_.files(), std::vector<std::string>{"a.h5"});
  EXPECT_TRUE(same(ShardFile::open(path())->read_rows(0, 50), m));
}

TEST_F(ShardFileTest, RefusesUnknownMethodAndDirectory) {
  WriteOptions options;
  options.parts = {2};
  options.method = "graphs";
  EXPECT_SAYS(input_error([&] { write(HostCsr{}, options); }, ErrorKind::usage), "graphs");
  EXPECT_SAYS(input_error([&] { write(HostCsr{}, {}, "no/a.h5"); }), "no directory");
  EXPECT_TRUE(directory_.files().empty());
}

/// A source whose two passes disagree.
class Liar : public RowSource {
 public:
  std::int64_t rows() const override { return 3; }
  std::int64_t cols() const override { return 3; }
  std::string name() const override { return "liar"; }
  HostVector<std::int64_t> row_lengths(std::int64_t, std::int64_t) const override { return {1, 1, 1}; }
  HostCsr read_rows(std::int64_t, std::int64_t) const override {
    return test::from_rows(3, {{{0, 1}}, {{0, 1}, {1, 1}}, {}});
  }
};

TEST_F(ShardFileTest, RefusesASourceThatContradictsItself) {
  EXPECT_SAYS(input_error([&] { write_shard_file(path(), Liar(), {}); }, ErrorKind::internal), "row 1 is not as long");
  EXPECT_TRUE(directory_.files().empty());
}

}  // namespace
}  // namespace shardmat
