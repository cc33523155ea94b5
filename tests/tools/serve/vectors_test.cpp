// Ids of vectors, and the JSON that asks for one.
#include "tools/serve/state/vectors.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "tools/serve/paths/vector_json.h"

namespace shardmat::serve {
namespace {

int status(const Vectors& vectors, const std::string& id) {
  const auto found = vectors.find(id);
  const auto* problem = std::get_if<Problem>(&found);
  return problem == nullptr ? 200 : problem->status;
}

TEST(Vectors, AreFoundLostOrUnknown) {
  Vectors vectors(100);
  Vector one;
  one.number = 100, one.size = 10, one.columns = 3;
  EXPECT_EQ(one.bytes(), 240u);
  vectors.add(one);
  EXPECT_EQ(status(vectors, "vec-100"), 200);
  EXPECT_EQ(status(vectors, "vec-99"), 410);
  for (const char* none : {"vec-101", "vec-", "vec-0", "vec--1", "vec-1x", "100", "", "vec"})
    EXPECT_EQ(status(vectors, none), 404) << none;
  vectors.lose_all();
  EXPECT_EQ(status(vectors, "vec-100"), 410);
  vectors.erase(100);
  EXPECT_EQ(status(vectors, "vec-100"), 404);
}

TEST(ParseVector, TakesItsFieldsAndNothingElse) {
  const WantedVector wanted = parse_vector(R"({"matrix": "m", "columns": 4, "type": "f32", "layout": "rows"})");
  EXPECT_EQ(wanted.matrix, "m");
  EXPECT_EQ(wanted.columns, 4);
  EXPECT_EQ(wanted.type, ValueType::f32);
  EXPECT_TRUE(wanted.as_y);
  EXPECT_EQ(parse_vector(R"({"n": 12})").size, 12);
  for (const char* bad : {"", "[]", "{}", R"({"n": 0})", R"({"n": 1.5})", R"({"n": -1})", R"({"n": "1"})",
                          R"({"n": 18446744073709551615})", R"({"n": 1, "matrix": "m"})", R"({"matrix": "/"})",
                          R"({"matrix": 1})", R"({"n": 1, "columns": 257})", R"({"n": 1, "type": "f16"})",
                          R"({"n": 1, "layout": "rows"})", R"({"matrix": "m", "layout": "x"})", R"({"n": 1, "more": 1})"})
    EXPECT_THROW(parse_vector(bad), Error) << bad;
}

}  // namespace
}  // namespace shardmat::serve
