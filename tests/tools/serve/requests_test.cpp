// What is read from requests: names, targets and the JSON of a load.
#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "tools/serve/http/names.h"
#include "tools/serve/observe/service_json.h"

namespace shardmat::serve {
namespace {

TEST(Names, OnlyHarmlessOnes) {
  for (const char* good : {"a", "bar-2.h5", "0_x", "A.b-c_d"}) EXPECT_TRUE(is_matrix_name(good)) << good;
  for (const char* bad : {"", ".a", "-a", "_a", "a b", "a/b", "ä", "a\n", "a%20"}) EXPECT_FALSE(is_matrix_name(bad)) << bad;
  EXPECT_TRUE(is_matrix_name(std::string(64, 'a')));
  EXPECT_FALSE(is_matrix_name(std::string(65, 'a')));
  EXPECT_TRUE(is_request_id("00-abc.1"));
  EXPECT_FALSE(is_request_id("a b"));
  EXPECT_FALSE(is_request_id(std::string(129, 'a')));
}

TEST(Target, IsSplitAndUnescaped) {
  const auto target = parse_target("/v1/matrices/a%2eb/multiply?k=2&alpha=-1e3&empty=");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, (std::vector<std::string>{"v1", "matrices", "a.b", "multiply"}));
  EXPECT_EQ(target->query.at("k"), "2");
  EXPECT_EQ(target->query.at("alpha"), "-1e3");
  EXPECT_EQ(target->query.at("empty"), "");
  // An escaped slash stays inside its part, where no name has one.
  EXPECT_EQ(parse_target("/v1/a%2fb")->path.back(), "a/b");
  EXPECT_EQ(parse_target("/v1/%2e%2e/x")->path[1], "..");
}

TEST(Target, MalformedOnesAreRefused) {
  for (const char* bad :
       {"", "v1", "http://host/v1", "/a%", "/a%4", "/a%zz", "/a%00", "/a%0a", "/a?x=%g1", "/a?k=1&k=2", "*"})
    EXPECT_FALSE(parse_target(bad)) << bad;
}

TEST(Flag, IsZeroOrOne) {
  bool flag = false;
  EXPECT_EQ(read_flag("alone", "1", flag), "");
  EXPECT_TRUE(flag);
  EXPECT_EQ(read_flag("alone", "0", flag), "");
  EXPECT_FALSE(flag);
  for (const char* wrong : {"", "yes", "true", "01", "2", " 1"})
    EXPECT_EQ(read_flag("alone", wrong, flag), "alone must be 0 or 1");
}

TEST(Load, TakesItsFieldsAndNothingElse) {
  const WantedMatrix wanted = parse_load("m", R"({"source": "a.h5", "type": "f32"})");
  EXPECT_EQ(wanted.name, "m");
  EXPECT_EQ(wanted.source, "a.h5");
  EXPECT_EQ(wanted.type, ValueType::f32);
  EXPECT_EQ(parse_load("m", R"({"source": "a"})").type, ValueType::f64);
  EXPECT_FALSE(parse_load("m", R"({"source": "a"})").pinned);
  EXPECT_TRUE(parse_load("m", R"({"source": "a", "pinned": true})").pinned);
  for (const char* bad : {"", "{", "[]", "1", "{}", R"({"source": 1})", R"({"source": "a", "type": "f16"})",
                          R"({"source": "a", "more": "b"})", R"({"source": "a", "pinned": 1})"})
    EXPECT_THROW(parse_load("m", bad), Error) << bad;
  EXPECT_THROW(parse_load("m", std::string(100'000, '[')), Error);
  EXPECT_THROW(parse_load("m", "{\"source\":" + std::string(100, '[') + std::string(100, ']') + "}"), Error);
}

TEST(Pin, IsOneFlag) {
  EXPECT_TRUE(parse_pin(R"({"pinned": true})"));
  EXPECT_FALSE(parse_pin(R"({"pinned": false})"));
  for (const char* bad : {"", "{}", "true", R"({"pinned": 1})", R"({"pinned": true, "more": 1})"})
    EXPECT_THROW(parse_pin(bad), Error) << bad;
}

}  // namespace
}  // namespace shardmat::serve
