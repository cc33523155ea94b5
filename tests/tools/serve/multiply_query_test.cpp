// What a request for a product takes and gives, by its query.
#include "tools/serve/handlers/multiply_query.h"

#include <gtest/gtest.h>

#include "tools/serve/handlers/request_space.h"
#include "tools/serve/http/header_scan.h"

namespace shardmat::serve {
namespace {

class MultiplyShapeTest : public testing::Test {
 protected:
  MultiplyShapeTest() {
    matrix_.wanted.name = "m", matrix_.state = MatrixState::ready, matrix_.generation = 5;
    service::Loaded loaded;
    loaded.rows = 10, loaded.cols = 20, loaded.x_distribution = 1, loaded.y_distribution = 2;
    matrix_.ranks = {loaded};
    matrix_.widths = WidthTable({{1, 1}, {2, 1.5}});
    add(1, 20, 1, 1), add(2, 10, 1, 2), add(3, 20, 4, 1), add(4, 10, 4, 2), add(5, 20, 1, 7),
        add(6, 20, 1, 1, ValueType::f32);
  }
  void add(std::uint64_t number, std::int64_t size, std::int64_t columns, std::uint64_t distribution,
           ValueType type = ValueType::f64) {
    Vector vector;
    vector.number = number, vector.id = "vec-" + std::to_string(number), vector.size = size, vector.columns = columns,
    vector.distribution = distribution;
    vector.type = type;
    vectors_.add(vector);
  }
  std::variant<Problem, MultiplyShape> ask(const std::string& query, std::uint64_t bytes) {
    RequestHead head;
    const Target target = parse_target("/v1/matrices/m/multiply?" + query).value();
    auto read = read_multiply_query(head, target);
    if (auto* problem = std::get_if<Problem>(&read)) return *problem;
    return shape_of(std::get<MultiplyQuery>(read), matrix_, vectors_, Rights::of_owner("o"), bytes);
  }
  MultiplyShape shape(const std::string& query, std::uint64_t bytes) {
    const auto answer = ask(query, bytes);
    if (const auto* problem = std::get_if<Problem>(&answer)) ADD_FAILURE() << query << ": " << problem->text;
    return std::holds_alternative<MultiplyShape>(answer) ? std::get<MultiplyShape>(answer) : MultiplyShape{};
  }
  std::string code(const std::string& query, std::uint64_t bytes) {
    const auto answer = ask(query, bytes);
    const auto* problem = std::get_if<Problem>(&answer);
    return problem == nullptr ? "" : problem->code;
  }

