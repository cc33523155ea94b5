// Which route takes a request.
#include "tools/serve/http/routes.h"

#include <gtest/gtest.h>

namespace shardmat::serve {
namespace {

Routes some_routes() {
  const auto nothing = [](const Call&) -> Accepted { return Reply{}; };
  Routes routes;
  routes.add({"GET", "/v1/things", Scope::read, "list", nothing});
  routes.add({"GET", "/v2", Scope::read, "server", nothing});
  routes.add({"GET", "/v1/things/{thing}", Scope::read, "get", nothing});
  routes.add({"DELETE", "/v1/things/{thing}", Scope::vectors, "delete", nothing});
  routes.add({"POST", "/v1/matrices/{matrix}/rows/{row}", Scope::multiply, "rows", nothing, true});
  return routes;
}

class Find : public testing::Test {
 protected:
  const Routes::Match* match(const std::string& method, const std::string& target) {
    head_.method = method, head_.target = target;
    target_ = parse_target(target).value();
    found_.emplace(routes_.find(head_, target_));
    return std::get_if<Routes::Match>(&*found_);
  }
  Problem problem(const std::string& method, const std::string& target) {
    if (match(method, target) != nullptr) return {};
    return std::get<Reply>(*found_).problem.value();
  }

  Routes routes_ = some_routes();
  RequestHead head_;
  Target target_;
  std::optional<std::variant<Routes::Match, Reply>> found_;
};

TEST_F(Find, ByMethodAndPath) {
  EXPECT_EQ(match("GET", "/v1/things")->route->op, "list");
  EXPECT_EQ(match("GET", "/v2/")->route->op, "server");
  EXPECT_EQ(match("GET", "/v1/things/a")->route->op, "get");
  EXPECT_EQ(match("DELETE", "/v1/things/a")->call.parameters, std::vector<std::string>{"a"});
  EXPECT_EQ(match("DELETE", "/v1/things/a")->call.matrix, "");
  const auto* rows = match("POST", "/v1/matrices/m/rows/3?x=1");
  EXPECT_EQ(rows->call.matrix, "m");
  EXPECT_EQ(rows->call.parameters, (std::vector<std::string>{"m", "3"}));
}

TEST_F(Find, HeadTakesTheRouteOfGet) {
  EXPECT_EQ(match("HEAD", "/v1/things")->route->op, "list");
  EXPECT_EQ(problem("HEAD", "/v1/matrices/m/rows/3").text, "this path takes POST");
}

TEST_F(Find, SaysWhatIsWrong) {
  EXPECT_EQ(problem("GET", "/v1").status, 404);
  EXPECT_EQ(problem("GET", "/v1/things/a/b").status, 404);
  EXPECT_EQ(problem("POST", "/v1/things").status, 405);
  EXPECT_EQ(problem("POST", "/v1/things/a").text, "this path takes DELETE, GET, HEAD");
  EXPECT_EQ(problem("GET", "/v1/things?x=1").code, "malformed");
  EXPECT_EQ(problem("POST", "/v1/matrices/.m/rows/3").code, "bad_name");
}

}  // namespace
}  // namespace shardmat::serve
