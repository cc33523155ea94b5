// Mutations of HDF5 files. Those of ours are read in this process, their own description changed with and without its
// checksum; those of other programs go through the helper program.
#include <hdf5.h>

#include <cstring>

#include "partition/batched/batch_file.h"
#include "partition/files/checksum.h"
#include "partition/generators/mesh.h"
#include "partition/hdf5/own_description.h"
#include "partition/hdf5/writer.h"
#include "partition/readers/reader.h"
#include "partition/shard/shard_file.h"
#include "partition/vectors/vector_file.h"
#include "tests/partition/test_matrices.h"
#include "tests/support/mutations.h"

namespace shardmat {
namespace {

using test::Path;

void read_all(const ShardFile& file) {
  validate(file.read_rows(0, file.rows()).view());
  if (file.permuted()) file.permutation(0, file.rows());
  file.unknowns();
}

class Hdf5FuzzTest : public test::MutationTest {
 protected:
  std::string shard_file() {
    WriteOptions options;
    options.parts = {2, 3};
    options.order = RowOrder::by_length;
    const auto matrix = std::make_shared<const HostCsr>(test::random_matrix(12, 12, 4, 1));
    const auto unknowns = std::make_shared<const UnknownList>(12, NodeUnknown{3, 1});
    write_shard_file(path("seed.h5"), *make_memory_source(matrix, "seed", unknowns), options);
    return test::bytes_of(path("seed.h5"));
  }

