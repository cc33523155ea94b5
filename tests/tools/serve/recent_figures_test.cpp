// What the service's page shows of the last minutes, by seconds.
#include "tools/serve/observe/recent_figures.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/serve/page/page.h"
#include "tools/serve/page/page_files.h"

namespace shardmat::serve {
namespace {

const auto kAll = [](const std::string&) { return true; };

TEST(TimeCounts, QuantilesAreTenPercentExact) {
  TimeCounts counts;
  EXPECT_FALSE(counts.quantile(0.5));
  for (int i = 1; i <= 1000; ++i) counts.add(1e-5 * i);
  EXPECT_NEAR(*counts.quantile(0.5), 5e-3, 5e-4);
  EXPECT_NEAR(*counts.quantile(0.99), 9.9e-3, 1e-3);
  TimeCounts odd;
  odd.add(0), odd.add(1e9);
  EXPECT_LE(*odd.quantile(0.1), 1e-6);
  EXPECT_NEAR(*odd.quantile(1), 100, 1);
}

TEST(RecentFigures, AddUpBySecondAndMatrix) {
  RecentFigures figures;
  figures.add_request("a", "multiply", false, 1e-3, 100.2);
  figures.add_request("a", "multiply", true, 0, 100.9);
  figures.add_request("b", "solve", false, 1e-1, 101.0);
  figures.add_product("a", 7, 0.5, 4e9, 100.5);
  figures.set_waiting("a", 3, 100.99);
  figures.set_waiting("a", 2, 101.5);
  const Activity first = figures.over(100, 101, kAll);
  EXPECT_EQ(first.requests, 1u);
  EXPECT_EQ(first.refused, 1u);
  EXPECT_EQ(first.products, 1u);
  EXPECT_EQ(first.columns, 7u);
  EXPECT_EQ(first.waiting, 3u);
  EXPECT_DOUBLE_EQ(first.bytes / first.product_seconds, 8e9);
  const Activity both = figures.over(100, 102, kAll);
  EXPECT_EQ(both.requests, 2u);
  EXPECT_EQ(both.waiting, 2u);  // the last look, not a sum over time
  EXPECT_EQ(figures.over(100, 102, [](const std::string& name) { return name == "b"; }).requests, 1u);
  EXPECT_EQ(figures.over(100, 102, "none").requests, 0u);
}

TEST(RecentFigures, TellRequestsOfEachKind) {
  RecentFigures figures;
  for (int i = 0; i < 99; ++i) figures.add_request("a", "multiply", false, 1e-3, 100.0 + i);
  figures.add_request("a", "solve", false, 20, 200);
  figures.add_request("a", "solve", true, 0, 201);
  figures.add_request("", "batches", false, 1e-4, 202);
  const auto all = figures.kinds(202, kAll);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all.at("multiply").requests, 99u);
  EXPECT_NEAR(*all.at("multiply").times.quantile(0.99), 1e-3, 1e-4);  // whatever solves take
  EXPECT_EQ(all.at("solve").requests, 1u);
  EXPECT_EQ(all.at("solve").refused, 1u);
  EXPECT_NEAR(*all.at("solve").times.quantile(0.5), 20, 3);  // the end of its class
  EXPECT_EQ(figures.kinds(202, [](const std::string& name) { return name.empty(); }).size(), 1u);
  EXPECT_EQ(figures.kinds(495, kAll).at("solve").requests, 1u);
  EXPECT_TRUE(figures.kinds(600, kAll).empty());
}

TEST(RecentFigures, ForgetAndAreBounded) {
  RecentFigures figures;
  for (std::size_t i = 0; i < RecentFigures::kMostMatrices; ++i)
    figures.add_request("m" + std::to_string(i), "multiply", false, 1, 0);
  figures.add_request("late", "multiply", false, 1, 10);
  EXPECT_EQ(figures.over(0, 1000, "late").requests, 0u);
  figures.add_request("late", "multiply", false, 1, 1000);  // the others are too old by now
  EXPECT_EQ(figures.over(0, 2000, kAll).requests, 1u);
  figures.add_client("c", 0.25, 1000), figures.add_client("c", 0.5, 1299);
  EXPECT_DOUBLE_EQ(figures.clients(1299)["c"], 0.75);
  EXPECT_DOUBLE_EQ(figures.clients(1300)["c"], 0.5);
}

RequestHead browser(const std::string& had = "") {
  RequestHead head;
  head.method = "GET";
  if (!had.empty()) head.fields.emplace_back("If-None-Match", had);
  return head;
}

std::string field(const Reply& reply, const std::string& name) {
  for (const auto& [key, value] : reply.fields)
    if (key == name) return value;
  return "";
}

TEST(Page, FilesHaveTypesAndTags) {
  ASSERT_GT(page_files().size(), 8u);
  for (const PageFile& file : page_files()) {
    if (file.name == "index.html") continue;
    const Reply reply = page_file_reply(browser(), file.name);
    EXPECT_EQ(reply.status, 200) << file.name;
    EXPECT_EQ(reply.text, file.text) << file.name;
    EXPECT_NE(field(reply, "Content-Security-Policy").find("default-src 'none'"), std::string::npos);
    EXPECT_TRUE(page_file_reply(browser(field(reply, "ETag")), file.name).text.empty());
    EXPECT_EQ(page_file_reply(browser(field(reply, "ETag")), file.name).status, 304);
    EXPECT_EQ(page_file_reply(browser("\"other\""), file.name).status, 200);
  }
  EXPECT_EQ(page_file_reply(browser(), "page.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(page_file_reply(browser(), "icon.svg").content_type, "image/svg+xml");
  for (const char* none : {"index.html", "", "../page.css", "token"})
    EXPECT_EQ(page_file_reply(browser(), none).status, 404) << none;
}

TEST(Page, SaysHowTheServiceIsWithoutJavaScript) {
  using json = nlohmann::ordered_json;
  const json now{{"state", "ready"}, {"phase", "idle"}};
  const json ranks{{"ranks", {{{"rank", 0}, {"host", "<b>"}, {"device", "CPU"}, {"threads", 2}}}}};
  const json matrices{{"matrices", {{{"name", "bar"}, {"state", "failed"}}}}}, jobs{{"jobs", json::array()}};
  const PlainStatus status{now, ranks, matrices, jobs};
  const Reply known = page_reply(browser(), &status), unknown = page_reply(browser(), nullptr, "wrong <token>");
  EXPECT_EQ(known.status, 200);
  for (const char* text : {"data-client=\"known\"", "is <b>ready</b>", "&lt;b&gt;", "<td>bar</td><td>failed</td><td>–</td>",
                           "There is no job."})
    EXPECT_NE(known.text.find(text), std::string::npos) << text;
  EXPECT_EQ(unknown.status, 401);
  EXPECT_NE(unknown.text.find("wrong &lt;token&gt;"), std::string::npos);
  EXPECT_EQ(unknown.text.find("<td>"), std::string::npos);
  for (const Reply* reply : {&known, &unknown}) {
    EXPECT_EQ(reply->text.find("<!--"), std::string::npos);
    EXPECT_EQ(reply->text.find(" style="), std::string::npos);  // the policy forbids it
  }
}

TEST(Page, ReadsForms) {
  EXPECT_EQ(form_field("token=a%2Bb+c&x=1", "token"), "a+b c");
  EXPECT_EQ(form_field("x=1", "token"), "");
  EXPECT_EQ(form_field("token=%zz", "token"), "");
  EXPECT_EQ(form_field("", "token"), "");
}

}  // namespace
}  // namespace shardmat::serve
