// Sparse matrices in MATLAB's files of version 7.3 (tests/data/mat/make.py) and in HDF5 files as PETSc reads them.
#include "partition/readers/matlab_hdf5.h"

#include <gtest/gtest.h>

#include "partition/hdf5/writer.h"
#include "partition/input_kind.h"
#include "partition/readers/reader.h"
#include "partition/readers/replaceable.h"
#include "partition/vectors/vector_file.h"
#include "partition/vectors/vector_formats.h"
#include "partition/writers/writer_list.h"
#include "tests/partition/readers/test_files.h"
#include "tests/partition/test_matrices.h"

namespace shardmat {
namespace {

using test::csr;
using test::error_of;
using test::expect_same;
using test::Path;

std::string data(const std::string& name) { return (Path(SHARDMAT_TEST_DATA) / "mat" / name).string(); }

class MatlabHdf5Test : public test::FilesTest {
 protected:
  struct Parts {
    HostVector<std::int64_t> jc{0, 1, 3}, ir{1, 0, 2};
    HostVector<double> values{1.5, 2, 3};
    std::int64_t rows = 3;
    bool attribute = true;
  };
  /// Its group K has these parts.
  Path write_group(const Parts& parts) const {
    std::filesystem::remove(path("a.h5"));
    Hdf5Writer out(path("a.h5"));
    out.create_group("/K");
    if (parts.attribute) out.write_attribute<std::int64_t>("/K", "MATLAB_sparse", parts.rows);
    out.create_dataset<std::int64_t>("/K/jc", {std::ssize(parts.jc)}).write(0, std::ssize(parts.jc), parts.jc.data());
    out.create_dataset<std::int64_t>("/K/ir", {std::ssize(parts.ir)}).write(0, std::ssize(parts.ir), parts.ir.data());
    out.create_dataset<double>("/K/data", {std::ssize(parts.values)})
        .write(0, std::ssize(parts.values), parts.values.data());
    out.close();
    return path("a.h5");
  }
  std::string error(const Parts& parts) const {
    return error_of([&] { read_matrix(write_group(parts)); });
  }
};

TEST_F(MatlabHdf5Test, ReadsSparseMatricesByName) {
  expect_same(read_matrix(data("v73.mat:K")), csr(3, 4, {0, 2, 2, 5}, {0, 2, 0, 1, 3}, {1.5, -2, 0.1, 3, 1e300}));
  expect_same(read_matrix(data("v73.mat:/K")), read_matrix(data("v73.mat:K")));
  expect_same(read_matrix(data("v73.mat:/model/M")), csr(2, 2, {0, 1, 2}, {0, 1}, {2, 3}));
  expect_same(read_matrix(data("v73.mat:empty")), csr(4, 2, {0, 0, 0, 0, 0}, {}, {}));
  EXPECT_SAYS(error_of([] { read_matrix(data("v73.mat")); }), "3 sparse matrices; name one", "v73.mat:/K",
              "/model/M is a sparse matrix, 2 × 2, 2 nonzeros");
  EXPECT_SAYS(error_of([] { read_matrix(data("v73.mat:b")); }), "/b is no sparse matrix but an array", "sparse(A)");
  EXPECT_SAYS(error_of([] { read_matrix(data("v73.mat:L")); }), "no sparse matrix /L", "/K is a sparse");
}

TEST_F(MatlabHdf5Test, ListsWhatIsThere) {
  const auto list = list_objects(data("v73.mat"));
  ASSERT_EQ(list.size(), 6U);
  EXPECT_EQ(list[0].name, "/B");
  EXPECT_EQ(list[0].text, "dense matrix, 3 × 2");
  EXPECT_FALSE(list[0].matrix);
  EXPECT_EQ(list[1].name, "/K");
  EXPECT_EQ(list[1].text, "sparse matrix, 3 × 4, 5 nonzeros");
}

TEST_F(MatlabHdf5Test, ReadsItsVectors) {
  EXPECT_EQ(VectorFile(data("v73.mat:b"), "x").read(0, 3), (HostVector<double>{1, 2, 3}));
  EXPECT_EQ(VectorFile(data("v73.mat:row"), "x").read(0, 2), (HostVector<double>{4, 5}));
  EXPECT_EQ(VectorFile(data("v73.mat:B"), "x", 2).read(1, 3), (HostVector<double>{3, 4, 5, 6}));
  EXPECT_SAYS(error_of([] { VectorFile(data("v73.mat:B"), "x", 3); }), "its shape is (3, 2)");
  EXPECT_SAYS(error_of([] { VectorFile(data("v73.mat:x"), "x"); }), "no dataset /x");
  EXPECT_EQ(VectorFile(data("v73.mat"), "b").read(0, 3), (HostVector<double>{1, 2, 3}));
  EXPECT_EQ(VectorFile(data("v73.mat"), "b0").read(0, 3), (HostVector<double>{1, 2, 3}));
  EXPECT_SAYS(error_of([] { VectorFile(data("v73.mat"), "x"); }), "several arrays, and none is named x", "v73.mat:/",
              "/row");
}

TEST_F(MatlabHdf5Test, KindsOfHdf5) {
  EXPECT_EQ(kind_of_input(data("v73.mat")), InputKind::hdf5);
  EXPECT_TRUE(is_foreign_hdf5(data("v73.mat")));
  EXPECT_EQ(kind_of_input(data("v73.mat:K")), InputKind::foreign);
  const Path file = write_group({});
  EXPECT_EQ(kind_of_input(file), InputKind::hdf5);
  EXPECT_TRUE(is_foreign_hdf5(file));
  expect_same(read_matrix(file), csr(3, 2, {0, 1, 2, 3}, {1, 0, 1}, {2, 1.5, 3}));
}

TEST_F(MatlabHdf5Test, ReadsWhatOctaveWrote) {
  expect_same(read_matrix(data("octave.h5:K")), csr(3, 4, {0, 2, 2, 5}, {0, 2, 0, 1, 3}, {1.5, -2, 0.1, 3, 1e300}));
  expect_same(read_matrix(data("octave.h5:/empty")), csr(4, 2, {0, 0, 0, 0, 0}, {}, {}));
  expect_same(read_matrix(data("octave.h5:L")), csr(2, 2, {0, 1, 3}, {0, 0, 1}, {1, 1, 1}));
  EXPECT_EQ(VectorFile(data("octave.h5:b"), "x").read(0, 3), (HostVector<double>{1, 2, 3}));
  EXPECT_EQ(VectorFile(data("octave.h5:/B"), "x", 2).read(1, 3), (HostVector<double>{3, 4, 5, 6}));
  EXPECT_SAYS(error_of([] { read_matrix(data("octave.h5:C")); }), "/C/value/data", "no real numbers", "two real matrices");
  EXPECT_SAYS(error_of([] { read_matrix(data("octave.h5:b")); }), "/b is no sparse matrix but an array");
  EXPECT_SAYS(error_of([] { read_matrix(data("octave.h5")); }), "4 sparse matrices; name one",
              "/B is a dense matrix, 3 × 2");
  std::filesystem::copy_file(data("octave.h5"), path("o.mat"));  // any name
  expect_same(read_matrix(path("o.mat").string() + ":K"), read_matrix(data("octave.h5:K")));
  EXPECT_EQ(VectorFile(path("o.mat").string() + ":b", "x").read(0, 3), (HostVector<double>{1, 2, 3}));
}

TEST_F(MatlabHdf5Test, RefusesDamageInFilesOfOctave) {
  const auto with = [&](const std::vector<std::int64_t>& nr, const HostVector<std::int64_t>& rows) {
    std::filesystem::remove(path("a.h5"));
    Hdf5Writer out(path("a.h5"));
    for (const char* group : {"/K", "/K/value"}) out.create_group(group);
    out.write_attribute<std::int64_t>("/K", "OCTAVE_NEW_FORMAT", 1);
    const HostVector<std::int64_t> pointers{0, 1, 3};
    const HostVector<double> values{1.5, 2, 3};
    const auto count = std::ssize(nr);
    out.create_dataset<std::int64_t>("/K/value/nr", {count}).write(0, count, nr.data());
    out.create_dataset<std::int64_t>("/K/value/cidx", {3}).write(0, 3, pointers.data());
    out.create_dataset<std::int64_t>("/K/value/ridx", {std::ssize(rows)}).write(0, std::ssize(rows), rows.data());
    out.create_dataset<double>("/K/value/data", {3}).write(0, 3, values.data());
    out.close();
    return error_of([&] { read_matrix(path("a.h5")); });
  };
  EXPECT_SAYS(with({3, 3}, {1, 0, 2}), "/K/value/nr", "one number");
  EXPECT_SAYS(with({-1}, {1, 0, 2}), "-1 × 2");
  EXPECT_SAYS(with({3}, {1, 0, 3}), "dataset /K/value/ridx: entry 2 is the row 3");
  EXPECT_SAYS(with({3}, {1, 0}), "/K", "2 entries", "3");
}

TEST_F(MatlabHdf5Test, WritesWhatItReads) {
  HostCsr m = test::random_matrix(70, 90, 9, 4);
  m.values[3] = 0;
  AtomicFile file(path("m.mat"));
  write_matlab_hdf5(file, *test::source_of(m), m.row_ptr, {});
  file.commit();
  require_replaceable(path("m.mat"), Output::matrix);
  expect_same(read_matrix(path("m.mat")), m);
  expect_same(read_matrix(path("m.mat").string() + ":A"), m);
  const std::string bytes = test::bytes_of(path("m.mat"));
  EXPECT_TRUE(bytes.starts_with("MATLAB 7.3 MAT-file"));
  EXPECT_EQ(bytes.substr(124, 4), std::string("\x00\x02IM", 4));
}

TEST_F(MatlabHdf5Test, WritesVectorsThatItReads) {
  const HostVector<double> rows{1, 2, 3, 4, 5, 6};
  for (const bool hdf5 : {true, false}) {
    AtomicFile file(path("v.mat"));
    const auto sink = hdf5 ? make_matlab_hdf5_sink(file, 3, 2) : make_matlab_sink(file, 3, 2);
    sink->append(rows.data(), 1);
    sink->append(rows.data() + 2, 2);
    sink->close();
    file.commit();
    require_replaceable(path("v.mat"), Output::vector, "y");
    EXPECT_EQ(VectorFile(path("v.mat"), "v", 2).read(0, 3), rows);
    EXPECT_EQ(test::bytes_of(path("v.mat")).starts_with("MATLAB 7.3"), hdf5);
  }
}

TEST_F(MatlabHdf5Test, DamageIsRefused) {
  EXPECT_SAYS(error({.attribute = false}), "a.h5: group /K", "MATLAB_sparse", "number of rows");
  EXPECT_SAYS(error({.ir = {1, 0, 3}}), "dataset /K/ir: entry 2 is the row 3", "[0, 3)");
  EXPECT_SAYS(error({.ir = {1, 0, -1}}), "dataset /K/ir", "-1");
  EXPECT_SAYS(error({.jc = {0, 2, 1, 3}}), "dataset /K/jc", "must ascend");
  EXPECT_SAYS(error({.jc = {0, 1, 2}}), "dataset /K/jc", "3 entries");
  EXPECT_SAYS(error({.values = {1}}), "ir has 3 entries and data has 1");
  EXPECT_SAYS(error({.rows = -1}), "-1 × 2");
  const Path huge = write_group({.rows = std::int64_t{1} << 60});
  EXPECT_SAYS(error_of([&] { read_matrix(huge); }), "a.h5", "ask for");
}

}  // namespace
}  // namespace shardmat
