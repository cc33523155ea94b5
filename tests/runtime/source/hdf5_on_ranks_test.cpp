// Ranks that read an HDF5 file of another program: one asks the helper program, the others are told.
#include "runtime/source/hdf5_on_ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kernels/base/error.h"
#include "partition/shard/shard_file.h"
#include "runtime/source/matrix_source.h"
#include "tests/partition/test_matrices.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

class Hdf5OnRanks : public testing::Test {
 protected:
  Hdf5OnRanks() {
    if (world().rank() == 0) directory_ = std::make_unique<test::TemporaryDirectory>();
    path_ = world().broadcast(world().rank() == 0 ? (*directory_ / "a.h5").string() : std::string());
    if (world().rank() != 0) ::setenv("SHARDMAT_H5CHECK", "/nonexistent/h5check", 1);
  }
  ~Hdf5OnRanks() override {
    ::unsetenv("SHARDMAT_H5CHECK");
    world().barrier();
  }

  /// A shard file without the description at its end, as if another program had written it.
  void write_foreign(const HostCsr& matrix) {
    world().run_agreed([&] {
      if (world().rank() != 0) return;
      write_shard_file(path_, *test::source_of(matrix), {});
      std::ofstream(path_, std::ios::app) << ' ';
    });
  }

  std::string open_error() {
    try {
      open_matrix(path_, world());
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      return e.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }

  std::unique_ptr<test::TemporaryDirectory> directory_;
  std::string path_;
};

TEST_F(Hdf5OnRanks, OneAsksTheHelperAndEachReadsItsRows) {
  const HostCsr m = test::random_matrix(3000, 3000, 30, 11);
  write_foreign(m);
  const MatrixSource source = open_matrix(path_, world());
  const std::int64_t begin = 3000 * world().rank() / world().size(), end = 3000 * (world().rank() + 1) / world().size();
  EXPECT_TRUE(test::same(source.rows->read_rows(begin, end), test::source_of(m)->read_rows(begin, end)));
}

TEST_F(Hdf5OnRanks, BadFilesAreErrorsOfAllRanks) {
  EXPECT_NE(open_error().find("no such file"), std::string::npos);
  world().barrier();
  if (world().rank() == 0) std::ofstream(path_) << "no HDF5 file at all";
  world().barrier();
  EXPECT_NE(open_error().find("HDF5"), std::string::npos);
}

/// One rank sees another file of this name, as on hosts with disks of their own.
TEST_F(Hdf5OnRanks, DifferentFilesOfOneNameAreRefused) {
  if (world().size() == 1) return;
  write_foreign(test::random_matrix(10, 10, 3, 1));
  if (world().rank() == world().size() - 1) {
    const std::string mine = path_ + ".mine";
    std::filesystem::copy_file(path_, mine);
    std::ofstream(mine, std::ios::app) << "longer";
    path_ = mine;
  }
  EXPECT_NE(open_error().find("different files of this name"), std::string::npos);
  if (world().rank() == world().size() - 1) std::filesystem::remove(path_);
}

}  // namespace
}  // namespace shardmat
