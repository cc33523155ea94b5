// What the tests of the shard file share: writing and damaging files in a directory of their own.
#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "partition/hdf5/file.h"
#include "partition/hdf5/writer.h"
#include "partition/shard/shard_file.h"
#include "tests/partition/test_matrices.h"
#include "tests/support/setting_of.h"

#define EXPECT_SAYS(text, word) EXPECT_NE((text).find(word), std::string::npos) << (text)

namespace shardmat::test {

using Path = std::filesystem::path;

/// The message of the Error that f must throw.
template <class F>
std::string input_error(F&& f, ErrorKind kind = ErrorKind::input) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

/// XORs one byte of a dataset, found by HDF5's own word for where it lies.
inline void flip_byte(const Path& path, const char* dataset, std::int64_t byte, unsigned char mask = 0x01) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t id = H5Dopen2(file, dataset, H5P_DEFAULT);
  const haddr_t offset = H5Dget_offset(id);
  H5Dclose(id);
  H5Fclose(file);
  ASSERT_NE(offset, HADDR_UNDEF);
  std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekg(static_cast<std::streamoff>(offset) + byte);
  const char old = static_cast<char>(bytes.get());
  bytes.seekp(static_cast<std::streamoff>(offset) + byte);
  bytes.put(static_cast<char>(old ^ mask));
}

/// Changes an attribute or removes a link, as another program might.
template <class F>
void edit(const Path& path, F&& f) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  f(file);
  H5Fclose(file);
}

inline void set_attribute(const Path& path, const std::string& object, const std::string& name, std::int64_t value) {
  edit(path, [&](hid_t file) {
    EXPECT_GE(H5Adelete_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT), 0);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t a = H5Acreate_by_name(file, object.c_str(), name.c_str(), H5T_NATIVE_INT64, space, H5P_DEFAULT, H5P_DEFAULT,
                                      H5P_DEFAULT);
    EXPECT_GE(H5Awrite(a, H5T_NATIVE_INT64, &value), 0);
    H5Aclose(a), H5Sclose(space);
  });
}

class ShardFileTest : public testing::Test {
 protected:
  Path path(const std::string& name = "a.h5") const { return directory_ / name; }

  std::vector<StoredPartition> write(const HostCsr& m, WriteOptions options = {}, const std::string& name = "a.h5") {
    options.how = "a test";
    return write_shard_file(path(name), *source_of(m, "bar.mtx"), options);
  }

  /// A plain Binsparse file as another program would write it.
  template <class Index, class Value>
  void write_plain(const HostCsr& m, const nlohmann::json& descriptor) {
    Hdf5Writer file(path());
    file.write_attribute("/", "binsparse", nlohmann::json{{"binsparse", descriptor}}.dump());
    const std::vector<Index> pointers(m.row_ptr.begin(), m.row_ptr.end()), columns(m.col_idx.begin(), m.col_idx.end());
    const std::vector<Value> values(m.values.begin(), m.values.end());
    file.create_dataset<Index>("/pointers_to_1", {m.rows + 1}).write(0, m.rows + 1, pointers.data());
    file.create_dataset<Index>("/indices_1", {m.nnz()}).write(0, m.nnz(), columns.data());
    file.create_dataset<Value>("/values", {m.nnz()}).write(0, m.nnz(), values.data());
    file.close();
  }

  static nlohmann::json plain_descriptor(const HostCsr& m) {
    return {{"version", "0.1"},
            {"format", "CSR"},
            {"shape", {m.rows, m.cols}},
            {"number_of_stored_values", m.nnz()},
            {"data_types", {{"pointers_to_1", "int64"}, {"indices_1", "int64"}, {"values", "float64"}}}};
  }

  test::TemporaryDirectory directory_;
};

}  // namespace shardmat::test
