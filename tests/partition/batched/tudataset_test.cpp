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
  write("T_edge_labels.txt", "7\n");  // a class is no weight
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

TEST_F(TuDatasetTest, EdgeAttributesAreTheValues) {
  write("T_edge_attributes.txt", "0.5\n2\n\n -3 \n4e0\r\n5\n0");  // in the order of T_A.txt
  HostBatch expected = kExpected;
  expected.values = {0.5, -3, 2, 4, 0, 5};
  test::expect_same(open_batch(directory_.string())->read(0, 3), expected);
  test::expect_same(open_batch(directory_.string(), {.unweighted = false, .attribute = 1})->read(0, 3), expected);
  test::expect_same(open_batch(directory_.string(), {.unweighted = true, .attribute = 0})->read(0, 3), kExpected);
  write("T_edge_attributes.txt.gz", test::gzip(test::bytes_of(path("T_edge_attributes.txt"))));
  std::filesystem::remove(path("T_edge_attributes.txt"));
  test::expect_same(open_batch(path("T_A.txt").string())->read(0, 3), expected);
}

TEST_F(TuDatasetTest, AnEdgeGivenTwiceKeepsBothValuesInOrder) {
  write("T_A.txt", "4, 5\n4, 4\n4, 5\n");
  write("T_edge_attributes.txt", "3\n1\n-8\n");
  const HostBatch batch = open_batch(directory_.string())->read(2, 3);
  EXPECT_EQ(batch.col_idx, (HostVector<std::int32_t>{0, 1, 1}));
  EXPECT_EQ(batch.values, (HostVector<double>{1, 3, -8}));
}

TEST_F(TuDatasetTest, OneOfSeveralAttributesMustBeChosen) {
  write("T_edge_attributes.txt", "1, 10\n2, 20\n3,30\n4 40\n5,\t50\n6, 60\n");
  EXPECT_SAYS(open_error(), "T_edge_attributes.txt:1: ", "2 attributes", "unweighted", "which attribute, 1 … 2");
  EXPECT_EQ(setting_of([&] { open_batch(directory_.string()); }), "edge_attribute");
  const auto attribute = [&](std::int64_t number) {
    return open_batch(directory_.string(), {.unweighted = false, .attribute = number})->read(0, 3).values;
  };
  EXPECT_EQ(attribute(1), (HostVector<double>{1, 3, 2, 4, 6, 5}));
  EXPECT_EQ(attribute(2), (HostVector<double>{10, 30, 20, 40, 60, 50}));
  EXPECT_SAYS(error_of([&] { attribute(3); }), "T_edge_attributes.txt:1: ", "2 attributes; there is no attribute 3");
  std::filesystem::remove(path("T_edge_attributes.txt"));
  EXPECT_SAYS(error_of([&] { attribute(1); }), "there is no", "T_edge_attributes.txt");
}

TEST_F(TuDatasetTest, RefusesWrongAttributes) {
  const auto with_attributes = [&](const std::string& text) {
    write("T_edge_attributes.txt", text);
    return open_error();
  };
  EXPECT_SAYS(with_attributes("1\n2\n3\n4\n5\n"), "T_edge_attributes.txt: ", "attributes of 5 edges, but there are more");
  EXPECT_SAYS(with_attributes("1\n2\n3\n4\n5\n6\n7\n"), "T_edge_attributes.txt:7: ", "more than the 6 edges");
  EXPECT_SAYS(with_attributes("1\n2\nnan\n4\n5\n6\n"), "T_edge_attributes.txt:3: ", "\"nan\" is not finite");
  EXPECT_SAYS(with_attributes("1\n2\n1e999\n4\n5\n6\n"), "T_edge_attributes.txt:3: ", "1e999");
  EXPECT_SAYS(with_attributes("1\n2\n3\nfour\n5\n6\n"), "T_edge_attributes.txt:4: ", "\"four\" is no number");
  EXPECT_SAYS(with_attributes("1\n2\n3, 4\n"), "T_edge_attributes.txt:3: ", "2 attributes, but the lines before have 1");
  EXPECT_SAYS(with_attributes(",1\n"), "T_edge_attributes.txt:1: ", "missing");
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
  EXPECT_SAYS(with_graphs("1\n1048570\n2097150\n"), "T_graph_indicator.txt:3: ", "so many graphs without nodes");
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
