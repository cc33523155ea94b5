// Requests of the Open Inference Protocol.
#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "tools/serve/handlers/infer_request.h"

namespace shardmat::serve {
namespace {

TEST(Infer, ReadsTensors) {
  const InferRequest plain =
      parse_infer(R"({"inputs": [{"name": "x", "datatype": "FP64", "shape": [3], "data": [1, -2.5, 3e4]}]})");
  EXPECT_EQ(plain.data, (std::vector<double>{1, -2.5, 3e4}));
  EXPECT_EQ(plain.columns(), 1);
  EXPECT_EQ(plain.alpha, 1);
  EXPECT_FALSE(plain.binary_output);
  EXPECT_FALSE(plain.binary_bytes);
  const InferRequest nested = parse_infer(
      R"({"id": "i", "parameters": {"alpha": 2, "timeout": 5e5, "priority": 3, "binary_data_output": true},
          "inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [[1, 2], [3, 4]]}],
          "outputs": [{"name": "y", "parameters": {"binary_data": false}}]})");
  EXPECT_EQ(nested.data, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(nested.columns(), 2);
  EXPECT_EQ(nested.type, ValueType::f32);
  EXPECT_EQ(nested.alpha, 2);
  EXPECT_EQ(nested.timeout_seconds, 0.5);
  EXPECT_EQ(nested.priority, Priority::low);
  EXPECT_EQ(nested.id, "i");
  EXPECT_FALSE(nested.binary_output);  // the output's own wish goes first
  const InferRequest binary = parse_infer(
      R"({"parameters": {"binary_data_output": true},
          "inputs": [{"name": "x", "datatype": "FP64", "shape": [2], "parameters": {"binary_data_size": 16}}]})");
  EXPECT_EQ(binary.binary_bytes, 16u);
  EXPECT_TRUE(binary.binary_output);
}

TEST(Infer, SaysWhatIsWrong) {
  const auto with_x = [](const std::string& x, const std::string& more = "") {
    return "{\"inputs\": [" + x + "]" + more + "}";
  };
  const std::string good = R"({"name": "x", "datatype": "FP64", "shape": [1], "data": [1]})";
  EXPECT_NO_THROW(parse_infer(with_x(good)));
  for (const std::string& bad :
       {std::string(),
        std::string("{}"),
        std::string("[1]"),
        with_x(""),
        with_x(good + "," + good),
        with_x("1"),
        with_x(R"({"name": "z", "datatype": "FP64", "shape": [1], "data": [1]})"),
        with_x(R"({"name": "x", "datatype": "INT8", "shape": [1], "data": [1]})"),
        with_x(R"({"name": "x", "datatype": 1, "shape": [1], "data": [1]})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [], "data": [1]})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [1, 1, 1], "data": [1]})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [-1], "data": [1]})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [0, 1], "data": []})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [99999999999999999999], "data": [1]})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [1]})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [1], "data": 1})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [1], "data": ["1"]})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [1], "data": [[[1]]]})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [1], "data": [1], "parameters": {"binary_data_size": 8}})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [1], "parameters": {"shared_memory_region": "r"}})"),
        with_x(R"({"name": "x", "datatype": "FP64", "shape": [1], "parameters": {"binary_data_size": -8}})"),
        with_x(good, R"(, "parameters": {"beta": 1})"),
        with_x(good, R"(, "parameters": {"alpha": "1"})"),
        with_x(good, R"(, "parameters": {"timeout": 0})"),
        with_x(good, R"(, "parameters": {"priority": 4})"),
        with_x(good, R"(, "parameters": {"priority": "high"})"),
        with_x(good, R"(, "parameters": {"binary_data_output": 1})"),
        with_x(good, R"(, "outputs": [{"name": "z"}])"),
        with_x(good, R"(, "id": 1)")})
    EXPECT_THROW(parse_infer(bad), Error) << bad;
}

}  // namespace
}  // namespace shardmat::serve
