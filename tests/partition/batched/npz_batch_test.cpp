// The files are NumPy's; tests/data/npz/make.py wrote them.
#include <gtest/gtest.h>

#include "partition/batched/batch_source.h"
#include "tests/partition/batched/test_batches.h"

namespace shardmat {
namespace {

using test::error_of;

std::string data(const std::string& name) { return (test::Path(SHARDMAT_TEST_DATA) / "npz" / (name + ".npz")).string(); }

class NpzBatchTest : public test::FilesTest {
 protected:
#ifdef SHARDMAT_HAVE_LIBZIP
  void SetUp() override {}
#else
  void SetUp() override {
    EXPECT_SAYS(error_of([&] { open_batch(data("graphs")); }), "graphs.npz", "libzip");
    GTEST_SKIP() << "this build has no libzip";
  }
#endif
};

TEST_F(NpzBatchTest, ReadsGraphs) {
  HostBatch expected{{0, 2, 2, 3}, {0, 2, 2, 3}, {0, 1, 2, 3}, {1, 0, 0}, {1, 1, 1}};
  const auto graphs = open_batch(data("graphs"));
  test::expect_same(graphs->read(0, 3), expected);
  test::expect_consistent(*graphs);
  expected.values = {0.5, -2, 3};
  for (const char* name : {"graphs_data", "graphs_values", "graphs_edge_weight"})
    test::expect_same(open_batch(data(name))->read(0, 3), expected);
  expected.values = {1, 1, 1};
  test::expect_same(open_batch(data("graphs_values"), {.unweighted = true, .attribute = 0})->read(0, 3), expected);
  test::expect_same(open_batch(data("graphs_edge_attr"), {.unweighted = true, .attribute = 0})->read(0, 3), expected);
}

TEST_F(NpzBatchTest, RefusesValuesWhoseMeaningIsNotClear) {
  EXPECT_SAYS(error_of([] { open_batch(data("graphs_two_values")); }), "data.npy and values.npy", "unweighted");
  EXPECT_EQ(setting_of([] { open_batch(data("graphs_two_values")); }), "unweighted");
  EXPECT_SAYS(error_of([] { open_batch(data("graphs_edge_attr")); }), "edge_attr.npy", "store the values as data");
  EXPECT_SAYS(error_of([] { open_batch(data("graphs_values_short")); }), "values.npy", "it has 2 elements", "asks for 3");
  EXPECT_SAYS(error_of([] { open_batch(data("graphs_values_nan")); }), "graphs_values_nan.npz: matrix 0, entry 1", "nan");
  EXPECT_SAYS(error_of([] { open_batch(data("graphs_values"), {.unweighted = false, .attribute = 1}); }, ErrorKind::usage),
              "graphs_values.npz", "only edges of a TUDataset have attributes");
  EXPECT_EQ(setting_of([] { open_batch(data("graphs_values"), {.unweighted = false, .attribute = 1}); }), "edge_attribute");
}

TEST_F(NpzBatchTest, RefusesWhatIsNoBatch) {
  EXPECT_SAYS(error_of([] { open_batch(data("csr")); }), "csr.npz", "one matrix, not a batch", "shardmat multiply");
  EXPECT_SAYS(error_of([] { open_batch(data("graphs_outside")); }), "matrix 2, entry 0", "column 1");
  EXPECT_SAYS(error_of([] { open_batch(data("graphs_falling")); }), "graph_ptr.npy", "element 1 = 2", "smaller 1");
  EXPECT_SAYS(error_of([] { open_batch(data("graphs_short")); }), "indptr.npy has 3 elements", "asks for 4");
  EXPECT_SAYS(error_of([&] { open_batch(write("a.npz", "garbage").string()); }), "a.npz", "zip archive");
  EXPECT_SAYS(error_of([&] { open_batch(path("b.npz").string()); }), "b.npz", "no such file");
}

}  // namespace
}  // namespace shardmat
