// Ids of vectors, and the JSON that asks for one.
#include "tools/serve/state/vectors.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "tools/serve/handlers/vector_json.h"

namespace shardmat::serve {
namespace {

const Rights kOwner = Rights::of_owner("unix");

Rights rights_of(const char* name, std::vector<std::string> matrices = {"*"}) {
  return Rights(name, {Scope::read, Scope::vectors}, std::move(matrices));
}

int status(const Vectors& vectors, const std::string& id, const Rights& rights = kOwner) {
  const auto found = vectors.find(id, rights);
  const auto* problem = std::get_if<Problem>(&found);
  return problem == nullptr ? 200 : problem->status;
}

TEST(Vectors, AreFoundLostOrUnknown) {
  Vectors vectors;
  Vector one;
  one.number = 100, one.id = new_vector_id(), one.owner = "a", one.size = 10, one.columns = 3;
  EXPECT_EQ(one.bytes(), 240u);
  vectors.add(one);
  EXPECT_EQ(status(vectors, one.id), 200);
  for (const std::string& none :
       {std::string("vec-100"), std::string("vec-"), std::string("100"), std::string(), new_vector_id()})
    EXPECT_EQ(status(vectors, none), 404) << none;
  vectors.lose_all();
  EXPECT_EQ(status(vectors, one.id), 410);
  EXPECT_EQ(status(vectors, one.id, rights_of("b")), 404);
  vectors.erase(100);
  EXPECT_EQ(status(vectors, one.id), 404);
}

TEST(Vectors, ExistForTheirOwnerAndThoseWithWhomTheyAreShared) {
  Vectors vectors;
  Vector own, shared;
  own.number = 1, own.id = "vec-own", own.owner = "a", own.matrix = "m-1";
  shared.number = 2, shared.id = "vec-shared", shared.owner = "a", shared.shared = {"lab-*"}, shared.matrix = "m-1";
  vectors.add(own), vectors.add(shared);
  EXPECT_EQ(status(vectors, "vec-own", rights_of("a")), 200);
  EXPECT_EQ(status(vectors, "vec-own", rights_of("a", {"n-*"})), 404);
  EXPECT_EQ(status(vectors, "vec-own", Rights::of_anyone("anyone")), 404);
  for (const char* other : {"b", "lab-1", "owner2"}) EXPECT_EQ(status(vectors, "vec-own", rights_of(other)), 404) << other;
  EXPECT_EQ(status(vectors, "vec-shared", rights_of("lab-1")), 200);
  EXPECT_EQ(status(vectors, "vec-shared", rights_of("lab-1", {"n-*"})), 404);
  EXPECT_EQ(status(vectors, "vec-shared", rights_of("b")), 404);
  EXPECT_EQ(status(vectors, "vec-shared"), 200);
  EXPECT_EQ(vectors.erase_unowned([](const std::string& owner) { return owner != "a"; }),
            (std::vector<std::uint64_t>{1, 2}));
  EXPECT_TRUE(vectors.all().empty());
}

TEST(Vectors, IdsAreRandom) {
  const std::string one = new_vector_id();
  EXPECT_EQ(one.size(), 36u);
  EXPECT_NE(one, new_vector_id());
}

TEST(TokenMemory, CountsBytesOfEachTokenAndKeepsItsLimit) {
  TokenMemory memory;
  Rights limited = rights_of("a");
  limited.memory_bytes = 100;
  const auto a = std::make_shared<Rights>(limited);
  TokenMemory::Charge vector(memory, a, TokenMemory::Kind::vectors);
  EXPECT_TRUE(vector.raise(60));
  {
    TokenMemory::Charge request(memory, a, TokenMemory::Kind::requests);
    EXPECT_FALSE(request.raise(41));
    EXPECT_TRUE(request.raise(40));
    EXPECT_TRUE(request.raise(10));
    EXPECT_EQ(memory.used("a"), (TokenMemory::Used{60, 40}));
    TokenMemory::Charge other(memory, std::make_shared<Rights>(rights_of("b")), TokenMemory::Kind::requests);
    EXPECT_TRUE(other.raise(1000));
  }
  EXPECT_EQ(memory.used("a"), (TokenMemory::Used{60, 0}));
  EXPECT_EQ(memory.all().size(), 1u);
  a->memory_bytes = 0;
  EXPECT_TRUE(vector.raise(1000));
}

TEST(ParseVector, TakesItsFieldsAndNothingElse) {
  const WantedVector wanted = parse_vector(R"({"matrix": "m", "columns": 4, "type": "f32", "layout": "rows"})");
  EXPECT_EQ(wanted.matrix, "m");
  EXPECT_EQ(wanted.columns, 4);
  EXPECT_EQ(wanted.type, ValueType::f32);
  EXPECT_TRUE(wanted.as_y);
  EXPECT_EQ(parse_vector(R"({"n": 12})").size, 12);
  EXPECT_TRUE(parse_vector(R"({"n": 1, "shared": false})").shared.empty());
  EXPECT_EQ(parse_vector(R"({"n": 1, "shared": true})").shared, std::vector<std::string>{"*"});
  EXPECT_EQ(parse_vector(R"({"n": 1, "shared": ["a", "b-*"]})").shared, (std::vector<std::string>{"a", "b-*"}));
  for (const char* bad :
       {"", "[]", "{}", R"({"n": 0})", R"({"n": 1.5})", R"({"n": -1})", R"({"n": "1"})", R"({"n": 18446744073709551615})",
        R"({"n": 1, "matrix": "m"})", R"({"matrix": "/"})", R"({"matrix": 1})", R"({"n": 1, "columns": 257})",
        R"({"n": 1, "type": "f16"})", R"({"n": 1, "layout": "rows"})", R"({"matrix": "m", "layout": "x"})",
        R"({"n": 1, "more": 1})", R"({"n": 1, "shared": "a"})", R"({"n": 1, "shared": [1]})"})
    EXPECT_THROW(parse_vector(bad), Error) << bad;
}

}  // namespace
}  // namespace shardmat::serve