  Matrix matrix_;
  Vectors vectors_;
};

TEST_F(MultiplyShapeTest, TheBodyHasWhatNoVectorHas) {
  EXPECT_EQ(shape("k=1", 160).result_bytes(), 80u);
  EXPECT_EQ(shape("k=2&beta=0", 320).result_bytes(), 160u);
  const MultiplyShape both = shape("k=2&beta=-1", 2 * (160 + 80));
  EXPECT_TRUE(both.adds_y_of_body);
  EXPECT_EQ(both.result_bytes(), 0u);
  EXPECT_EQ(shape("x=vec-1", 0).result_bytes(), 80u);
  EXPECT_EQ(shape("x=vec-1&beta=2", 80).x_vector, 1u);
  EXPECT_EQ(shape("y=vec-2&beta=2", 160).y_vector, 2u);
  const MultiplyShape block = shape("x=vec-3&y=vec-4&beta=2", 0);
  EXPECT_TRUE(block.block);
  EXPECT_EQ(block.columns, 4);
  EXPECT_FALSE(shape("x=vec-1&y=vec-2", 0).block);
  EXPECT_TRUE(shape("y=vec-4", 4 * 160).block);
}

TEST_F(MultiplyShapeTest, TheTransposeHasRowsInPlaceOfColumns) {
  EXPECT_EQ(shape("transpose=1", 80).result_bytes(), 160u);
  EXPECT_EQ(shape("transpose=0", 160).result_bytes(), 80u);
  EXPECT_EQ(shape("transpose=1&k=2&beta=-1", 2 * (80 + 160)).result_bytes(), 0u);
  EXPECT_EQ(shape("transpose=1&x=vec-2&y=vec-1", 0).x_vector, 2u);
  EXPECT_TRUE(shape("transpose=1&x=vec-4", 0).block);
  EXPECT_EQ(code("transpose=1", 160), "wrong_length");
  EXPECT_EQ(code("transpose=1&x=vec-1", 0), "wrong_length");
  EXPECT_EQ(code("transpose=1&y=vec-5", 80), "wrong_distribution");
  EXPECT_EQ(code("transpose=2", 80), "malformed");
  EXPECT_EQ(code("transpose=", 80), "malformed");
  matrix_.ranks.front().transposable = false;
  EXPECT_EQ(code("transpose=1", 80), "not_transposable");
  const auto why = [&] { return std::get<Problem>(ask("transpose=1", 80)).text; };
  EXPECT_NE(why().find("of square matrices alone, and this one is 10 × 20"), std::string::npos) << why();
  matrix_.ranks.front().cols = 10;
  EXPECT_NE(why().find("load it with \"solvable\": true"), std::string::npos) << why();
  matrix_.ranks.front().cols = 20;
  EXPECT_EQ(code("transpose=0", 160), "");
}

TEST_F(MultiplyShapeTest, PlacesInTheClientsMemory) {
  EXPECT_EQ(shape("x_at=0&y_at=160", 0).result_bytes(), 0u);
  EXPECT_EQ(shape("x_at=0", 0).result_bytes(), 80u);
  EXPECT_FALSE(shape("y_at=0&beta=2", 160).adds_y_of_body);
  EXPECT_TRUE(shape("x_at=0&beta=2", 80).adds_y_of_body);
  EXPECT_EQ(code("x_at=0&y_at=160", 160), "wrong_length");
  EXPECT_EQ(code("x_at=0&x=vec-1", 0), "malformed");
  EXPECT_EQ(code("y_at=-8", 160), "malformed");
  EXPECT_EQ(code("x_at=9223372036854775808", 0), "malformed");
  const auto place = [&](const std::string& query, std::uint64_t bytes) {
    const Target target = parse_target("/v1/matrices/m/multiply?" + query).value();
    const auto read = std::get<MultiplyQuery>(read_multiply_query({}, target));
    const auto found = std::get<MultiplyShape>(shape_of(read, matrix_, vectors_, Rights::of_owner("o"), 0));
    const auto problem = check_places(read, found, 8, bytes);
    return problem ? problem->code : "";
  };
  EXPECT_EQ(place("x_at=0&y_at=160", 240), "");
  EXPECT_EQ(place("x_at=80&y_at=0", 240), "");
  EXPECT_EQ(place("k=2&x_at=160&y_at=0", 480), "");
  EXPECT_EQ(place("x_at=0&y_at=160", 239), "outside_memory");
  EXPECT_EQ(place("x_at=88&y_at=0", 240), "outside_memory");
  EXPECT_EQ(place("x_at=0&y_at=152", 240), "overlap");
  EXPECT_EQ(place("x_at=72&y_at=0", 240), "overlap");
  EXPECT_EQ(place("x_at=4&y_at=164", 4096), "misaligned");
  EXPECT_EQ(place("x_at=0&y_at=164", 4096), "misaligned");
  EXPECT_EQ(place("x_at=9223372036854775800&y_at=0", 4096), "outside_memory");
  EXPECT_EQ(place("x_at=0&y_at=9223372036854775800", 4096), "outside_memory");
  EXPECT_EQ(place("x_at=0&y_at=0", 8), "outside_memory");
}

TEST_F(MultiplyShapeTest, WhatDoesNotFitIsNamed) {
  EXPECT_EQ(code("k=1", 161), "wrong_length");
  EXPECT_EQ(code("x=vec-1", 160), "wrong_length");
  EXPECT_EQ(code("k=33", 33 * 160), "too_many_columns");
  EXPECT_EQ(code("x=vec-1&k=2", 0), "wrong_columns");
  EXPECT_EQ(code("x=vec-3&y=vec-2", 0), "wrong_columns");
  EXPECT_EQ(code("x=vec-2", 0), "wrong_length");
  EXPECT_EQ(code("x=vec-5", 0), "wrong_distribution");
  EXPECT_NE(std::get<Problem>(ask("transpose=1&y=vec-5", 80))
                .text.find("vec-5 lies on row map 0000000000000007 (20 entries, in equal parts), but x of m on row map "
                           "0000000000000001 (20 entries)"),
            std::string::npos);
  EXPECT_EQ(code("x=vec-6", 0), "wrong_type");
  EXPECT_EQ(code("x=vec-9", 0), "no_vector");
  EXPECT_EQ(code("x=", 0), "malformed");
  EXPECT_EQ(code("beta=nan", 160), "malformed");
  EXPECT_EQ(code("gamma=1", 160), "malformed");
  matrix_.ranks[0].rows = 20, matrix_.ranks[0].y_distribution = 1;
  EXPECT_EQ(code("x=vec-1&y=vec-1", 0), "same_vector");
}

TEST(WantedPriority, IsOfTheQueryOrTheHeaderAndNotAboveTheToken) {
  const auto read = [](const std::string& query, Fields fields) {
    RequestHead head;
    head.fields = std::move(fields);
    return read_multiply_query(head, parse_target("/v1/matrices/m/multiply?" + query).value());
  };
  EXPECT_FALSE(std::get<MultiplyQuery>(read("k=1", {})).priority);
  EXPECT_EQ(std::get<MultiplyQuery>(read("k=1", {{"Shardmat-Priority", "low"}})).priority, Priority::low);
  EXPECT_EQ(std::get<MultiplyQuery>(read("priority=high", {{"shardmat-priority", "low"}})).priority, Priority::high);
  EXPECT_TRUE(std::holds_alternative<Problem>(read("priority=urgent", {})));
  EXPECT_TRUE(std::holds_alternative<Problem>(read("k=1", {{"Shardmat-Priority", "High"}})));
  Rights rights("t", {Scope::multiply}, {"*"});
  MultiplyRequest request;
  EXPECT_EQ(set_client(request, rights, Priority::high)->code, "priority");
  rights.weight = 3;
  EXPECT_FALSE(set_client(request, rights, std::nullopt));
  EXPECT_EQ(request.priority, Priority::normal);
  EXPECT_EQ(request.client.name, "t");
  EXPECT_EQ(request.client.weight, 3);
  rights.highest = Priority::low;
  EXPECT_FALSE(set_client(request, rights, std::nullopt));
  EXPECT_EQ(request.priority, Priority::low);
  EXPECT_FALSE(set_client(request, Rights::of_owner("o"), Priority::high));
  EXPECT_EQ(request.priority, Priority::high);
}

TEST(WantedGeneration, IsOneNumberInQuotes) {
  RequestHead head;
  const auto read = [&](const std::string& text) {
    head.fields = {{"If-Match", text}};
    return read_multiply_query(head, parse_target("/v1/matrices/m/multiply").value());
  };
  EXPECT_EQ(std::get<MultiplyQuery>(read("\"12\"")).generation, 12u);
  EXPECT_FALSE(std::get<MultiplyQuery>(read("*")).generation);
  for (const char* bad : {"12", "\"\"", "\"x\"", "\"1\", \"2\"", "W/\"1\"", "\"-1\""})
    EXPECT_TRUE(std::holds_alternative<Problem>(read(bad))) << bad;
}

}  // namespace
}  // namespace shardmat::serve
