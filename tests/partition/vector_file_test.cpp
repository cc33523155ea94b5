#include "partition/vectors/vector_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "partition/hdf5/writer.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::error_of;
using test::Path;

class VectorFileTest : public test::FilesTest {
 protected:
  static HostVector<double> all(const Path& path) {
    const VectorFile file(path, "x");
    return file.read(0, file.size());
  }
  static void save(const Path& path, const HostVector<double>& values, bool f32 = false) {
    VectorWriter writer(path, "x", static_cast<std::int64_t>(values.size()), f32);
    const auto half = static_cast<std::int64_t>(values.size()) / 2;
    writer.append(values.data(), half);
    writer.append(values.data() + half, static_cast<std::int64_t>(values.size()) - half);
    writer.finish();
  }
  static Path npy(const std::string& name) { return Path(SHARDMAT_TEST_DATA) / "npy" / (name + ".npy"); }
};

const HostVector<double> kValues{1.5, -2, 0.1, 1e300, 5e-324, -0.0, 3};

TEST_F(VectorFileTest, RoundTripsBitForBit) {
  for (const char* name : {"x.h5", "x.hdf5", "x.npy", "x.mtx", "x.petsc", "x.txt", "y.h5:/a/b/c", "z.h5:w"}) {
    SCOPED_TRACE(name);
    save(path(name), kValues);
    EXPECT_EQ(all(path(name)), kValues);
    const VectorFile file(path(name), "/x");
    EXPECT_EQ(file.size(), 7);
    EXPECT_EQ(file.read(2, 5), (HostVector<double>{0.1, 1e300, 5e-324}));
    EXPECT_TRUE(file.read(7, 7).empty());
  }
}

TEST_F(VectorFileTest, TakesTheColumnsThatTheFileHas) {
  for (const char* name : {"x.h5", "x.npy", "x.mtx", "x.petsc", "x.txt", "x.mat"})
    for (const std::int64_t columns : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} {}", name, columns));
      const HostVector<double> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
      VectorWriter writer(path(name), "x", 12 / columns, false, columns);
      writer.append(values.data(), 12 / columns);
      writer.finish();
      const VectorFile file(path(name), "x", VectorFile::kAsStored);
      EXPECT_EQ(file.columns(), columns);
      EXPECT_EQ(file.size(), 12 / columns);
      EXPECT_EQ(file.read(0, file.size()), values);
    }
}

TEST_F(VectorFileTest, StoresF32WhereTheFormatHasTypes) {
  const HostVector<double> values{1.5, 0.1, -3};
  for (const char* name : {"x.h5", "x.npy"}) {
    save(path(name), values, true);
    EXPECT_EQ(all(path(name)), (HostVector<double>{1.5, static_cast<double>(0.1F), -3})) << name;
  }
  save(path("x.mtx"), values, true);
  EXPECT_EQ(all(path("x.mtx")), values);
}

TEST_F(VectorFileTest, EmptyAndLongVectors) {
  HostVector<double> longer(300000);
  for (std::size_t i = 0; i < longer.size(); ++i) longer[i] = std::sin(static_cast<double>(i));
  for (const char* name : {"x.h5", "x.npy", "x.mtx"}) {
    save(path(name), {});
    EXPECT_TRUE(all(path(name)).empty()) << name;
    save(path(name), longer);
    EXPECT_EQ(all(path(name)), longer) << name;
    save(path(name), longer, true);
  }
}

TEST_F(VectorFileTest, ReadsWhatNumPyWrites) {
  for (const char* name : {"f8", "f4", "column", "column_fortran", "version2"})
    EXPECT_EQ(all(npy(name)), (HostVector<double>{1.5, -2, 0.25})) << name;
  EXPECT_SAYS(error_of([&] { all(npy("row")); }), "row.npy", "(1, 3)", "n × 1");
  EXPECT_EQ(all(npy("big_endian")), all(npy("f8")));
  EXPECT_EQ(all(npy("integers")), (HostVector<double>{0, 1, 2}));
}

