#include "partition/files/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kernels/base/shortened.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::error_of;

class JsonTest : public test::FilesTest {};

std::string quoted(std::string text) {
  text.insert(text.begin(), '"');
  text.push_back('"');
  return text;
}

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
}

TEST_F(JsonTest, ReadsWhatIsShallowAndSmall) {
  EXPECT_EQ(parse_json(R"({"a": [1, "]]]\\\""]})", "here")["a"][1], "]]]\\\"");
  EXPECT_EQ(parse_json(nested(kMostJsonDepth), "here").size(), 1U);
  EXPECT_EQ(parse_json(quoted(std::string(1000, '[')), "here").get<std::string>().size(), 1000U);
  EXPECT_EQ(read_json(write("a.json", "[1]"))[0], 1);
}

TEST_F(JsonTest, RefusesDeepLargeAndBrokenText) {
  EXPECT_SAYS(error_of([] { parse_json(nested(kMostJsonDepth + 1), "here"); }), "here: ", "nested more than 64 deep");
  EXPECT_SAYS(error_of([] { parse_json(std::string(1 << 20, '['), "here"); }), "nested more than 64 deep");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_SAYS(error_of([&] { parse_json(objects, "here"); }), "nested more than 64 deep");
  EXPECT_SAYS(error_of([] { parse_json("[1, 2, 3]", "here", 8); }), "here: ", "9 B of JSON", "at most 8 B");
  EXPECT_SAYS(error_of([] { parse_json("[1, 2", "here"); }), "here: ", "no JSON, or was cut off");
  EXPECT_SAYS(error_of([&] { read_json(write("a.json", "[1, 2, 3]"), 8); }), "a.json", "at most 8 B");
  EXPECT_SAYS(error_of([&] { read_json(directory_); }), "directory");
}

TEST_F(JsonTest, MessagesRepeatLittleOfIt) {
  const std::string message = error_of([] { parse_json(quoted(std::string(100000, 'x')) + " x", "here"); });
  EXPECT_LT(message.size(), 400U);
  EXPECT_SAYS(message, "…");
  EXPECT_EQ(shortened("a\tb\x1b[2J\n"), "a\\tb\\x1b[2J\\n");
  EXPECT_EQ(shortened(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(shortened(std::string(201, 'x')).substr(199), "x…");
  EXPECT_EQ(shortened("aä", 2), "a…");  // no half of a character
}

}  // namespace
}  // namespace shardmat
