#include "partition/hdf5/file.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <fstream>
#include <numeric>

#include "kernels/base/error.h"
#include "partition/hdf5/own_description.h"
#include "partition/hdf5/writer.h"
#include "tests/partition/file_size_limit.h"
#include "tests/partition/test_matrices.h"

namespace shardmat {
namespace {

class Hdf5Test : public testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "a.h5";
};

TEST_F(Hdf5Test, DatasetsAndAttributes) {
  {
    Hdf5Writer file(path_);
    file.create_group("/g");
    const std::vector<double> values{1, 2, 3, 4, 5, 6};
    file.create_dataset<double>("/g/table", {3, 2}).write(0, 3, values.data());
    file.create_dataset<std::int32_t>("/empty", {0});
    file.write_attribute("/g", "text", std::string("häuser"));
    file.write_attribute("/g/table", "number", std::int64_t{-7});
    file.write_attribute("/", "real", 2.5);
    file.close();
  }
  const Hdf5File file = Hdf5File::open(path_);
  EXPECT_TRUE(file.has("/g/table"));
  EXPECT_FALSE(file.has("/none/table"));
  EXPECT_EQ(file.children("/"), (std::vector<std::string>{"empty", "g"}));
  const Hdf5Dataset table = file.dataset("/g/table");
  EXPECT_EQ(table.shape(), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(table.type(), Hdf5Type::f64);
  std::vector<double> two(4);
  table.read(1, 2, two.data());
  EXPECT_EQ(two, (std::vector<double>{3, 4, 5, 6}));
  std::vector<float> converted(2);
  table.read(0, 1, converted.data());
  EXPECT_EQ(converted, (std::vector<float>{1, 2}));
  EXPECT_EQ(file.dataset("/empty").size(), 0);
  EXPECT_EQ(file.string_attribute("/g", "text"), "häuser");
  EXPECT_EQ(file.attribute<std::int64_t>("/g/table", "number"), -7);
  EXPECT_EQ(file.attribute<double>("/", "real"), 2.5);
  EXPECT_TRUE(file.has_attribute("/g", "text"));
  EXPECT_FALSE(file.has_attribute("/g", "none"));
}

TEST_F(Hdf5Test, ErrorsNameFileAndObject) {
  Hdf5Writer(path_).close();
  const Hdf5File file = Hdf5File::open(path_);
  const auto message = [](auto&& f) {
    try {
      f();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message([&] { file.dataset("/x"); }), path_.string() + ": dataset /x is missing");
  EXPECT_NE(message([&] { file.string_attribute("/", "a"); }).find(path_.string() + ": attribute a of /"),
            std::string::npos);
  EXPECT_NE(message([&] { Hdf5Writer(directory_ / "no" / "a.h5"); }).find("No such file"), std::string::npos);
}

/// The disk may run full at any write; whichever it is, the error says so, and files can be written
/// afterwards.
TEST_F(Hdf5Test, DiskRunningFullAnywhere) {
  std::vector<std::int64_t> numbers(5000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto write = [&] {
    Hdf5Writer file(path_);
    for (int i = 0; i < 10; ++i) {
      const std::string group = "/g" + std::to_string(i);
      file.create_group(group);
      file.write_attribute(group, "name", std::string(300, 'x'));
      file.create_dataset<std::int64_t>(group + "/numbers", {5000}).write(0, 5000, numbers.data());
    }
    file.close();
  };
  write();
  const std::uintmax_t size = std::filesystem::file_size(path_);
  for (std::uintmax_t limit = 1; limit < size; limit += size / 60) {
    const test::FileSizeLimit full(limit);
    try {
      write();
      FAIL() << limit;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::resources);
      EXPECT_NE(std::string(e.what()).find("File too large"), std::string::npos) << e.what();
    }
  }
  write();
  EXPECT_EQ(std::filesystem::file_size(path_), size);
  Hdf5File::open(path_).dataset("/g9/numbers").read(0, 5000, numbers.data());
}

TEST_F(Hdf5Test, ReservedRoomIsGivenBack) {
  const AtomicFile file(path_);
  Hdf5Writer(file, 10 << 20).close();
  EXPECT_LT(std::filesystem::file_size(file.temporary()), 10000u);
  const test::FileSizeLimit full(1 << 20);
  EXPECT_THROW(Hdf5Writer(file, 10 << 20), Error);
}

/// The description at the end is what the HDF5 library finds, is used in place of it, and goes when the file is changed.
TEST_F(Hdf5Test, FilesEndWithTheirDescription) {
  const std::vector<double> values{1, 2, 3};
  {
    Hdf5Writer file(path_);
    file.create_group("/g");
    file.create_dataset<double>("/g/x", {3}).write(0, 3, values.data());
    file.create_dataset<std::int32_t>("/empty", {0, 4});
    file.write_attribute("/g", "text", std::string("t"));
    file.write_attribute("/g/x", "most", std::uint64_t{18446744073709551615u});
    file.write_attribute("/", "third", 1.0 / 3);
    file.close();
  }
  EXPECT_TRUE(own_description(InputFile(path_)).has_value());
  Hdf5File::open(path_).verify_description();
  std::string bytes(std::filesystem::file_size(path_), '\0');
  std::ifstream(path_, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  for (std::size_t i = bytes.size() - 300; i < bytes.size(); ++i) {  // a damaged one is none
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    std::ofstream(path_, std::ios::binary) << damaged;
    EXPECT_FALSE(own_description(InputFile(path_)).has_value()) << i;
  }
  std::ofstream(path_, std::ios::binary) << bytes << "more";
  EXPECT_FALSE(own_description(InputFile(path_)).has_value());
  std::ofstream(path_, std::ios::binary) << bytes;
  H5Fclose(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
  EXPECT_FALSE(own_description(InputFile(path_)).has_value());
  const Hdf5File file = Hdf5File::open(path_, {"/g"});  // by the helper
  EXPECT_EQ(file.attribute<std::uint64_t>("/g/x", "most"), 18446744073709551615u);
  std::vector<double> again(3);
  file.dataset("/g/x").read(0, 3, again.data());
  EXPECT_EQ(again, values);
}

}  // namespace
}  // namespace shardmat