TEST_F(VectorFileTest, WritesWhatNumPyWrites) {
  save(path("x.npy"), {1.5, -2, 0.25});
  const std::string ours = test::bytes_of(path("x.npy")), numpys = test::bytes_of(npy("f8"));
  EXPECT_EQ(ours.substr(ours.size() - 24), numpys.substr(numpys.size() - 24));
  EXPECT_EQ((ours.size() - 24) % 64, 0U);
}

TEST_F(VectorFileTest, RefusesDamagedNpy) {
  const std::string good = test::bytes_of(npy("f8"));
  EXPECT_SAYS(error_of([&] { all(write("x.npy", good.substr(0, good.size() - 1))); }), "x.npy", "24 bytes", "has 23");
  EXPECT_SAYS(error_of([&] { all(write("x.npy", good + "z")); }), "x.npy", "has 25");
  EXPECT_SAYS(error_of([&] { all(write("x.npy", good.substr(0, 50))); }), "x.npy", "truncated");
  EXPECT_SAYS(error_of([&] { all(write("x.npy", "")); }), "x.npy", "truncated");
  EXPECT_SAYS(error_of([&] { all(write("x.npy", "garbage that is longer than a header")); }), "x.npy", "numpy.save");
}

TEST_F(VectorFileTest, NpyThatIsTruncatedWhileItIsReadIsRefusedByName) {
  save(path("x.npy"), HostVector<double>(100000, 1));
  const VectorFile file(path("x.npy"), "x");
  std::filesystem::resize_file(path("x.npy"), 4096);
  EXPECT_SAYS(error_of([&] { file.read(0, file.size()); }), path("x.npy").string(), "changed while it was read");
}

TEST_F(VectorFileTest, ReadsArrays) {
  const std::string banner = "%%MatrixMarket matrix array real general\n";
  EXPECT_EQ(all(write("x.mtx", banner + "% c\n3 1\n1.5\r\n\n%\n -2\n1e-2")), (HostVector<double>{1.5, -2, 0.01}));
  EXPECT_EQ(all(write("x.mtx", "%%MatrixMarket matrix array integer general\n2 1\n1\n-2\n")), (HostVector<double>{1, -2}));
  EXPECT_SAYS(error_of([&] { all(write("x.mtx", banner + "3 1\n1\n2\n")); }),
              "x.mtx:2: ", "promises 3 entries, the file has 2");
  EXPECT_SAYS(error_of([&] { all(write("x.mtx", banner + "1 1\n1\n2\n")); }), "x.mtx:4: ", "more than the promised 1");
  EXPECT_SAYS(error_of([&] { all(write("x.mtx", banner + "2 1\n1\n2 3\n")); }), "x.mtx:4: ", "\"3\" follows");
  EXPECT_SAYS(error_of([&] { all(write("x.mtx", banner + "2 1\n1\nx\n")); }), "x.mtx:4: ", "\"x\" is no number");
  EXPECT_SAYS(error_of([&] { all(write("x.mtx", banner + "1 2\n1\n2\n")); }), "x.mtx:2: ", "1 × 2", "one column");
  EXPECT_SAYS(error_of([&] { all(write("x.mtx", banner + "4000000000 4000000000\n")); }),
              "x.mtx:2: ", "9223372036854775807");
  EXPECT_SAYS(error_of([&] { all(write("x.mtx", banner + "4000000000 1\n1\n")); }),
              "x.mtx:2: ", "promises 4000000000 entries, the file has 1");
  EXPECT_SAYS(error_of([&] { all(write("x.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n")); }),
              "x.mtx:1: ", "format array");
}