  /// A Binsparse file and vectors as h5py writes them: the descriptor of variable length, numbers in chunks.
  std::string foreign_file() {
    const hid_t file = H5Fcreate(path("seed.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t type = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t attribute = H5Acreate2(file, "binsparse", type, scalar, H5P_DEFAULT, H5P_DEFAULT);
    const char* text = R"({"binsparse": {"version": "0.1", "format": "CSR", "shape": [4, 4], "number_of_stored_values": 4,)"
                       R"( "data_types": {"pointers_to_1": "int64", "indices_1": "int64", "values": "float64"}}})";
    H5Awrite(attribute, type, &text);
    H5Aclose(attribute), H5Sclose(scalar), H5Tclose(type);
    const std::int64_t numbers[] = {0, 1, 2, 3, 4};
    const auto put = [&](const char* name, hsize_t count, hid_t stored, bool packed) {
      const hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &count, nullptr);
      const hsize_t chunk = 3;
      if (packed) H5Pset_chunk(list, 1, &chunk), H5Pset_shuffle(list), H5Pset_deflate(list, 6), H5Pset_fletcher32(list);
      const hid_t set = H5Dcreate2(file, name, stored, space, H5P_DEFAULT, list, H5P_DEFAULT);
      H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
      H5Dclose(set), H5Sclose(space), H5Pclose(list);
    };
    put("pointers_to_1", 5, H5T_STD_I64LE, false);
    put("indices_1", 4, H5T_STD_I32BE, true);
    put("values", 4, H5T_IEEE_F64LE, true);
    put("x", 4, H5T_IEEE_F32LE, true);
    H5Fclose(file);
    return test::bytes_of(path("seed.h5"));
  }
};

/// The HDF5 part and the end of the file as they come; most mutations leave the description valid.
TEST_F(Hdf5FuzzTest, OwnFiles) {
  std::string seed = shard_file();
  const auto read = [](const Path& file) { read_all(*ShardFile::open(file)); };
  const std::string end = seed.substr(seed.size() - 48);
  // Mutations before the last bytes, so that the helper program is not asked.
  mutate(
      "f.h5", {seed.substr(0, seed.size() - 48)}, read, [&](std::string bytes) { return bytes + end; }, 300);
}

/// Descriptions with a right checksum, whatever they say.
TEST_F(Hdf5FuzzTest, OwnDescriptions) {
  const std::string seed = shard_file();
  std::int64_t file_bytes = 0;
  std::memcpy(&file_bytes, seed.data() + seed.size() - 48, sizeof file_bytes);
  const auto split = static_cast<std::size_t>(file_bytes);
  mutate(
      "f.h5", {seed.substr(split, seed.size() - 48 - split)}, [](const Path& file) { read_all(*ShardFile::open(file)); },
      [&](const std::string& text) {
        std::string end = seed.substr(seed.size() - 48);
        const auto size = static_cast<std::int64_t>(text.size());
        const std::uint64_t checksum = xxh64(text.data(), text.size());
        std::memcpy(end.data() + 8, &size, sizeof size);
        std::memcpy(end.data() + 16, &checksum, sizeof checksum);
        return seed.substr(0, split) + text + end;
      });
}

TEST_F(Hdf5FuzzTest, ForeignMatrices) {
  mutate(
      "f.h5", {foreign_file()}, [](const Path& file) { read_all(*ShardFile::open(file)); }, {}, 150);
}

TEST_F(Hdf5FuzzTest, FilesOfRanks) {
  const auto write_rank = [&](const std::string& name) {
    const std::vector<std::int64_t> pointers{0, 2, 3}, columns{3, 0, 1};
    const std::vector<double> values{1, 2, 3};
    Hdf5Writer out(path(name));
    out.create_dataset<std::int64_t>("/row_ptr", {3}).write(0, 3, pointers.data());
    out.create_dataset<std::int64_t>("/columns", {3}).write(0, 3, columns.data());
    out.create_dataset<double>("/values", {3}).write(0, 3, values.data());
    out.close();
    return path(name);
  };
  write_rank("f.0.h5");
  const std::string seed = test::bytes_of(write_rank("seed.h5")), end = seed.substr(seed.size() - 48);
  mutate(
      "f.1.h5", {seed.substr(0, seed.size() - 48)},
      [&](const Path& file) {
        ReadOptions options;
        options.choices.sum_duplicates = true;
        validate(read_matrix(file.parent_path() / "f.%d.h5", options).view());
      },
      [&](std::string bytes) { return bytes + end; }, 60);
}

TEST_F(Hdf5FuzzTest, SparseMatricesOfOtherPrograms) {
  const auto put = [](Hdf5Writer& out, const std::string& name, const std::vector<std::int64_t>& numbers) {
    out.create_dataset<std::int64_t>(name, {std::ssize(numbers)}).write(0, std::ssize(numbers), numbers.data());
  };
  {
    const std::vector<double> values{1.5, -2, 3, 0.25};
    Hdf5Writer out(path("seed.h5"));
    for (const char* group : {"/d", "/c", "/X"}) out.create_group(group);
    const std::string head = R"({"binsparse": {"version": "0.1", "shape": [5, 5], "number_of_stored_values": 4, )";
    out.write_attribute("/d", "binsparse", head + R"("format": "DCSR", "structure": "symmetric_lower"}})");
    put(out, "/d/indices_0", {1, 4}), put(out, "/d/pointers_to_1", {0, 2, 4}), put(out, "/d/indices_1", {0, 1, 2, 4});
    out.write_attribute("/c", "binsparse", head + R"("format": "COOC", "data_types": {"values": "iso[float64]"}}})");
    put(out, "/c/indices_0", {0, 1, 1, 3}), put(out, "/c/indices_1", {4, 0, 2, 3});
    out.write_attribute("/X", "encoding-type", std::string("csc_matrix"));
    put(out, "/X/indptr", {0, 1, 3, 4}), put(out, "/X/indices", {1, 0, 1, 0}), put(out, "/X/shape", {2, 3});
    out.create_dataset<double>("/d/values", {4}).write(0, 4, values.data());
    out.create_dataset<double>("/c/values", {1}).write(0, 1, values.data());
    out.create_dataset<double>("/X/data", {4}).write(0, 4, values.data());
    out.close();
  }
  const std::string seed = test::bytes_of(path("seed.h5")), end = seed.substr(seed.size() - 48);
  EXPECT_EQ(read_matrix(path("seed.h5").string() + ":d").nnz(), 6);
  for (const char* object : {":d", ":c", ":X"})
    mutate(
        "f.h5", {seed.substr(0, seed.size() - 48)},
        [&](const Path& file) {
          list_objects(file);
          validate(read_matrix(file.string() + object).view());
        },
        [&](std::string bytes) { return bytes + end; }, 60);
}

TEST_F(Hdf5FuzzTest, MatlabMatrices) {
  const Path seed = Path(SHARDMAT_TEST_DATA) / "mat" / "v73.mat";
  const auto read = [](const Path& file) {
    list_objects(file);
    validate(read_matrix(file.string() + ":K").view());
  };
  mutate("f.mat", {test::bytes_of(seed)}, read, {}, 100);
  mutate("f.mat", {test::bytes_of(seed.parent_path() / "octave.h5")}, read, {}, 50);
}

TEST_F(Hdf5FuzzTest, ForeignVectors) {
  const auto read = [](const Path& file) {
    const VectorFile vector(file, "x");
    if (vector.size() < 100000) vector.read(0, vector.size());
  };
  mutate("f.h5", {foreign_file()}, read, {}, 150);
}

}  // namespace
}  // namespace shardmat
