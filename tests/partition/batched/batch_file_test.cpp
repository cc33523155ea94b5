#include "partition/batched/batch_file.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include "partition/hdf5/writer.h"
#include "tests/partition/batched/test_batches.h"

// HDF5 1.10 leaks 312 bytes each time it meets a damaged object header.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace shardmat {
namespace {

using test::error_of;
using test::Path;

class BatchFileTest : public test::FilesTest {
 protected:
  Path file() const { return path("batch.h5"); }
  void save(const HostBatch& batch, const BatchWriteOptions& options = {}) const {
    write_batch_file(file(), *test::memory(batch), options);
  }
  /// Replaces entry `at` of a dataset of the file.
  template <class T>
  void set(const char* dataset, hid_t type, std::size_t at, T value) const {
    const hid_t open = H5Fopen(file().c_str(), H5F_ACC_RDWR, H5P_DEFAULT), data = H5Dopen2(open, dataset, H5P_DEFAULT);
    const hid_t space = H5Dget_space(data);
    std::vector<T> all(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data());
    all.at(at) = value;
    H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data());
    H5Sclose(space);
    H5Dclose(data);
    H5Fclose(open);
  }
  void remove(const char* dataset) const {
    const hid_t open = H5Fopen(file().c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    H5Ldelete(open, dataset, H5P_DEFAULT);
    H5Fclose(open);
  }
  std::string damaged(const char* dataset, std::size_t at, std::int64_t value) const {
    save(test::example_batch());
    set(dataset, H5T_NATIVE_INT64, at, value);
    return error_of([&] {
      const auto batch = BatchFile::open(file());
      batch->read(0, batch->count());
    });
  }
};

TEST_F(BatchFileTest, RoundTrips) {
  save(test::example_batch(), {.how = "by hand", .f32 = false, .progress = {}});
  const auto batch = BatchFile::open(file());
  test::expect_same(batch->read(0, 3), test::example_batch());
  test::expect_consistent(*batch);
  EXPECT_EQ(batch->name(), file().string());
  EXPECT_EQ(batch->source(), "test");
  EXPECT_EQ(batch->how(), "by hand");
  EXPECT_FALSE(batch->f32());
  EXPECT_EQ(files(), 1U);
  write_batch_file(file(), *test::memory(test::example_batch(), "a\xff"));
  EXPECT_EQ(BatchFile::open(file())->source(), "a\uFFFD");
}

TEST_F(BatchFileTest, RoundTripsManyMatrices) {
  const auto source = open_batch("batch:count=3000,dim=0-9,cols=1-7,row_nnz=0-3");
  write_batch_file(file(), *source);
  const auto batch = open_batch(file().string());
  test::expect_same(batch->read(0, 3000), source->read(0, 3000));
  test::expect_consistent(*batch);
}

TEST_F(BatchFileTest, StreamsABatchOfSeveralChunks) {
  const auto source = open_batch("batch:count=40,dim=2000-3000,row_nnz=60-70");
  ASSERT_GT(source->nnz(), kSliceEntries);
  std::int64_t reports = 0, last = 0;
  const auto progress = [&](std::string_view, std::int64_t done, std::int64_t total) {
    ++reports;
    EXPECT_GT(done, last);
    EXPECT_EQ(total, source->nnz());
    last = done;
  };
  write_batch_file(file(), *source, {.how = "", .f32 = false, .progress = progress});
  EXPECT_GT(reports, 1);
  EXPECT_EQ(last, source->nnz());
  test::expect_same(BatchFile::open(file())->read(0, 40), source->read(0, 40));
}

TEST_F(BatchFileTest, StoresF32) {
  save(test::example_batch(), {.how = "", .f32 = true, .progress = {}});
  const auto batch = BatchFile::open(file());
  EXPECT_TRUE(batch->f32());
  EXPECT_EQ(batch->read(0, 3).values, (HostVector<double>{1.5, -2, static_cast<double>(0.1F), 4}));
  HostBatch large = test::example_batch();
  large.values[3] = 1e40;
  EXPECT_SAYS(error_of([&] { save(large, {.how = "", .f32 = true, .progress = {}}); }), "test: matrix 2, entry 0: 1e+40",
              "f32");
}

TEST_F(BatchFileTest, HoldsEmptyBatches) {
  for (const HostBatch& batch : {HostBatch(), HostBatch{{0, 0, 0}, {0, 0, 4}, {0}, {}, {}}}) {
    save(batch);
    test::expect_same(BatchFile::open(file())->read(0, batch.view().count()), batch);
    test::expect_consistent(*BatchFile::open(file()));
  }
}

TEST_F(BatchFileTest, SquareMatricesNeedNoColumns) {
  const HostBatch square{{0, 2, 3}, {0, 2, 3}, {0, 1, 2, 3}, {1, 0, 0}, {1, 2, 3}};
  save(square);
  remove("/first_column");
  test::expect_same(BatchFile::open(file())->read(0, 2), square);
  save(test::example_batch());
  remove("/first_column");
  EXPECT_SAYS(error_of([&] { BatchFile::open(file()); }), "no dataset /first_column", "3 rows and 5 columns");
}

TEST_F(BatchFileTest, LeavesOtherDatasetsAlone) {
  save(test::example_batch());
  const hid_t open = H5Fopen(file().c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hsize_t shape[] = {5, 2};
  const hid_t space = H5Screate_simple(2, shape, nullptr);
  H5Dclose(H5Dcreate2(open, "/x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Fclose(open);
  test::expect_same(BatchFile::open(file())->read(0, 3), test::example_batch());
}

TEST_F(BatchFileTest, RefusesDamage) {
  EXPECT_SAYS(damaged("/first_row", 1, 4), "/first_row", "matrix 1 begins at 4 and ends at 2");
  EXPECT_SAYS(damaged("/first_row", 3, 2), "/first_row", "from 0 to 2 but must run from 0 to 3");
  EXPECT_SAYS(damaged("/first_column", 0, 1), "/first_column", "from 1 to 5");
  EXPECT_SAYS(damaged("/first_column", 2, -1), "/first_column", "matrix 1 begins at 3 and ends at -1");
  EXPECT_SAYS(damaged("/pointers_to_1", 1, 9), "/pointers_to_1", "stacked row 1 begins at 9 and ends at 3");
  EXPECT_SAYS(damaged("/indices_1", 3, 2), "batch.h5: matrix 2, entry 0", "column 2", "[0, 2)");
  EXPECT_SAYS(damaged("/indices_1", 1, -1), "batch.h5: matrix 0, entry 1", "column -1");
  save(test::example_batch());
  set("/values", H5T_NATIVE_DOUBLE, 2, std::numeric_limits<double>::quiet_NaN());
  EXPECT_SAYS(error_of([&] { BatchFile::open(file())->read(0, 3); }), "matrix 0, entry 2", "nan");
  EXPECT_EQ(BatchFile::open(file())->read(1, 3).values, HostVector<double>{4});
}

TEST_F(BatchFileTest, NamesTheMatrixOfTheWholeBatchInARange) {
  save(test::example_batch());
  set("/indices_1", H5T_NATIVE_INT32, 3, 7);
  EXPECT_SAYS(error_of([&] { BatchFile::open(file())->read(1, 3); }), "matrix 2, entry 0", "column 7");
}

TEST_F(BatchFileTest, RefusesMissingParts) {
  for (const char* name : {"/first_row", "/pointers_to_1", "/indices_1", "/values"}) {
    save(test::example_batch());
    remove(name);
    EXPECT_SAYS(error_of([&] { BatchFile::open(file()); }), std::string(name) + " is missing");
  }
  Hdf5Writer(file()).close();
  EXPECT_SAYS(error_of([&] { BatchFile::open(file()); }), "no batch", "shardmat_batch");
  EXPECT_SAYS(error_of([&] { BatchFile::open(path("batc.h5")); }), "no such file", "batch.h5");
  EXPECT_SAYS(error_of([&] { BatchFile::open(write("text.h5", "text")); }), "text.h5", "HDF5");
}

TEST_F(BatchFileTest, RefusesWrongDescriptors) {
  const auto descriptor = [&](const std::string& json) {
    Hdf5Writer made(file());
    made.write_attribute("/", "shardmat_batch", json);
    const double values[2] = {};
    made.create_dataset<double>("/first_row", {2}).write(0, 2, values);
    made.close();
    return error_of([&] { BatchFile::open(file()); });
  };
  EXPECT_SAYS(descriptor("["), "no JSON, or was cut off");
  EXPECT_SAYS(descriptor("[]"), "no JSON object");
  EXPECT_SAYS(descriptor(std::string(100, '[')), "nested more than 64 deep");
  EXPECT_SAYS(descriptor("{}"), "no whole number 'version'");
  EXPECT_SAYS(descriptor(R"({"version": 2})"), "version 2", "reads version 1");
  EXPECT_SAYS(descriptor(R"({"version": 1, "number_of_matrices": -1})"), "'number_of_matrices'");
  const std::string sizes = R"("number_of_rows": 1, "number_of_columns": 1, "number_of_stored_values": 1})";
  EXPECT_SAYS(descriptor(R"({"version": 1, "number_of_matrices": 1, )" + sizes), "/first_row", "whole numbers");
  EXPECT_SAYS(descriptor(R"({"version": 1, "number_of_matrices": 2, )" + sizes), "/first_row", "[2] but must be [3]");
}

TEST_F(BatchFileTest, RefusesTruncation) {
  save(test::example_batch());
  const auto size = std::filesystem::file_size(file());
  for (const auto left : {size / 8, std::uintmax_t{1}}) {
    std::filesystem::resize_file(file(), left);
    EXPECT_SAYS(error_of([&] { BatchFile::open(file()); }), "batch.h5");
  }
}

TEST_F(BatchFileTest, AFullDiskLeavesNothingBehind) {
  const auto source = open_batch("batch:count=1000");
  {
    const test::SmallDisk disk(100000);
    EXPECT_SAYS(error_of([&] { write_batch_file(file(), *source); }, ErrorKind::resources), "batch.h5");
  }
  EXPECT_EQ(files(), 0U);
  EXPECT_SAYS(error_of([&] { write_batch_file(path("none/batch.h5"), *source); }), "none");
}

TEST_F(BatchFileTest, ASourceThatFailsLeavesTheOldFile) {
  class Failing final : public BatchSource {
   public:
    Failing() : BatchSource("failing", {1, 1, 1, 1}) {}
    BatchSizes sizes_of(std::int64_t, std::int64_t) const override { return {{1}, {1}, {1}}; }
    HostBatch read_range(std::int64_t, std::int64_t) const override { throw Error(ErrorKind::input, "failing on purpose"); }
  };
  save(test::example_batch());
  EXPECT_SAYS(error_of([&] { write_batch_file(file(), Failing()); }), "on purpose");
  EXPECT_EQ(files(), 1U);
  test::expect_same(BatchFile::open(file())->read(0, 3), test::example_batch());
}

}  // namespace
}  // namespace shardmat
