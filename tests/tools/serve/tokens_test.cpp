// Who may do what: token files, scopes, patterns of matrices, quotas.
#include "tools/serve/gate/tokens.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "kernels/base/error.h"
#include "tools/serve/words/quota.h"

namespace shardmat::serve {
namespace {

constexpr const char* kHashOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, OfTheStandardsExamples) {
  EXPECT_EQ(sha256("abc"), parse_sha256(kHashOfAbc));
  EXPECT_EQ(sha256(""), parse_sha256("E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"));
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            parse_sha256("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            parse_sha256("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
  EXPECT_FALSE(parse_sha256("ba78"));
  EXPECT_FALSE(parse_sha256(std::string(64, 'g')));
  EXPECT_TRUE(equal_in_constant_time(sha256("a"), sha256("a")));
  EXPECT_FALSE(equal_in_constant_time(sha256("a"), sha256("b")));
  const std::string text(200, 'b');
  for (const std::size_t piece : std::initializer_list<std::size_t>{1, 63, 64, 65, 199}) {
    Sha256Sum sum;
    for (std::size_t at = 0; at < text.size(); at += piece) sum.add(std::string_view(text).substr(at, piece));
    EXPECT_EQ(sum.finish(), sha256(text)) << piece;
  }
  EXPECT_EQ(text_of(sha256("abc")), kHashOfAbc);
}

std::string one_token(const std::string& more) {
  return R"({"tokens": [{"name": "a", "sha256": ")" + std::string(kHashOfAbc) + "\"" + more + "}]}";
}

TEST(TokenTable, FindsTokensWithTheirRights) {
  const TokenTable table = TokenTable::parse(
      one_token(R"(, "scopes": ["read", "multiply"], "matrices": ["fem-*", "bar"], "bytes_per_second": 5, "weight": 2.5)"));
  const Token* token = table.find("abc");
  ASSERT_NE(token, nullptr);
  EXPECT_EQ(table.find("abd"), nullptr);
  EXPECT_EQ(table.find(""), nullptr);
  const Rights& rights = *token->rights;
  EXPECT_EQ(rights.name(), "a");
  for (const Scope scope : {Scope::none, Scope::read, Scope::multiply}) EXPECT_TRUE(rights.may(scope));
  for (const Scope scope : {Scope::vectors, Scope::admin}) EXPECT_FALSE(rights.may(scope));
  for (const char* good : {"fem-1", "fem-", "bar"}) EXPECT_TRUE(rights.may_use(good)) << good;
  for (const char* bad : {"fem", "bar2", "a"}) EXPECT_FALSE(rights.may_use(bad)) << bad;
  EXPECT_FALSE(rights.may_use_all());
  EXPECT_EQ(rights.requests_per_second, 0);
  EXPECT_EQ(rights.bytes_per_second, 5);
  EXPECT_EQ(rights.weight, 2.5);
  EXPECT_EQ(rights.highest, Priority::normal);
  EXPECT_EQ(TokenTable::parse(one_token(R"(, "scopes": ["read"], "priority": "high")")).find("abc")->rights->highest,
            Priority::high);
  EXPECT_EQ(TokenTable::parse(one_token(R"(, "scopes": ["read"], "expires": "1970-01-02T00:00:01Z")"))
                .find("abc")
                ->rights->expires,
            86401);
  EXPECT_EQ(rights.expires, std::numeric_limits<double>::infinity());
  EXPECT_EQ(Rights::of_owner("o").highest, Priority::high);
  EXPECT_TRUE(TokenTable::parse(one_token(R"(, "scopes": ["admin"])")).find("abc")->rights->may_use_all());
}

TEST(TokenTable, SaysWhatIsWrong) {
  const auto why = [](const std::string& text) -> std::string {
    try {
      TokenTable::parse(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  const auto says = [&](const std::string& text, const char* what) {
    EXPECT_NE(why(text).find(what), std::string::npos) << text << ": " << why(text);
  };
  says("{", "no JSON");
  says("[]", "one field, \"tokens\"");
  says(R"({"tokens": [], "more": 1})", "one field");
  says(R"({"tokens": [1]})", "token 1 must be an object");
  says(R"({"tokens": [{"name": "a", "sha256": "12", "scopes": ["read"]}]})", "64 hexadecimal digits");
  says(one_token(""), "scopes must be a list");
  says(one_token(R"(, "scopes": ["root"])"), "no scope \"root\"");
  says(one_token(R"(, "scopes": ["none"])"), "no scope \"none\"");
  says(one_token(R"(, "scopes": ["read"], "matrices": "a")"), "matrices must be a list");
  says(one_token(R"(, "scopes": ["read"], "more": 1)"), "no field \"more\"");
  says(one_token(R"(, "scopes": ["read"], "weight": 0)"), "weight must be above 0");
  says(one_token(R"(, "scopes": ["read"], "weight": "1")"), "weight must be above 0");
  says(one_token(R"(, "scopes": ["read"], "priority": "urgent")"), "high, normal or low");
  says(one_token(R"(, "scopes": ["read"], "priority": 1)"), "high, normal or low");
  says(one_token(R"(, "scopes": ["read"], "requests_per_second": 0)"), "above 0");
  for (const char* time : {"1", "\"soon\"", "\"2027-02-30\"", "\"2027-01-31T12:00:00\"", "\"2027-01-31T12:00:00Zx\""})
    says(one_token(fmt::format(R"(, "scopes": ["read"], "expires": {})", time)), "expires must be a time of UTC");
  const std::string one = R"({"name": "a", "scopes": ["read"], "sha256": ")" + std::string(kHashOfAbc) + "\"}";
  says(R"({"tokens": [)" + one + "," + one + "]}", "a name of its own");
  says(R"({"tokens": [{"name": "unix", "scopes": ["read"], "sha256": ")" + std::string(kHashOfAbc) + "\"}]}",
       "choose another name");
}

TEST(OwnSecret, IsMadeOnceAndKept) {
  const auto directory = std::filesystem::temp_directory_path() / ("shardmat_token_" + std::to_string(getpid()));
  std::filesystem::create_directory(directory);
  const auto file = directory / "token";
  const std::string secret = own_secret(file);
  EXPECT_EQ(secret.size(), 64u);
  EXPECT_EQ(own_secret(file), secret);
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  chmod(file.c_str(), 0644);
  EXPECT_THROW(own_secret(file), Error);
  std::filesystem::remove(file);
  EXPECT_NE(own_secret(file), secret);
  std::ofstream(file, std::ios::trunc) << "short\n";
  EXPECT_THROW(own_secret(file), Error);
  std::filesystem::remove_all(directory);
}

TEST(Quota, FillsWithTime) {
  Quota none(0), two(2), rare(1e-3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(none.wait(1e9, 1), 0);
    none.take(1e9);
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(two.wait(1, 1), 0);
    two.take(1);
  }
  EXPECT_EQ(two.wait(1, 1), 0.5);
  EXPECT_EQ(two.wait(1, 1.5), 0);
  EXPECT_EQ(two.wait(5, 2), 0);
  two.take(5);  // more than there is: the next one waits for it
  EXPECT_EQ(two.wait(1, 2), 2);
  EXPECT_EQ(two.wait(1, 4), 0);
  EXPECT_EQ(two.wait(1, 1000), 0);  // what is not used is not saved up
  for (int i = 0; i < 2; ++i) two.take(1);
  EXPECT_GT(two.wait(1, 1000), 0);
  EXPECT_EQ(rare.wait(1, 0), 0);
  rare.take(1);
  EXPECT_NEAR(rare.wait(1, 1), 999, 1e-6);
}

}  // namespace
}  // namespace shardmat::serve
