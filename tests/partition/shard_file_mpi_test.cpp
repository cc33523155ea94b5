// Ranks reading one shard file together, each its own rows, by both kinds of access.
#include <gtest/gtest.h>
#include <mpi.h>

#include <fstream>

#include "kernels/base/error.h"
#include "partition/shard_file.h"
#include "tests/partition/test_matrices.h"

// Open MPI leaks at exit by design, from plugins that are unloaded by then and cannot be named to the
// sanitizer.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace shardmat {
namespace {

using Access = ShardFile::Access;

class ShardFileOnRanks : public testing::TestWithParam<Access> {
 protected:
  ShardFileOnRanks() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    if (rank_ == 0) directory_ = std::make_unique<test::TemporaryDirectory>();
    std::string name(1000, '\0');
    if (rank_ == 0) name.replace(0, (*directory_ / "a.h5").string().size(), (*directory_ / "a.h5").string());
    MPI_Bcast(name.data(), 1000, MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = name.c_str();
  }
  ~ShardFileOnRanks() override { MPI_Barrier(MPI_COMM_WORLD); }

  void SetUp() override {
    if (GetParam() == Access::parallel && !ShardFile::parallel_available()) GTEST_SKIP() << "this HDF5 library is serial";
  }

  void write(const HostCsr& matrix, bool sort_global) {
    if (rank_ == 0) {
      WriteOptions options;
      options.parts = {size_};
      options.order = sort_global ? RowOrder::by_length : RowOrder::as_source;
      write_shard_file(path_, *test::source_of(matrix), options);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }

  std::string open_error() {
    try {
      ShardFile::open(path_, MPI_COMM_WORLD, GetParam());
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      return e.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }

  int rank_ = 0, size_ = 1;
  std::unique_ptr<test::TemporaryDirectory> directory_;
  std::filesystem::path path_;
};

TEST_P(ShardFileOnRanks, EachReadsItsOwnRows) {
  const HostCsr m = test::random_matrix(3000, 3000, 30, 11);
  write(m, false);
  const auto file = ShardFile::open(path_, MPI_COMM_WORLD, GetParam());
  const auto& starts = file->partitions().at(0).partition.row_starts;
  const std::int64_t begin = starts[static_cast<std::size_t>(rank_)], end = starts[static_cast<std::size_t>(rank_) + 1];
  EXPECT_TRUE(test::same(file->read_rows(begin, end), test::source_of(m)->read_rows(begin, end)));
  // Reads are independent: ranks may make different numbers of them.
  for (int i = 0; i < rank_ * 3; ++i) EXPECT_EQ(file->row_lengths(i, 100 + i), test::source_of(m)->row_lengths(i, 100 + i));
}

TEST_P(ShardFileOnRanks, ReadPermutationAndVerify) {
  const HostCsr m = test::random_matrix(1000, 1000, 30, 11);
  write(m, true);
  const auto file = ShardFile::open(path_, MPI_COMM_WORLD, GetParam());
  EXPECT_TRUE(file->permuted());
  const auto order = file->permutation(100 * rank_, 100 * rank_ + 100);
  const auto lengths = file->row_lengths(100 * rank_, 100 * rank_ + 100);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto row = static_cast<std::size_t>(order[i]);
    EXPECT_EQ(lengths[i], m.row_ptr[row + 1] - m.row_ptr[row]);
  }
  file->verify();
}

TEST_P(ShardFileOnRanks, BadFileThrowsOnEveryRank) {
  if (rank_ == 0) std::ofstream(path_) << "no HDF5 file at all";
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_NE(open_error().find("HDF5"), std::string::npos);
}

/// One rank is given a path that only it cannot open.
TEST_P(ShardFileOnRanks, OneFailingRankFailsParallelOpenEverywhere) {
  write(test::random_matrix(10, 10, 3, 1), false);
  if (rank_ == size_ - 1) path_ += ".missing";
  if (GetParam() == Access::parallel || rank_ == size_ - 1) {
    const std::string error = open_error();
    EXPECT_NE(error.find(rank_ == size_ - 1 ? "no such file" : "another rank"), std::string::npos) << error;
  }
}

INSTANTIATE_TEST_SUITE_P(Access, ShardFileOnRanks, testing::Values(Access::serial, Access::parallel),
                         [](const auto& access) { return access.param == Access::serial ? "serial" : "parallel"; });

}  // namespace
}  // namespace shardmat

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int failed = RUN_ALL_TESTS(), failed_anywhere = 0;
  MPI_Allreduce(&failed, &failed_anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed_anywhere;
}