TEST_F(VectorFileTest, RefusesWrongDatasets) {
  {
    Hdf5Writer file(path("x.h5"));
    const std::int64_t integers[3] = {1, 2, 3};
    const double values[6] = {};
    file.create_dataset<std::int64_t>("/integers", {3}).write(0, 3, integers);
    file.create_dataset<double>("/matrix", {3, 2}).write(0, 3, values);
    file.create_dataset<double>("/column", {3, 1}).write(0, 3, values);
    file.create_group("/group");
    file.close();
  }
  const auto dataset = [&](const std::string& name) { return path("x.h5:" + name); };
  EXPECT_EQ(VectorFile(dataset("/column"), "x").size(), 3);
  EXPECT_SAYS(error_of([&] { all(path("x.h5")); }), "x.h5", "no dataset /x", "/column");
  EXPECT_SAYS(error_of([&] { all(dataset("/colum")); }), "no dataset /colum", "did you mean /column?");
  EXPECT_SAYS(error_of([&] { all(dataset("/none/there")); }), "no dataset /none/there");
  EXPECT_EQ(VectorFile(dataset("/integers"), "x").size(), 3);
  EXPECT_SAYS(error_of([&] { all(dataset("/matrix")); }), "x.h5:/matrix", "(3, 2)", "n × 1");
  EXPECT_SAYS(error_of([&] { all(dataset("/group")); }), "x.h5", "/group");
  EXPECT_SAYS(error_of([&] { all(dataset("/")); }), "x.h5:/", "dataset is missing");
}

TEST_F(VectorFileTest, RefusesDamagedHdf5) {
  save(path("x.h5"), HostVector<double>(1000, 1.0));
  const std::string good = test::bytes_of(path("x.h5"));
  EXPECT_SAYS(error_of([&] { all(write("y.h5", good.substr(0, good.size() / 2))); }), "y.h5");
  EXPECT_SAYS(error_of([&] { all(write("y.h5", "garbage")); }), "y.h5");
  EXPECT_SAYS(error_of([&] { all(write("y.h5", "")); }), "y.h5");
  EXPECT_SAYS(error_of([&] { all(path("none.h5")); }), "none.h5", "no such file");
  EXPECT_SAYS(error_of([&] { all(path("none.npy")); }), "none.npy", "no such file");
  EXPECT_SAYS(error_of([&] { all(path("none.mtx")); }), "none.mtx", "no such file");
}

TEST_F(VectorFileTest, SuffixIsCheckedBeforeWork) {
  for (const char* name : {"y.h5", "y.hdf5", "y.npy", "y.mtx", "y.h5:/a"}) EXPECT_NO_THROW(check_vector_suffix(name));
  EXPECT_SAYS(error_of([] { check_vector_suffix("y.npz"); }, ErrorKind::usage), "y.npz", ".npy", "did you mean .npy?");
  EXPECT_SAYS(error_of([] { check_vector_suffix("y"); }, ErrorKind::usage), ".h5, .hdf5, .npy, .mtx, .petsc");
  EXPECT_SAYS(error_of([] { check_vector_suffix("y.h5:"); }, ErrorKind::usage), "y.h5:", "missing");
  EXPECT_SAYS(error_of([&] { all(write("x.dat", "1\n")); }), "x.dat", ".h5, .hdf5, .npy, .mtx, .petsc");
}

TEST_F(VectorFileTest, UnfinishedWriterLeavesNothing) {
  for (const char* name : {"y.h5", "y.npy", "y.mtx"}) {
    {
      VectorWriter writer(path(name), "y", 10, false);
      writer.append(kValues.data(), 3);
      EXPECT_SAYS(error_of([&] { writer.finish(); }, ErrorKind::internal), "3 of 10");
      EXPECT_SAYS(error_of([&] { writer.append(kValues.data(), 8); }, ErrorKind::internal), "more than 10");
    }
    EXPECT_EQ(files(), 0U) << name;
  }
  EXPECT_SAYS(error_of([&] { VectorWriter(path("none/y.h5"), "y", 1, false); }), "none", "create it first");
}

TEST_F(VectorFileTest, UnfinishedWriterKeepsTheOldFile) {
  save(path("y.npy"), {1, 2});
  { VectorWriter writer(path("y.npy"), "y", 10, false); }
  EXPECT_EQ(all(path("y.npy")), (HostVector<double>{1, 2}));
}

TEST_F(VectorFileTest, FullDiskIsAnErrorAndLeavesNothing) {
  const HostVector<double> values(1 << 19, 1.25);
  for (const char* name : {"y.h5", "y.npy", "y.mtx"}) {
    SCOPED_TRACE(name);
    const test::SmallDisk disk(1 << 20);
    EXPECT_SAYS(error_of([&] { save(path(name), values); }, ErrorKind::resources), name);
    EXPECT_EQ(files(), 0U);
  }
}

}  // namespace
}  // namespace shardmat
