#include <gtest/gtest.h>

#include "partition/batched/batch_source.h"
#include "tests/partition/batched/test_batches.h"

namespace shardmat {
namespace {

using test::error_of;

class TuDatasetTest : public test::FilesTest {
 protected:
  /// A triangle's path 1-2-3, a graph without nodes, and a pair.
  void SetUp() override {
    write("T_graph_indicator.txt", "1\n1\n1\n3\n3\n");
    write("T_A.txt", "1, 2\n2, 3\n2, 1\n3, 2\n5, 4\n4, 5\n");
  }
  std::string open_error() const {
    return error_of([&] { open_batch(directory_.string()); });
  }
};

const HostBatch kExpected{{0, 3, 3, 5}, {0, 3, 3, 5}, {0, 1, 3, 4, 5, 6}, {1, 0, 2, 1, 1, 0}, {1, 1, 1, 1, 1, 1}};

TEST_F(TuDatasetTest, ReadsFolderPrefixAndFile) {
  for (const auto& argument : {directory_, path("T"), path("T_A.txt")}) {
    const auto batch = open_batch(argument.string());
    EXPECT_EQ(batch->name(), argument.string());
    test::expect_same(batch->read(0, 3), kExpected);
    test::expect_consistent(*batch);
  }
}

TEST_F(TuDatasetTest, ReadsGzip) {
  for (const char* name : {"T_A.txt", "T_graph_indicator.txt"}) {
    write(std::string(name) + ".gz", test::gzip(test::bytes_of(path(name))));
    std::filesystem::remove(path(name));
    test::expect_same(open_batch(directory_.string())->read(0, 3), kExpected);
    test::expect_same(open_batch(path("T").string())->read(0, 3), kExpected);
  }
}

TEST_F(TuDatasetTest, TakesWhatPeopleWrite) {
  write("T_A.txt", "1,2\r\n 2\t3 \n\n2 , 1\n3 2\n4,5\n5,4");
  test::expect_same(open_batch(directory_.string())->read(0, 3), kExpected);
  write("T_edge_attributes.txt", "0.5\n");
  write("T_A.txt", "");
  EXPECT_EQ(open_batch(directory_.string())->nnz(), 0);
  write("T_graph_indicator.txt", "");
  EXPECT_EQ(open_batch(directory_.string())->count(), 0);
}

TEST_F(TuDatasetTest, AnEdgeGivenTwiceCountsTwice) {
  write("T_A.txt", "4, 5\n4, 4\n4, 5\n");
  const HostBatch batch = open_batch(directory_.string())->read(2, 3);
  EXPECT_EQ(batch.col_idx, (HostVector<std::int32_t>{0, 1, 1}));
  EXPECT_EQ(batch.values, (HostVector<double>{1, 1, 1}));
}

TEST_F(TuDatasetTest, ErrorsNameTheLine) {
  const auto with_edges = [&](const std::string& text) {
    write("T_A.txt", text);
    return open_error();
  };
  EXPECT_SAYS(with_edges("1, 2\n2, 6\n"), "T_A.txt:2: ", "node \"6\" is out of range [1, 5]");
  EXPECT_SAYS(with_edges("0, 2\n"), "T_A.txt:1: ", "\"0");
  EXPECT_SAYS(with_edges("1, 2\n\n3, 4\n"), "T_A.txt:3: node 3 is of graph 1 and node 4 of graph 3");
  EXPECT_SAYS(with_edges("1, 2\nx, 1\n"), "T_A.txt:2: ", "\"x,\" is no number");
  EXPECT_SAYS(with_edges("1,\n"), "T_A.txt:1: ", "no number of a node");
  EXPECT_SAYS(with_edges("1, 2, 3\n"), "T_A.txt:1: ", "follows");
  EXPECT_SAYS(with_edges("1, 99999999999999999999\n"), "T_A.txt:1: ", "out of range");
  const auto with_graphs = [&](const std::string& text) {
    write("T_graph_indicator.txt", text);
    return open_error();
  };
  EXPECT_SAYS(with_graphs("1\n1\n3\n2\n3\n"), "T_graph_indicator.txt:4: graph 2 comes after graph 3");
  EXPECT_SAYS(with_graphs("1\n2147483647\n"), "T_graph_indicator.txt:2: ", "so many graphs without nodes");
  EXPECT_SAYS(with_graphs("0\n"), "T_graph_indicator.txt:1: ", "graph \"0\" is out of range");
  EXPECT_SAYS(with_graphs("1\none\n"), "T_graph_indicator.txt:2: ", "\"one\" is no number of a graph");
  EXPECT_SAYS(with_graphs("1 2\n"), "T_graph_indicator.txt:1: ", "follows");
}

TEST_F(TuDatasetTest, FindsAWrongLineOfMany) {
  std::string edges;
  for (int i = 0; i < 400000; ++i) edges += i == 300000 ? "1, 4\n" : "1, 2\n";
  write("T_A.txt", edges);
  EXPECT_SAYS(open_error(), "T_A.txt:300001: ");
}

TEST_F(TuDatasetTest, RefusesWhatIsNotOneDataset) {
  write("U_A.txt", "");
  EXPECT_SAYS(open_error(), "more than one dataset", path("T").string());
  EXPECT_EQ(open_batch(path("T").string())->count(), 3);
  EXPECT_SAYS(error_of([&] { open_batch(path("U").string()); }), "U_A.txt", "U_graph_indicator.txt");
}

}  // namespace
}  // namespace shardmat
